package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/fault"
	"stead/host/journal"
	"stead/host/spool"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/notify"
	"stead/mesh/subject"
	"stead/modules"
	module "stead/modules/systemd"
	"stead/runtime/duty"
	"stead/runtime/escalate"
	"stead/runtime/tool"
)

// DefaultState is where a runtime keeps what it serves, and the calls that no
// controller knows of yet.
const DefaultState = "/var/lib/stead-runtime"

// waitForTools bounds how long Run waits, at its end, for tools whose calls were
// answered without them.
const waitForTools = time.Second

// Options are what a Server is made of.
type Options struct {
	Credentials string // folder of runtime.json and tool.json; default DefaultCredentials
	State       string // default DefaultState
	Version     string // of stead, for service discovery
	Logger      *slog.Logger
}

// Server is the runtime of one node. Make it with New.
type Server struct {
	o    Options
	log  *slog.Logger
	who  pair
	node subject.Node
	// bring makes what this machine is asked through; a test has another one.
	bring func(s *Server) (built, []func(context.Context) error, error)

	serving *serving
	keeper  *duty.Keeper
	audit   *tool.Audit
	line    *line
	other   chan error // capacity one: credentials of another node
}

// New reads the credentials and starts nothing.
func New(o Options) (*Server, error) {
	o.Credentials = cmp.Or(o.Credentials, DefaultCredentials)
	o.State = cmp.Or(o.State, DefaultState)
	if o.Logger == nil {
		return nil, fault.New(fault.Internal, "run the runtime", "", errors.New("a logger is required"))
	}
	who, err := readPair(o.Credentials)
	if err != nil {
		return nil, err
	}
	return &Server{o: o, log: o.Logger, who: who, node: subject.Node(who.runtime.Name), bring: machine, other: make(chan error, 1)}, nil
}

// Run serves until ctx ends, and returns nil then.
func (s *Server) Run(ctx context.Context) error {
	if err := os.MkdirAll(s.o.State, 0o700); err != nil {
		return fault.New(fault.Failed, "make folder", s.o.State, err)
	}
	up, err := s.dial(ctx, s.who.runtime)
	if err != nil {
		return err
	}
	defer up.Close()
	down, err := s.dial(ctx, s.who.tool)
	if err != nil {
		return err
	}
	defer down.Close()
	calls := s.openSpool()
	if calls == nil {
		return fault.New(fault.Failed, "open", s.o.State, errors.New("there is no place for calls that no controller knows of"))
	}
	defer func() {
		if err := calls.Close(); err != nil {
			s.log.Error("close", "error", err)
		}
	}()
	s.line = &line{conn: up, node: s.node}
	below, err := s.assemble(calls)
	if err != nil {
		return err
	}
	return s.run(ctx, up, down, below)
}

