package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/cmd/stead/contexts"
	"stead/controller"
	"stead/host"
	"stead/host/fault"
	"stead/host/setup"
	"stead/host/unit"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/runtime/server"
	"stead/seats"
)

const (
	// nodeCredentials is where a node has its credentials.
	nodeCredentials = "/etc/stead/credentials"
	multiUser       = unit.Name("multi-user.target")
	sockets         = unit.Name("sockets.target")
	controllerUnit  = unit.Name("stead-controller.service")
	hostUnit        = unit.Name("stead-host.service")
	runtimeUnit     = escalate.Runtime
	helperUnit      = unit.Name("stead-escalate.service")
	helperSocket    = unit.Name("stead-escalate.socket")
	// upDropIn holds what stead up was told, beside the unit of the controller.
	upDropIn = "10-up.conf"
	// upBound is how long a mesh of one may take to be ready.
	upBound = 2 * time.Minute
)

// up is one mesh of one machine in the making.
type up struct {
	o        Options
	node     string
	operator string
	listen   string
	hosts    []string
	print    func(what, object, how string)
}

func newUp(o Options) *cobra.Command {
	u := up{o: o}
	c := &cobra.Command{
		Use:   "up",
		Short: "make this machine a mesh of one, which others can join",
		Long: "up makes this machine a mesh of one node: it puts the units of the controller, the\n" +
			"host and the runtime on it, starts them, makes the credentials of the node, and a\n" +
			"context for you. Done again it puts right what is missing and changes nothing else.\n\n" +
			"It needs root and systemd as PID 1. To undo it: systemctl disable --now\n" +
			"stead-host stead-runtime stead-escalate.socket stead-controller, and delete what\n" +
			"up says that it made, and the account stead.",
		Example: "  stead up\n  stead up --node ws1 --host mesh.example.org",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), upBound)
			defer cancel()
			u.print = func(what, object, how string) {
				fmt.Fprintf(c.OutOrStdout(), "  %-12s %-28s %s\n", what, object, how)
			}
			if err := u.given(); err != nil {
				return err
			}
			if err := u.check(); err != nil {
				return err
			}
			if err := u.run(ctx); err != nil {
				return err
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "node %s is ready\nnext: stead apply -f DIR --wait\n"+
				"      stead credentials node NAME, for each machine that is to join\n", u.node)
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&u.node, "node", "", "call this node `NAME` (default: the name of this machine)")
	f.StringVar(&u.operator, "operator", "", "make a context for the operator `NAME` (default: who runs sudo, or root)")
	f.StringVar(&u.listen, "listen", "", "listen at `HOST:PORT` (default: "+controller.DefaultListen+")")
	f.StringSliceVar(&u.hosts, "host", nil, "be reached as `NAME`, a DNS name or address (default: the name and addresses of this machine)")
	return c
}

// given checks what the flags say, before anything is written: a unit that holds
// what a controller does not take would end the mesh that is there.
func (u *up) given() error {
	for _, f := range []struct{ flag, name string }{{"node", u.node}, {"operator", u.operator}} {
		if err := subject.CheckLabel(f.flag, f.name); f.name != "" && err != nil {
			return usageError{err, "stead up --" + f.flag + " NAME"}
		}
	}
	o := controller.Options{Dir: controller.DefaultDir, Name: "up", Listen: u.listen, Hosts: u.hosts, Logger: slog.New(slog.DiscardHandler)}
	if _, err := controller.New(o); err != nil {
		return usageError{err, "stead up --listen 0.0.0.0:4222 --host mesh.example.org"}
	}
	return nil
}

// check finds the names, and what keeps this machine from being a mesh.
func (u *up) check() error {
	if os.Geteuid() != 0 {
		return fault.New(fault.Denied, "set up", "", errors.New("only root may put units on this machine")).WithHint("sudo stead up")
	}
	if _, err := os.Lstat("/run/systemd/system"); err != nil {
		return fault.New(fault.Unsupported, "set up", "", errors.New("systemd is not PID 1 on this machine"))
	}
	if u.node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fault.New(fault.Failed, "set up", "", err).WithHint("stead up --node NAME")
		}
		u.node, _, _ = strings.Cut(strings.ToLower(name), ".")
	}
	if err := subject.CheckLabel("node", u.node); err != nil {
		return fault.New(fault.Invalid, "set up", "", err).WithHint("stead up --node NAME")
	}
	if u.operator == "" {
		u.operator = u.o.Env("SUDO_USER")
		if subject.CheckLabel("operator", u.operator) != nil {
			u.operator = "root"
		}
	}
	return subject.CheckLabel("operator", u.operator)
}

