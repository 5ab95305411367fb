package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// Attach plugs the node in, up or off: while it is up it has an interface (eth0, eth1, …) with an address, and each node of the network has the
// names of the others in /etc/hosts. It stays attached, with the same address, for as long as node and network exist, through reboots and power
// cuts. A node that is off is silent.
func (w *Network) Attach(ctx context.Context, n *Node) error {
	err := w.inLock(func(nodes, nets []state) error {
		node := n.refresh()
		p, err := w.newPort(node, nodes, nets)
		if err != nil {
			return err
		}
		if node.Init.alive() {
			if err := w.snapshot().plugIn(ctx, p, node); err != nil {
				return err
			}
		}
		if err := w.update(func(s *state) { s.Net.Ports = append(s.Net.Ports, p) }); err != nil {
			return err
		}
		return w.rewriteHosts()
	})
	return w.fault("attach", n, err)
}

// Detach unplugs the node for good.
func (w *Network) Detach(ctx context.Context, n *Node) error {
	err := w.onPort(n, func(_ []state, i int) error {
		s := w.snapshot()
		s.pullOut(ctx, s.Net.Ports[i])
		if err := w.update(func(s *state) { s.Net.Ports = slices.Delete(s.Net.Ports, i, i+1) }); err != nil {
			return err
		}
		return w.rewriteHosts()
	})
	return w.fault("detach", n, err)
}

// Cut pulls the cables of the nodes: whatever they send and whatever is sent to them on this network vanishes, and nobody is told; connections
// stay open at both ends until somebody gives up. It lasts, through reboots too, until Join.
func (w *Network) Cut(ctx context.Context, nodes ...*Node) error {
	return w.link(ctx, "cut", Severed, nodes)
}

// Join undoes Cut and Refuse. All nodes forget whom they could not find meanwhile, so that the next try finds them, and not the one a second later;
// what TCP has in flight follows at its own time, which gets longer while it is not answered: as long again as the cut lasted, at most two minutes.
func (w *Network) Join(ctx context.Context, nodes ...*Node) error {
	return w.link(ctx, "join", Joined, nodes)
}

// Refuse lets everything that the nodes send on this network be answered by a reset at once, as by a firewall that rejects: connections break
// and new ones are refused. What others send to them vanishes. It lasts, through reboots too, until Join.
// What listens in such a node on all addresses is met by its own clients under the addresses of the others.
func (w *Network) Refuse(ctx context.Context, nodes ...*Node) error {
	return w.link(ctx, "refuse", Refused, nodes)
}

func (w *Network) link(ctx context.Context, doing string, link Link, which []*Node) error {
	for _, n := range which {
		err := w.onPort(n, func(nodes []state, i int) error {
			if err := w.update(func(s *state) { s.Net.Ports[i].Link = link }); err != nil {
				return err
			}
			s, node := w.snapshot(), n.refresh()
			if !node.Init.alive() {
				return nil
			}
			if err := s.setLink(ctx, s.Net.Ports[i], node); err != nil || link != Joined {
				return err
			}
			return s.forgetNeighbours(ctx, nodes)
		})
		if err != nil {
			return w.fault(doing, n, err)
		}
	}
	return nil
}

// onPort calls do, with everybody else locked out, with all nodes and the index of this node's port.
func (w *Network) onPort(n *Node, do func(nodes []state, i int) error) error {
	return w.inLock(func(nodes, _ []state) error {
		s := w.refresh()
		i := s.Net.find(n.snapshot())
		if i < 0 {
			return fmt.Errorf("it is not attached")
		}
		return do(nodes, i)
	})
}

// newPort chooses the node's place.
func (w *Network) newPort(node state, nodes, nets []state) (port, error) {
	if !w.snapshot().Keeper.alive() {
		return port{}, fmt.Errorf("the network is no more")
	}
	// Ports of nodes that are no more are free.
	if err := w.update(func(s *state) {
		s.Net.Ports = slices.DeleteFunc(s.Net.Ports, func(p port) bool { return !slices.ContainsFunc(nodes, p.of) })
	}); err != nil {
		return port{}, err
	}
	s := w.snapshot()
	switch {
	case !slices.ContainsFunc(nodes, func(o state) bool { return o.Name == node.Name && o.Group == node.Group }):
		return port{}, fmt.Errorf("there is no such node in %q", w.place())
	case node.ShareNet:
		return port{}, fmt.Errorf("it is in this machine's network")
	case !node.Keeper.alive():
		return port{}, fmt.Errorf("its keeper is gone")
	case s.Net.find(node) >= 0:
		return port{}, fmt.Errorf("it is attached already")
	}
	p := port{Node: node.Name, Group: node.Group, Hostname: node.Hostname, Host: 2, Link: Joined}
	for _, o := range s.Net.Ports {
		if o.Hostname == p.Hostname {
			return port{}, fmt.Errorf("lab node %q has the hostname %q already", o.Node, o.Hostname)
		}
	}
	for slices.ContainsFunc(s.Net.Ports, func(o port) bool { return o.Host == p.Host }) {
		p.Host++
	}
	if p.Host > 254 {
		return port{}, fmt.Errorf("all 253 addresses are taken")
	}
	for i := 0; ; i++ {
		p.Interface = fmt.Sprintf("eth%d", i)
		if !slices.ContainsFunc(nets, func(o state) bool {
			j := o.Net.find(node)
			return j >= 0 && o.Net.Ports[j].Interface == p.Interface
		}) {
			return p, nil
		}
	}
}

