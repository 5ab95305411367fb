// Package host assembles the process that applies declarations to one machine
// and keeps them: ledger, manager, disk, the loop of each scope, where the
// declarations come from, and the socket that says how things stand.
//
// They come from a folder of files, or from a mesh whose credentials lie in a
// folder. What was accepted once is in the ledger and is kept whatever becomes of
// folder, credentials, network and controllers. A host of one kind keeps what it
// finds of the other until it is declared to it again.
//
// New checks and starts nothing; Run blocks until its context ends and stops
// what it started in reverse order. Ending a host changes nothing on the
// machine: units and jobs stay as they are, and the next host goes on from the
// ledger. Errors of Run are those after which a host cannot go on: another host
// has the ledger or the socket, the ledger is damaged or of a newer version.
package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/account"
	"stead/host/disk"
	"stead/host/fault"
	"stead/host/ledger"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/notify"
	"stead/mesh/wire"
)

// DefaultState is where a host keeps its ledger and the copies it made of what
// it overwrote.
const DefaultState = "/var/lib/stead/host"

const (
	configDir = "/etc/systemd/system"
	// patience is how long the manager may take to answer at the start before
	// the host says so in its log, again and again.
	patience = 15 * time.Second
)

// Options are what a Host is made of.
type Options struct {
	// Folder is one of declarations, Credentials one of a node's credentials for a
	// mesh that declares them. With both it is the mesh where there are credentials,
	// or something of a mesh is held, and else the folder.
	Folder      string
	Credentials string
	// Account is the operator account of a host on a folder, and Linger whether its
	// manager is to run without a login: auto (the default), on or off. In a mesh the
	// node's record says both.
	Account string
	Linger  string
	State   string // default DefaultState
	Socket  string // where it answers; "" for nowhere
	Version string // of stead, for status
	Logger  *slog.Logger
	// Machine is what is kept; nil for the one that the process runs on.
	Machine *Machine
	// Point is called at every boundary between two acts of a pass, with its name, that
	// of the user scope with "user " before; nil for none.
	Point func(name string)
}

// Host keeps one machine. Make it with New.
type Host struct {
	o       Options
	log     *slog.Logger
	machine *Machine
	started time.Time

	mu      sync.Mutex // guards what follows
	systemd string
	source  Source // of a folder; that of a mesh is member's
	loop    loop
	users   *users
	member  *member
}

// New checks that this process and this machine can keep units.
func New(o Options) (*Host, error) {
	if o.State == "" {
		o.State = DefaultState
	}
	if o.Folder == "" && o.Credentials == "" {
		return nil, fault.New(fault.Invalid, "run the host", "", errors.New("a folder of declarations or one of credentials is wanted"))
	}
	if err := o.account(); err != nil {
		return nil, err
	}
	if o.Machine == nil {
		m, err := thisMachine(o.Logger)
		if err != nil {
			return nil, err
		}
		o.Machine = m
	}
	for _, dir := range []*string{&o.Folder, &o.Credentials} {
		if *dir == "" {
			continue
		}
		whole, err := filepath.Abs(*dir)
		if err != nil {
			return nil, fault.New(fault.Invalid, "run the host", *dir, err)
		}
		*dir = whole
	}
	return &Host{o: o, log: o.Logger, machine: o.Machine, started: time.Now(), source: Source{Folder: o.Folder}}, nil
}

// account judges the settings of the operator account, and fills in the default.
func (o *Options) account() error {
	bad := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Invalid, "run the host", "", fmt.Errorf(format, args...))
	}
	o.Linger = cmp.Or(o.Linger, wire.Lingers()[0])
	switch {
	case o.Account == "root":
		return bad("the account root has the manager of the system itself").WithHint("name the login whose user manager runs user units, or none")
	case o.Account != "" && !wire.Login(o.Account):
		return bad("%.80q is no name of an account", o.Account)
	case !slices.Contains(wire.Lingers(), o.Linger):
		return bad("%.60q is no value of linger", o.Linger).WithHint("write " + strings.Join(wire.Lingers(), ", "))
	}
	return nil
}

