package delegate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

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

// Harden takes from this process what the account could reach it by: it cannot be
// traced by others of its uid, and keeps no core. It is called before the first
// message.
func Harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fault.New(fault.Failed, "serve as an account", "", fmt.Errorf("dumpable: %w", err))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fault.New(fault.Failed, "serve as an account", "", fmt.Errorf("no new privileges: %w", err))
	}
	return nil
}

// Serve is the child: it does what it is told on in, and answers on out, until in
// ends. It refuses to run as root.
func Serve(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	if os.Geteuid() == 0 || os.Getuid() == 0 {
		return fault.New(fault.Refused, "serve as an account", "uid 0", errors.New("it is there to be somebody else than root"))
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &child{out: out, log: log, services: make(map[string]*shape.Service)}
	defer c.wg.Wait()
	defer cancel()
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, raw, err := receive(r, func() (int, int) { return maxAsk, maxAsk })
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fault.New(fault.Failed, "serve as an account", "", err)
		}
		var a ask
		if err := json.Unmarshal(text, &a); err != nil {
			return fault.New(fault.Failed, "serve as an account", "", err)
		}
		answer, bytes := c.do(ctx, a, raw)
		answer.ID = a.ID
		if err := c.send(answer, bytes); err != nil {
			return fault.New(fault.Failed, "serve as an account", "", err)
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
		UID: cfg.UID, GID: cfg.GID, Specifiers: specifiers, Version: cfg.Version, Logger: c.log})
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
	used := make(map[string]bool, len(qs))
	for i, q := range a.Queries {
		qs[i] = q.Query
		if q.Declared != "" {
			if qs[i].Service = c.services[q.Declared]; qs[i].Service == nil {
				return reply{Err: fault.Tell(fault.New(fault.Internal, "look", string(q.Unit), errors.New("its declaration was not sent")))}
			}
			used[q.Declared] = true
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