func (p port) name() string { return fmt.Sprintf("p%d", p.Host) }

// netNS is the path of the namespace that a network is, or of that of a node that is up.
func (s state) netNS() string {
	if s.Net != nil {
		return fmt.Sprintf("/proc/%d/ns/net", s.Keeper.PID)
	}
	return fmt.Sprintf("/proc/%d/ns/net", s.Init.PID)
}

// plugIn lays the cable to a node that is up. Its hardware address follows from its address, so that who knew a node that had it before reaches
// this one at once.
func (s state) plugIn(ctx context.Context, p port, node state) error {
	s.pullOut(ctx, p) // that of a boot, or of a node, that is no more: its namespace goes in its own time
	err := ip(ctx, s.netNS(),
		fmt.Sprintf("link add %s type veth peer name %s netns %d address 02:00:0a:%02x:00:%02x",
			p.name(), p.Interface, node.Init.PID, s.Net.Number, p.Host),
		fmt.Sprintf("link set %s master switch", p.name()))
	if err == nil {
		err = ip(ctx, node.netNS(), "link set lo up", // systemd does, a moment later
			fmt.Sprintf("address add %s/24 dev %s", s.Net.address(p.Host), p.Interface), "link set "+p.Interface+" up")
	}
	if err == nil {
		err = s.setLink(ctx, p, node)
	}
	if err != nil {
		s.pullOut(ctx, p)
	}
	return err
}

// pullOut takes the cable away, at both ends; it does nothing when there is none.
func (s state) pullOut(ctx context.Context, p port) {
	_ = ip(ctx, s.netNS(), "link delete "+p.name())
}

// setLink gives the cable a carrier unless the node is cut, and makes every address of the network the node's own when it is refused: nobody
// listens there, so its own kernel resets what it sends.
func (s state) setLink(ctx context.Context, p port, node state) error {
	route := fmt.Sprintf("local %s/24 dev lo table local", s.Net.address(0))
	if p.Link == Refused {
		if err := ip(ctx, node.netNS(), fmt.Sprintf("route replace %s src %s", route, s.Net.address(p.Host))); err != nil {
			return err
		}
	} else {
		_ = ip(ctx, node.netNS(), "route delete "+route) // there is one only when it was refused before
	}
	to := "up"
	if p.Link == Severed {
		to = "down"
	}
	return ip(ctx, s.netNS(), "link set "+p.name()+" "+to)
}

// forgetNeighbours lets the nodes that are up forget which hardware addresses they know, or ask for in vain, and what waits for the answer.
func (s state) forgetNeighbours(ctx context.Context, nodes []state) error {
	for _, node := range nodes {
		i := s.Net.find(node)
		if i < 0 || !node.Init.alive() {
			continue
		}
		if err := ip(ctx, node.netNS(), "neighbour flush dev "+s.Net.Ports[i].Interface); err != nil && node.Init.alive() {
			return err
		}
	}
	return nil
}

// place is the folder of state folders.
func (w *Network) place() string { return filepath.Dir(string(w.dir)) }

// inLock calls do with all that there is in the folder of state folders, and with everybody else who changes anything there locked out.
func (w *Network) inLock(do func(nodes, nets []state) error) error { return inLock(w.place(), do) }

func inLock(dir string, do func(nodes, nets []state) error) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	nodes, nets, err := both(dir)
	if err != nil {
		return err
	}
	return do(nodes, nets)
}

func both(dir string) (nodes, nets []state, err error) {
	states, err := list(dir)
	for _, s := range states {
		if s.Net == nil {
			nodes = append(nodes, s)
		} else {
			nets = append(nets, s)
		}
	}
	return nodes, nets, err
}

// fault says of which node and network err speaks; nil stays nil.
func (w *Network) fault(doing string, n *Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s lab node %q, network %q: %w", doing, n.Name(), w.Name(), err)
}