func (u *up) run(ctx context.Context) error {
	m, err := setup.Dial(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer m.Close()
	if err := u.elsewhere(); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fault.New(fault.Failed, "set up", "", err)
	}
	if err := u.controller(ctx, m, program); err != nil {
		return err
	}
	mesh, err := identity.Open(controller.KeysDir(controller.DefaultDir))
	if err != nil {
		return err
	}
	urls, err := controller.Servers(controller.DefaultDir)
	if err != nil {
		return err
	}
	fresh, err := u.credentials(mesh, urls)
	if err != nil {
		return err
	}
	if err := u.unit(ctx, m, setup.Unit{Name: hostUnit, Text: with(program, host.UnitFile()), Wanted: multiUser}, fresh, "host"); err != nil {
		return err
	}
	if err := u.runtime(ctx, m, program, fresh); err != nil {
		return err
	}
	return u.join(ctx, mesh, urls)
}

// runtime puts and starts the runtime with its root helper, whose socket makes
// the runtime's account.
func (u *up) runtime(ctx context.Context, m *setup.Manager, program string, fresh bool) error {
	path, err := m.Path(ctx)
	if err != nil {
		return err
	}
	// It is started by its socket, and by nothing at boot.
	wrote, err := setup.Put(setup.Dir, path, setup.Unit{Name: helperUnit, Text: with(program, escalate.ServiceUnit())})
	if err != nil {
		return err
	}
	if len(wrote) > 0 {
		if err := m.Reload(ctx); err != nil {
			return err
		}
	}
	if err := u.unit(ctx, m, setup.Unit{Name: helperSocket, Text: escalate.SocketUnit(), Wanted: sockets}, len(wrote) > 0, "helper"); err != nil {
		return err
	}
	return u.unit(ctx, m, setup.Unit{Name: runtimeUnit, Text: with(program, server.UnitFile()), Wanted: multiUser}, fresh, "runtime")
}

// controller puts and starts the controller. What up was told stands in a
// drop-in, and an earlier one stays when up is told nothing.
func (u *up) controller(ctx context.Context, m *setup.Manager, program string) error {
	one := setup.Unit{Name: controllerUnit, Text: with(program, controller.UnitFile()), Wanted: multiUser}
	var flags []string
	if u.listen != "" {
		flags = append(flags, "--listen "+u.listen)
	}
	if len(u.hosts) > 0 {
		flags = append(flags, "--host "+strings.Join(u.hosts, ","))
	}
	if flags != nil {
		one.DropIns = map[string]string{upDropIn: "[Service]\nExecStart=\nExecStart=" + program + " controller run " + strings.Join(flags, " ") + "\n"}
	}
	return u.unit(ctx, m, one, false, "controller")
}

// with is a unit file that runs this program, wherever it lies.
func with(program, text string) string {
	return strings.ReplaceAll(text, "/usr/local/bin/stead", program)
}

// unit puts and starts one unit, and restarts it when it is another than before.
func (u *up) unit(ctx context.Context, m *setup.Manager, one setup.Unit, anew bool, what string) error {
	path, err := m.Path(ctx)
	if err != nil {
		return err
	}
	wrote, err := setup.Put(setup.Dir, path, one)
	if err != nil {
		return err
	}
	// Also when nothing was written: what somebody mended by hand is read.
	if err := m.Reload(ctx); err != nil {
		return err
	}
	if err := m.Start(ctx, one.Name, len(wrote) > 0 || anew); err != nil {
		return err
	}
	how := "runs"
	if len(wrote) > 0 {
		how = "started, at boot too"
	}
	u.print(what, string(one.Name), how)
	return nil
}

// elsewhere returns an error when this machine is a node of another mesh, before
// one is begun here.
func (u *up) elsewhere() error {
	has, err := identity.ReadCredentials(filepath.Join(nodeCredentials, string(identity.Host)+".json"))
	if err != nil {
		return nil //nolint:nilerr // there are none, or it is said later what is the matter with them
	}
	mesh, err := identity.Open(controller.KeysDir(controller.DefaultDir))
	if fault.Is(err, fault.NotFound) || err == nil && mesh.ID() != has.Mesh {
		return ofAnother(has)
	}
	return nil
}

func ofAnother(has identity.Credentials) error {
	return fault.New(fault.Conflict, "set up", nodeCredentials, fmt.Errorf("this machine is node %q of another mesh", has.Name)).
		WithHint("move " + nodeCredentials + " away, when it is to leave that mesh")
}

