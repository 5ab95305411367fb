// Package host assembles the process that applies declarations to one machine
// and keeps them: ledger, manager, disk, the loop of each scope, the folder of
// declarations, and the socket that says how things stand.
//
// New checks and starts nothing; Run blocks until its context ends and stops
// what it started in reverse order. Ending a host changes nothing on the
// machine: units and jobs stay as they are, and the next host goes on from the
// ledger. Errors of Run are those after which a host cannot go on: another host
// has the ledger or the socket, the ledger is damaged or of a newer version.
package host

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/disk"
	"stead/host/fault"
	"stead/host/journal"
	"stead/host/ledger"
	"stead/host/reconcile"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/host/verify"
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
	Folder  string // of declarations; required
	State   string // default DefaultState
	Socket  string // where it answers; required
	Version string // of stead, for status
	Logger  *slog.Logger
	// Point is called at every boundary between two acts of a pass; nil for none.
	Point func(name string)
}

// Host keeps one machine. Make it with New.
type Host struct {
	o       Options
	log     *slog.Logger
	started time.Time
	boot    string

	mu      sync.Mutex // guards what follows
	systemd string
	source  Source
	loop    *reconcile.Loop
}

// New checks that this process and this machine can keep units.
func New(o Options) (*Host, error) {
	if o.State == "" {
		o.State = DefaultState
	}
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Denied, "run the host", "", errors.New("only root may write unit files")).
			WithHint("sudo stead host run …, or: systemctl start stead-host")
	}
	if _, err := os.Lstat("/run/systemd/system"); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unsupported, "run the host", "", errors.New("systemd is not PID 1 on this machine")).
			WithHint("stead keeps units of systemd; boot the machine, or the container, with systemd as its init")
	}
	dir, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, fault.New(fault.Invalid, "run the host", o.Folder, err)
	}
	o.Folder = dir
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	return &Host{o: o, log: o.Logger, boot: boot, source: Source{Folder: dir}}, nil
}

// Run keeps the machine until ctx ends, and returns nil then.
func (h *Host) Run(ctx context.Context) error {
	h.started = time.Now()
	held, err := lock(lockPath)
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // nothing was written
	listener, err := listen(ctx, h.o.Socket)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveStatus(ctx, listener, h.Status) })
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
	manager, err := systemd.New(systemd.Options{Scope: unit.System, Logger: h.log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return manager.Run(ctx) })
	group.Go(func() error { return h.serve(ctx, manager, book, state) })
	return group.Wait()
}

// serve builds the loop on a manager that answers, and runs it with all that
// feeds it.
func (h *Host) serve(ctx context.Context, manager *systemd.Manager, book *ledger.Ledger, state ledger.State) error {
	path, err := h.meet(ctx, manager)
	if err != nil {
		return err
	}
	d, err := h.openDisk(path)
	if err != nil {
		return err
	}
	watcher, err := disk.NewWatcher(disk.WatcherOptions{Logger: h.log})
	if err != nil {
		return err
	}
	loop := reconcile.New(reconcile.Options{
		Scope: unit.System, ConfigDir: configDir, Manager: manager, Disk: d, Ledger: book, Watcher: watcher,
		Adviser: adviser{journal.Reader{Scope: unit.System}}, Clock: clock(h.boot), Logger: h.log,
		Memories: state.Memories(unit.System), Memory: state.Managers[unit.System], Point: h.o.Point,
	})
	k, err := newKeeper(h, book, loop, state)
	if err != nil {
		return err
	}
	h.mu.Lock()
	h.loop = loop
	h.mu.Unlock()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.Run(ctx) })
	group.Go(func() error { return loop.Run(ctx) })
	group.Go(func() error { return k.run(ctx) })
	group.Go(func() error { return watchdog(ctx, loop) })
	group.Go(func() error { return h.announce(ctx, k.read, loop) })
	return group.Wait()
}

func ignore(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// meet waits for the manager's first answer: its search path and its version.
func (h *Host) meet(ctx context.Context, m *systemd.Manager) ([]string, error) {
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
	d, err := disk.New(disk.Options{ConfigDir: configDir, UnitPath: path, Kept: filepath.Join(h.o.State, "kept"),
		Specifiers: specifiers, Version: version(h.systemd), Logger: h.log})
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

// announce says that the host serves, when the folder was read and what is
// declared was looked at.
func (h *Host) announce(ctx context.Context, read <-chan struct{}, loop *reconcile.Loop) error {
	select {
	case <-read:
	case <-ctx.Done():
		return nil
	}
	if err := loop.Alive(ctx); err != nil {
		return ignore(err)
	}
	ready()
	h.log.Info("ready", "folder", h.o.Folder, "declarations", len(loop.Reports()))
	<-ctx.Done()
	h.log.Info("ending, every unit stays as it is")
	stopping()
	return nil
}

// Status says how everything stands at this moment.
func (h *Host) Status() Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	node, err := os.Hostname()
	if err != nil {
		node = "this machine"
	}
	st := Status{Node: node, Version: h.o.Version, Systemd: h.systemd, Started: h.started, Source: h.source}
	if h.loop != nil {
		st.Reports = h.loop.Reports()
	}
	return st
}

// adviser joins the two readers of what systemd wrote.
type adviser struct{ journal.Reader }

// Verify implements the loop's adviser.
func (adviser) Verify(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string {
	return verify.Run(ctx, files)
}
