package delegate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"stead/host/become"
	"stead/host/disk"
	"stead/host/fault"
	"stead/host/install"
	"stead/host/plan"
	"stead/host/shape"
)

// Config says which folders a child serves.
type Config struct {
	Name     string   `json:"name"` // of the account
	Group    string   `json:"group"`
	UID      int      `json:"uid"`
	GID      int      `json:"gid"`
	Home     string   `json:"home"`
	UnitPath []string `json:"unit_path"` // the user manager's search path
	Version  int      `json:"version"`   // of systemd
}

// ConfigDir is where units of a user are written.
func (c Config) ConfigDir() string { return filepath.Join(c.Home, ".config/systemd/user") }

// Kept is where copies lie of what is overwritten.
func (c Config) Kept() string { return filepath.Join(c.Home, ".local/state/stead/kept") }

func (c Config) runtimeDir() string { return "/run/user/" + strconv.Itoa(c.UID) + "/systemd/user" }

// Be is what a process does that was started with --as (host/become): it becomes
// that account, and runs the program in its place, if there is one, or serves on
// standard input and output.
func Be(ctx context.Context, as string, program []string, log *slog.Logger) error {
	limits := OwnLimits()
	who, err := become.Parse(as)
	switch {
	case err != nil:
		return err
	case len(program) > 0:
		return who.Run(program...)
	}
	if err := who.Become(); err != nil {
		return err
	}
	return Serve(ctx, Ends{In: os.Stdin, Out: os.Stdout, Logger: log, Limits: limits})
}

// Ends are what a child has of its parent.
type Ends struct {
	In     io.Reader
	Out    io.Writer
	Logger *slog.Logger
	Limits Limits // as they were before it was the account
}

// Limits are the limits of this process, each by its number (getrlimit(2)).
type Limits [16]unix.Rlimit

// OwnLimits are those of this moment.
func OwnLimits() (l Limits) {
	for i := range l {
		_ = unix.Getrlimit(i, &l[i]) // it fails for numbers that there are not
	}
	return l
}

// errLimits ends a child that somebody took the means from: processes of the
// account can do so, and cannot give them back.
var errLimits = errors.New("its limits were changed by another process")

// Serve is the child: it does what it is told on In, and answers on Out, until In
// ends. It refuses to run as root.
func Serve(ctx context.Context, e Ends) error {
	const op = "serve as an account"
	if os.Geteuid() == 0 || os.Getuid() == 0 {
		return fault.New(fault.Refused, op, "uid 0", errors.New("it is there to be somebody else than root"))
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &child{out: e.Out, log: e.Logger, services: make(map[string]*shape.Service)}
	defer c.wg.Wait()
	defer cancel()
	r := bufio.NewReaderSize(e.In, 64<<10)
	for {
		text, raw, err := receive(r, func() (int, int) { return maxAsk, maxAsk })
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && OwnLimits() != e.Limits {
			err = errLimits
		}
		var a ask
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			return fault.New(fault.Failed, op, "", err)
		}
		answer, bytes := c.do(ctx, a, raw)
		answer.ID = a.ID
		if err := c.send(answer, bytes); err != nil {
			return fault.New(fault.Failed, op, "", err)
		}
	}
}

// child is what a Serve holds.
type child struct {
	log      *slog.Logger
	disk     *disk.Disk
	watcher  *disk.Watcher
	services map[string]*shape.Service // by digest
	wg       sync.WaitGroup

	mu  sync.Mutex // guards out
	out io.Writer
}

func (c *child) send(r reply, raw []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return send(c.out, r, raw)
}

func (c *child) do(ctx context.Context, a ask, raw []byte) (reply, []byte) {
	if a.Op == opOpen {
		return reply{Err: fault.Tell(c.open(ctx, a.Config))}, nil
	}
	if c.disk == nil {
		return reply{Err: fault.Tell(fault.New(fault.Internal, string(a.Op), "", errors.New("no folders yet")))}, nil
	}
	if a.Anew {
		clear(c.services)
	}
	for digest, s := range a.Services {
		c.services[digest] = s
	}
	switch a.Op {
	case opWatch:
		c.watcher.Set(a.Paths)
		return reply{}, nil
	case opLook, opLookAfter:
		return c.look(ctx, a, raw), nil
	case opSnapshot, opPeek:
		ask := c.disk.Snapshot
		if a.Op == opPeek {
			ask = c.disk.Peek
		}
		entry, data, err := ask(a.Paths[0])
		return reply{Entry: entry, Err: fault.Tell(err)}, data
	case opApply:
		done := c.disk.Apply(ctx, changesOf(a.Changes, raw))
		return reply{Errs: tellAll(done.Errs), Made: done.Made, Kept: done.Kept}, nil
	case opMissing:
		return reply{Paths: c.disk.Missing(a.Paths)}, nil
	case opRemove:
		return reply{Paths: c.disk.RemoveDirs(a.Paths)}, nil
	}
	return reply{Err: fault.Tell(fault.New(fault.Internal, string(a.Op), "", errors.New("unknown")))}, nil
}