// credentials makes those of this node, unless it has some of this mesh.
func (u *up) credentials(mesh *identity.Mesh, urls []string) (fresh bool, err error) {
	path := filepath.Join(nodeCredentials, string(identity.Host)+".json")
	switch has, err := identity.ReadCredentials(path); {
	case err == nil && has.Mesh == mesh.ID() && has.Name == u.node:
		u.print("credentials", nodeCredentials, "of node "+has.Name)
		return false, nil
	case err == nil && has.Mesh == mesh.ID():
		return false, fault.New(fault.Conflict, "set up", nodeCredentials, fmt.Errorf("this machine is node %q already", has.Name)).
			WithHint("stead up --node " + has.Name)
	case err == nil:
		return false, ofAnother(has)
	case !fault.Is(err, fault.NotFound):
		return false, err
	}
	if err := mintNode(mesh, local(urls), u.node, nodeCredentials); err != nil {
		return false, err
	}
	u.print("credentials", nodeCredentials, "made for node "+u.node)
	return true, nil
}

// local puts the addresses of this machine itself first: they hold whatever the
// network does.
func local(urls []string) []string {
	own := func(url string) bool { return strings.HasPrefix(url, "tls://127.0.0.1:") }
	return slices.Concat(slices.DeleteFunc(slices.Clone(urls), func(s string) bool { return !own(s) }), slices.DeleteFunc(slices.Clone(urls), own))
}

// join makes a context, and waits until the node is one of the mesh.
func (u *up) join(ctx context.Context, mesh *identity.Mesh, urls []string) error {
	r := reach{o: u.o, timeout: waitTime(patience)}
	store, err := r.store()
	if err != nil {
		return err
	}
	at, err := u.context(ctx, store, mesh, urls)
	if err != nil {
		return err
	}
	r.context = at.Name
	l, err := r.dial(ctx)
	if err != nil {
		return err
	}
	defer l.conn.Close()
	for {
		ready := false
		err := l.Get(ctx, wire.GetRequest{Wire: wire.Version, Kind: wire.Nodes, Names: nil, Nodes: []string{u.node}}, func(p wire.GetReply) error {
			ready = ready || slices.ContainsFunc(p.Nodes, func(n wire.Node) bool { return n.State == wire.Ready })
			return nil
		})
		if err != nil {
			return err
		}
		if ready {
			if ready, err = u.held(ctx, l); err != nil {
				return err
			}
		}
		if ready {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fault.New(fault.Timeout, "wait for node", u.node, errors.New("its host does not report, or its runtime claims no seat")).
				WithHint("journalctl -u stead-host -u stead-runtime -n 30")
		}
	}
}

// held is whether the node holds its seat and answers. A call of its own is the
// proof: between the claim and the service there is a moment.
func (u *up) held(ctx context.Context, l *link) (held bool, err error) {
	err = l.Get(ctx, wire.GetRequest{Wire: wire.Version, Kind: wire.Holders, Nodes: []string{u.node}}, func(p wire.GetReply) error {
		held = held || slices.ContainsFunc(p.Holders, func(h wire.Holder) bool {
			return string(h.Node) == u.node && h.Seat == seats.NodeServiceManager && h.Module != ""
		})
		return nil
	})
	if err != nil || !held {
		return false, err
	}
	_, err = l.conn.Call(ctx, subject.ForVerb(subject.Read, subject.Node(u.node), seats.NodeServiceManager, seats.Status),
		[]byte(`{"unit":"`+string(runtimeUnit)+`","lines":0}`))
	if fault.Is(err, fault.Unavailable) {
		return false, nil
	}
	return err == nil, err
}

// context finds the operator's context of this mesh, or makes it.
func (u *up) context(ctx context.Context, store *contexts.Store, mesh *identity.Mesh, urls []string) (contexts.Context, error) {
	all, err := store.List()
	if err != nil {
		return contexts.Context{}, err
	}
	for _, at := range all {
		if at.Err == nil && at.Credentials.Mesh == mesh.ID() && at.Credentials.Role == identity.Operator {
			u.print("context", at.Name, "of operator "+at.Credentials.Name)
			return at, nil
		}
	}
	made, err := mesh.Mint(identity.Request{Role: identity.Operator, Name: u.operator, URLs: local(urls)})
	if err != nil {
		return contexts.Context{}, err
	}
	at, err := store.Add(ctx, u.node, made)
	if err == nil {
		u.print("context", at.Name, "made for operator "+u.operator)
	}
	return at, err
}
