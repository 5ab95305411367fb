package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// netMark begins the name of a network's state folder, which no node can have.
const netMark = "net."

// wiring is what the state of a network tells besides what a node's does. Number says its addresses: 10.NUMBER.0.0/24.
type wiring struct {
	Number int    `json:"number"`
	Ports  []port `json:"ports"`
}

// port is a node's place on a network.
type port struct {
	Node      string `json:"node"`
	Group     group  `json:"cgroup"` // which node of that name
	Hostname  string `json:"hostname"`
	Host      int    `json:"host"`      // the last part of its address; the name of the port is "p" and this
	Interface string `json:"interface"` // the name in the node
	Link      Link   `json:"link"`
}

// Link is how a node stands to one of its networks.
type Link string

const (
	Joined  Link = "joined"  // what is sent arrives
	Severed Link = "cut"     // what is sent vanishes, both ways
	Refused Link = "refused" // what the node sends is answered by a reset, at once; what is sent to it vanishes
)

// Network is a network that nodes are attached to. MakeNetwork, StartNetwork and OpenNetwork make them.
type Network struct{ holding }

// NetworkOptions says what network to make.
type NetworkOptions struct {
	// Name finds the network from other processes and is unique in Dir: a DNS label. StartNetwork makes it up.
	Name string
	// Dir is where the state folders of the network and of its nodes lie. Empty: DefaultDir.
	Dir string
	// Keep lets the network outlive the process that makes it. Without it the network goes with that process, however it ends.
	Keep bool
}

// MakeNetwork makes a network without nodes. What a dead process left of the same name is cleaned away first. Nothing stays when it fails.
func MakeNetwork(ctx context.Context, o NetworkOptions) (*Network, error) {
	w, err := makeNetwork(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("make lab network %q: %w", o.Name, err)
	}
	return w, nil
}

func makeNetwork(ctx context.Context, o NetworkOptions) (*Network, error) {
	whole, err := Options{Name: o.Name, Dir: o.Dir}.complete()
	if err == nil {
		err = Check(whole.Root)
	}
	if err != nil {
		return nil, err
	}
	cgroups, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	w := &Network{}
	name := netMark + o.Name
	w.dir = folder(filepath.Join(whole.Dir, name))
	w.state = state{
		Name: name, Keep: o.Keep, Net: &wiring{}, Group: group(filepath.Join(cgroups, labGroup, name+"-"+random(4))),
		Created: time.Now().UTC(), Owner: running(os.Getpid()),
	}
	// It gives the network its number, too.
	if err := w.dir.claim(ctx, w.state); err != nil {
		return nil, err
	}
	if err = w.state.Group.create(); err == nil {
		err = w.startKeeper(ctx, []string{"--mount", "--propagation", "private", "--net"}, "net.sh", fmt.Sprintf("%s/%d", w.Own(), w.Prefix().Bits()))
	}
	if err != nil {
		return nil, errors.Join(err, w.Down(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// OpenNetwork finds a network that another process made and keeps. dir is where its state lies; empty: DefaultDir.
func OpenNetwork(dir, name string) (*Network, error) {
	if dir == "" {
		dir = DefaultDir
	}
	if !label.MatchString(name) {
		return nil, fmt.Errorf("open lab network %q: not a network's name", name)
	}
	w := &Network{}
	w.dir = folder(filepath.Join(dir, netMark+name))
	var err error
	if w.state, err = w.dir.load(); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open lab network %q: there is none in %q: %w", name, dir, fs.ErrNotExist)
	} else if err != nil {
		return nil, fmt.Errorf("open lab network %q: %w", name, err)
	}
	return w, nil
}

// Down takes the network away. Its nodes live on, without it. It may be called twice.
func (w *Network) Down(ctx context.Context) error {
	err := w.down(ctx)
	if err == nil {
		err = w.inLock(func(nodes, nets []state) error { return writeHosts(w.place(), nodes, nets) })
	}
	if err != nil {
		return fmt.Errorf("take down lab network %q: %w", w.Name(), err)
	}
	return nil
}

// Name is what finds the network from other processes.
func (w *Network) Name() string { return strings.TrimPrefix(w.snapshot().Name, netMark) }

// Prefix are the network's addresses, which no other network in the same folder has.
func (w *Network) Prefix() netip.Prefix {
	return netip.PrefixFrom(w.snapshot().Net.address(0), 24)
}

// Own is the address by which this process can take part, with Command and DialContext. It belongs to no node.
func (w *Network) Own() netip.Addr { return w.snapshot().Net.address(1) }

// Address is the node's on this network; the zero Addr when it is not attached.
func (w *Network) Address(n *Node) netip.Addr {
	s, node := w.refresh(), n.snapshot()
	if i := s.Net.find(node); i >= 0 {
		return s.Net.address(s.Net.Ports[i].Host)
	}
	return netip.Addr{}
}

// Link is how the node stands to this network; empty when it is not attached.
func (w *Network) Link(n *Node) Link {
	s, node := w.refresh(), n.snapshot()
	if i := s.Net.find(node); i >= 0 {
		return s.Net.Ports[i].Link
	}
	return ""
}

func (w *wiring) address(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(w.Number), 0, byte(host)})
}

// find is the index of the node's port; -1 when it has none.
func (w *wiring) find(node state) int {
	return slices.IndexFunc(w.Ports, func(p port) bool { return p.Node == node.Name && p.Group == node.Group })
}

// freeNumber is the lowest that no network in dir has. The caller holds the lock.
func freeNumber(dir string) (int, error) {
	states, err := list(dir)
	if err != nil {
		return 0, err
	}
	for number := 1; number < 256; number++ {
		if !slices.ContainsFunc(states, func(s state) bool { return s.Net != nil && s.Net.Number == number }) {
			return number, nil
		}
	}
	return 0, fmt.Errorf("there are 255 networks in %q, and no addresses for more", dir)
}

// PortInfo is what NetworkInfo tells of an attached node.
type PortInfo struct {
	Node, Hostname, Interface string
	Address                   netip.Addr
	Link                      Link
}

// NetworkInfo is what Networks tells of a network.
type NetworkInfo struct {
	Name      string
	Prefix    netip.Prefix
	Condition Condition // Up, Making or Leftover
	Keep      bool      // it outlives the process that made it
	Owner     int       // the process that made it
	Created   time.Time
	Ports     []PortInfo // by address
}

// Networks tells of the networks in dir, by name. dir empty: DefaultDir.
func Networks(dir string) ([]NetworkInfo, error) {
	states, err := list(dir)
	var infos []NetworkInfo
	for _, s := range states {
		if s.Net == nil {
			continue
		}
		i := NetworkInfo{Name: strings.TrimPrefix(s.Name, netMark), Prefix: netip.PrefixFrom(s.Net.address(0), 24), Condition: s.condition(),
			Keep: s.Keep, Owner: s.Owner.PID, Created: s.Created}
		for _, p := range s.Net.Ports {
			if slices.ContainsFunc(states, p.of) {
				i.Ports = append(i.Ports, PortInfo{Node: p.Node, Hostname: p.Hostname, Interface: p.Interface, Address: s.Net.address(p.Host), Link: p.Link})
			}
		}
		infos = append(infos, i)
	}
	return infos, err
}

// of is whether the node is the port's.
func (p port) of(node state) bool { return p.Node == node.Name && p.Group == node.Group }