// open makes disk and watcher, anew where there are some.
func (c *child) open(ctx context.Context, cfg *Config) error {
	specifiers, err := disk.HostSpecifiers("/")
	if err != nil {
		return err
	}
	specifiers = ofAccount(specifiers, *cfg)
	d, err := disk.New(disk.Options{ConfigDir: cfg.ConfigDir(), RuntimeDir: cfg.runtimeDir(), UnitPath: cfg.UnitPath, Kept: cfg.Kept(),
		UID: cfg.UID, GID: cfg.GID, Home: cfg.Home, Specifiers: specifiers, Version: cfg.Version, Logger: c.log})
	if err != nil {
		return err
	}
	if n, err := d.Sweep(); n > 0 || err != nil {
		c.log.Info("swept up after an earlier host", "files", n, "error", err)
	}
	c.disk, c.services = d, make(map[string]*shape.Service)
	if c.watcher != nil {
		return nil
	}
	if c.watcher, err = disk.NewWatcher(disk.WatcherOptions{Logger: c.log}); err != nil {
		return err
	}
	c.wg.Go(func() { _ = c.watcher.Run(ctx) })
	c.wg.Go(func() { c.tell(ctx) })
	return nil
}

// ofAccount are the specifiers as the manager of the account resolves them.
func ofAccount(s install.Specifiers, cfg Config) install.Specifiers {
	s.User, s.UID = cfg.Name, strconv.Itoa(cfg.UID)
	s.Group, s.GID = cfg.Group, strconv.Itoa(cfg.GID)
	return s
}

// tell hands over what the watcher saw.
func (c *child) tell(ctx context.Context) {
	const most = 1 << 10 // paths of one message
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.watcher.Wake():
		}
		paths, all := c.watcher.Drain()
		if len(paths) > most {
			paths, all = nil, true
		}
		if c.send(reply{Changed: true, Paths: paths, All: all}, nil) != nil {
			return // the other end is gone, and Serve ends too
		}
	}
}

func (c *child) look(ctx context.Context, a ask, raw []byte) reply {
	qs := make([]plan.Query, len(a.Queries))
	for i, q := range a.Queries {
		qs[i] = q.Query
		if q.Declared != "" {
			if qs[i].Service = c.services[q.Declared]; qs[i].Service == nil {
				return reply{Err: fault.Tell(fault.New(fault.Internal, "look", string(q.Unit), errors.New("its declaration was not sent")))}
			}
		}
	}
	var all []plan.Disk
	var err error
	if a.Op == opLookAfter {
		all, err = c.disk.LookAfter(ctx, qs, changesOf(a.Changes, raw))
	} else {
		all, err = c.disk.Look(ctx, qs)
	}
	r := reply{Err: fault.Tell(err), Disks: make([]looked, len(all))}
	for i, d := range all {
		d.Wants = slices.Clone(d.Wants)
		for j := range d.Wants {
			d.Wants[j].Content = nil
		}
		r.Disks[i] = looked{Disk: d, Errs: tellAll(d.Errs)}
		r.Disks[i].Disk.Errs = nil
	}
	return r
}

func changesOf(cs []change, raw []byte) []plan.Change {
	all := make([]plan.Change, len(cs))
	for i, c := range cs {
		all[i] = c.Change
		if c.Size >= 0 {
			n := min(c.Size, len(raw))
			all[i].Content, raw = raw[:n:n], raw[n:]
		}
	}
	return all
}

func tellAll(errs []error) []*fault.Told {
	if errs == nil {
		return nil
	}
	all := make([]*fault.Told, len(errs))
	for i, err := range errs {
		all[i] = fault.Tell(err)
	}
	return all
}