// Run keeps the machine until ctx ends, and returns nil then.
func (h *Host) Run(ctx context.Context) error {
	if h.machine.Lock != "" {
		held, err := lock(h.machine.Lock)
		if err != nil {
			return err
		}
		defer held.Close() //nolint:errcheck // nothing was written
	}
	group, ctx := errgroup.WithContext(ctx)
	if h.o.Socket != "" {
		listener, err := listen(ctx, h.o.Socket)
		if err != nil {
			return err
		}
		group.Go(func() error { return serveStatus(ctx, listener, h.Status) })
	}
	group.Go(func() error { return h.keep(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// keep runs everything behind the socket.
func (h *Host) keep(ctx context.Context) error {
	book, err := ledger.Open(ledger.Options{Path: filepath.Join(h.o.State, "ledger.db"), Logger: h.log})
	if err != nil {
		return err
	}
	defer func() {
		if err := book.Close(); err != nil {
			h.log.Error("close", "error", err)
		}
	}()
	state, err := book.Load()
	if err != nil {
		return err
	}
	h.choose(state)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.machine.Manager.Run(ctx) })
	group.Go(func() error { return h.serve(ctx, book, state) })
	return group.Wait()
}

// choose makes the source one of the two that are given. A machine that holds
// something of a mesh stays in it while its credentials are missing: what it holds
// is in force, and is ended by nothing that a folder says.
func (h *Host) choose(state ledger.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.o.Folder == "" || h.o.Credentials == "" {
		return
	}
	_, err := os.Stat(h.o.Credentials)
	if errors.Is(err, os.ErrNotExist) && state.Held == nil {
		h.o.Credentials = ""
		return
	}
	h.o.Folder, h.source.Folder = "", ""
}

// serve builds the loop on a manager that answers, and runs it with all that
// feeds it.
func (h *Host) serve(ctx context.Context, book *ledger.Ledger, state ledger.State) error {
	m := h.machine
	path, err := h.meet(ctx, m.Manager)
	if err != nil {
		return err
	}
	d, err := h.openDisk(path)
	if err != nil {
		return err
	}
	watcher, err := m.watcher(h.log)
	if err != nil {
		return err
	}
	loop := reconcile.New(reconcile.Options{
		Scope: unit.System, ConfigDir: m.ConfigDir, Manager: m.Manager, Disk: d, Ledger: book, Watcher: watcher,
		Adviser: m.Adviser, Clock: m.clock(), Logger: h.log,
		Memories: state.Memories(unit.System), Memory: state.Managers[unit.System], Point: h.o.Point,
		GivenBack: h.givenBack,
	})
	users := newUsers(h, book)
	both := newScopes(loop, users)
	h.mu.Lock()
	h.users = users
	h.mu.Unlock()
	feed, first, err := h.feeder(book, both, state)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.loop = both
	h.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return loop.Run(ctx) })
	group.Go(func() error { return users.run(ctx) })
	group.Go(func() error { return both.run(ctx) })
	group.Go(func() error { return feed(ctx) })
	group.Go(func() error { return notify.Watchdog(ctx, loop.Alive) })
	group.Go(func() error { return h.announce(ctx, first, loop) })
	return group.Wait()
}

// feeder makes what tells the loop the declarations: a folder's keeper, or the
// member of a mesh. First is closed when the loop was told for the first time.
func (h *Host) feeder(book *ledger.Ledger, loop keeping, state ledger.State) (run func(context.Context) error, first <-chan struct{}, err error) {
	if h.o.Folder != "" {
		k, err := newKeeper(h, book, loop, state)
		if err != nil {
			return nil, nil, err
		}
		h.users.settle(h.o.Account, account.Linger(h.o.Linger))
		return k.run, k.read, nil
	}
	m, err := newMember(h, book, loop, state)
	if err != nil {
		return nil, nil, err
	}
	h.mu.Lock()
	h.member = m
	h.mu.Unlock()
	return m.run, m.first, nil
}

// givenBack tells the mesh, if there is one, of a unit of which nothing is left to
// do.
func (h *Host) givenBack(r *report.Report) {
	h.mu.Lock()
	m := h.member
	h.mu.Unlock()
	if m != nil {
		m.box.GivenBack(r)
	}
}

func ignore(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// meet waits for the manager's first answer: its search path and its version.
func (h *Host) meet(ctx context.Context, m Manager) ([]string, error) {
	for {
		bound, cancel := context.WithTimeout(ctx, patience)
		path, err := m.UnitPath(bound)
		version, vErr := m.Version(bound)
		cancel()
		if err == nil && vErr == nil {
			h.mu.Lock()
			h.systemd = version
			h.mu.Unlock()
			return path, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		h.log.Warn("manager does not answer", "scope", unit.System, "error", errors.Join(err, vErr), "retry", "now")
	}
}

func (h *Host) openDisk(path []string) (*disk.Disk, error) {
	specifiers, err := disk.HostSpecifiers("/")
	if err != nil {
		return nil, err
	}
	d, err := disk.New(disk.Options{ConfigDir: h.machine.ConfigDir, UnitPath: path, Kept: filepath.Join(h.o.State, "kept"),
		Logins: account.Logins{}, Specifiers: specifiers, Version: version(h.systemdVersion()), Logger: h.log})
	if err != nil {
		return nil, err
	}
	if n, err := d.Sweep(); n > 0 || err != nil {
		h.log.Info("swept up after an earlier host", "files", n, "error", err)
	}
	return d, nil
}

// version reads the number of systemd's version, such as "252.38-1~deb12u1"; 0
// when there is none.
func version(s string) int {
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}

// systemdVersion is what the manager says; "" before it first answered, and while
// it does not.
func (h *Host) systemdVersion() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.machine.Manager.Connected() {
		return ""
	}
	return h.systemd
}

// announce says that the host serves, when the declarations were handed over and
// looked at.
func (h *Host) announce(ctx context.Context, read <-chan struct{}, loop *reconcile.Loop) error {
	select {
	case <-read:
	case <-ctx.Done():
		return nil
	}
	if err := loop.Alive(ctx); err != nil {
		return ignore(err)
	}
	notify.Ready()
	h.log.Info("ready", "from", cmp.Or(h.o.Folder, h.o.Credentials), "declarations", len(loop.Reports()))
	<-ctx.Done()
	h.log.Info("ending, every unit stays as it is")
	notify.Stopping()
	return nil
}

// Status says how everything stands at this moment.
func (h *Host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := Status{Node: hostname(), Version: h.o.Version, Systemd: h.systemd, Started: h.started, Source: h.source}
	switch {
	case h.member != nil:
		st.Node, st.Source = h.member.node(), h.member.status()
	case h.o.Credentials != "":
		st.Source.Mesh = &Membership{Credentials: h.o.Credentials}
	}
	if h.loop != nil {
		st.Reports = h.loop.Reports()
	}
	if h.users != nil {
		st.Account = h.users.account()
	}
	return st
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "this machine"
	}
	return name
}