// run runs what calls stand on, and above it what is called. The lower part ends
// when the upper one has.
func (s *Server) run(ctx context.Context, up, down *mesh.Conn, below []func(context.Context) error) error {
	lower, stopLower := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLower()
	floor, lower := errgroup.WithContext(lower)
	for _, run := range append(below, s.audit.Run) {
		floor.Go(func() error { return run(lower) })
	}
	upper, stopUpper := context.WithCancel(ctx)
	defer stopUpper()
	group, upper := errgroup.WithContext(upper)
	group.Go(func() error { // what calls stand on is gone
		select {
		case <-lower.Done():
			stopUpper()
		case <-upper.Done():
		}
		return nil
	})
	group.Go(func() error {
		select {
		case err := <-s.other:
			return err
		case <-upper.Done():
			return nil
		}
	})
	// Hints are lost with the tool's connection, also while the runtime's own lives on.
	group.Go(func() error { return s.line.pass(upper, up) })
	group.Go(func() error { return s.line.pass(upper, down) })
	group.Go(func() error { return s.keeper.Run(upper) })
	group.Go(func() error { return s.serving.run(upper, down) })
	group.Go(func() error {
		return down.Listen(upper, subject.ForNode(s.node, subject.Changed), []identity.Account{identity.CTL}, s.hint)
	})
	group.Go(func() error { return notify.Watchdog(upper, s.Alive) })
	group.Go(func() error { return s.announce(upper) })
	err := group.Wait()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), waitForTools)
	defer cancel()
	if late := s.serving.calls.Wait(bound); late != nil {
		s.log.Warn("tools are left behind", "error", late)
	}
	stopLower()
	if err = errors.Join(ignore(err), ignore(floor.Wait())); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func ignore(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// assemble makes the parts, and returns what runs below the calls.
func (s *Server) assemble(calls *spool.Spool) ([]func(context.Context) error, error) {
	var err error
	if s.audit, err = tool.NewAudit(tool.AuditOptions{Node: s.node, Spool: calls, Send: s.line.tell, Connected: s.line.news(), Logger: s.log}); err != nil {
		return nil, err
	}
	dispatcher, err := tool.New(tool.Options{Node: s.node, Record: s.audit.Record, Logger: s.log})
	if err != nil {
		return nil, err
	}
	s.serving = &serving{node: s.node, version: s.o.Version, calls: dispatcher, log: s.log, wake: make(chan struct{}, 1)}
	brought, below, err := s.bring(s)
	if err != nil {
		return nil, err
	}
	s.serving.built = brought
	file := kept{filepath.Join(s.o.State, "tools.json")}
	held, err := file.read()
	if err != nil {
		s.log.Error("what was kept cannot be read, controllers are asked", "error", err)
	}
	s.keeper = duty.New(duty.Options{
		Trust: func() duty.Trust {
			return duty.Trust{Mesh: s.who.runtime.Mesh, Node: string(s.node), Key: s.who.runtime.DeclarationKey}
		},
		Mesh: s.line, Keep: file.keep, Serve: s.serving.serve, Held: held, Reconnected: s.line.news(), Logger: s.log,
	})
	return below, nil
}

// machine is what the modules of this program ask this machine through.
func machine(s *Server) (built, []func(context.Context) error, error) {
	reader, err := systemd.NewReader(systemd.ReaderOptions{Logger: s.log})
	if err != nil {
		return nil, nil, err
	}
	acts, err := escalate.NewClient(escalate.ClientOptions{Late: s.late, Logger: s.log})
	if err != nil {
		return nil, nil, err
	}
	m, err := module.New(module.Options{
		Node: string(s.node), Reader: reader, User: acts.User(), Journal: journal.Reader{Boot: &journal.Boot{}}, UserJournal: journalOf,
		Acts: acts, Declared: s.serving.Units,
	})
	if err != nil {
		return nil, nil, err
	}
	b := built{modules.Systemd: m.Tools()}
	return b, []func(context.Context) error{reader.Run, acts.Run}, b.catalogue()
}

// journalOf reads the entries of an account.
func journalOf(uid uint32) module.Journal { return journal.Reader{Scope: unit.User, UID: uid} }

// openSpool opens the spool of calls. Where that cannot be, they wait in a file
// that ends with the process: the node is served all the same.
func (s *Server) openSpool() *spool.Spool {
	calls, err := spool.Open(spool.Options{Path: filepath.Join(s.o.State, "calls.db"), Logger: s.log})
	if err == nil {
		return calls
	}
	s.log.Error("calls are not kept across a restart of the runtime", "error", err)
	if calls, err = spool.Passing(s.log); err != nil {
		s.log.Error("calls cannot be kept", "error", err)
		return nil
	}
	return calls
}

func (s *Server) dial(ctx context.Context, c identity.Credentials) (*mesh.Conn, error) {
	read := again(s.o.Credentials, c, func(err error) {
		select {
		case s.other <- err:
		default:
		}
	})
	return mesh.Connect(context.WithoutCancel(ctx), mesh.Options{
		Credentials: read, Name: string(c.Role) + " " + c.Name, Logger: s.log,
	})
}

// hint takes in that what is to be served may have changed.
func (s *Server) hint(h mesh.Hint) {
	if revision, ok := revisionOf(h.Payload); ok {
		s.keeper.Hint(revision)
	}
}

// late tells the audit what became of an act whose caller had its answer before.
func (s *Server) late(l escalate.Late) { s.audit.Tell(lateEvent(s.node, l)) }

// announce says that the runtime serves what it kept. No mesh is waited for.
func (s *Server) announce(ctx context.Context) error {
	notify.Ready()
	s.log.Info("ready", "node", s.node, "mesh", s.who.runtime.Mesh)
	<-ctx.Done()
	notify.Stopping()
	return nil
}

// Alive returns nil when the loops of the runtime are at work.
func (s *Server) Alive(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.keeper.Standing()
		s.serving.Units()
		s.serving.calls.Served("")
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
