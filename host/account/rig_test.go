package account

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// world is a machine with the login opal, of uid 1001, whose manager does not run.
type world struct {
	t      *testing.T
	passwd string // folder
	files  chan struct{}

	mu      sync.Mutex
	units   map[unit.Name]unit.Status
	silent  error // of PID 1
	broken  bool  // the manager fails to start
	slow    bool  // the manager stays on its way up
	deaf    bool  // logind lets accounts linger and starts nothing
	runs    int   // how often the manager was started
	starts  int   // by a job
	notify  chan<- struct{}
	login   error // of logind
	linger  bool
	session int
	turned  []bool // what logind was asked for
	record  *plan.Account
	full    error // of the ledger
	homes   map[string]home
	hanging chan struct{} // a look at a home waits for it
	socket  error         // what dialing finds; nil is the manager
	peer    uint32        // who listens; 0 is the manager
	others  []unit.Status // what runs in the account's manager besides
	told    []string
	k       *Keeper
}

const opals = unit.Name("user@1001.service")

func newWorld(t *testing.T) *world {
	w := &world{t: t, passwd: t.TempDir(), files: make(chan struct{}, 1),
		units: map[unit.Name]unit.Status{}, homes: map[string]home{"/srv/opal": {folder: true, owner: 1001}}}
	w.logins("opal:x:1001:1001::/srv/opal:/bin/sh")
	require.NoError(t, os.WriteFile(filepath.Join(w.passwd, "group"), []byte("root:x:0:\nopal:x:1001:\naudio:x:29:ruby,opal\nopals:x:30:opals\n"), 0o644))
	w.units[opals] = unit.Status{Asked: opals, Load: unit.Loaded, Active: unit.Inactive}
	return w
}

// logins makes the login lines of the machine those of root and lines.
func (w *world) logins(lines ...string) {
	w.t.Helper()
	text := "root:x:0:0:root:/root:/bin/sh\n"
	for _, l := range lines {
		text += l + "\n"
	}
	require.NoError(w.t, os.WriteFile(filepath.Join(w.passwd, "passwd"), []byte(text), 0o644))
	hand(w.files)
}

// Set implements watcher.
func (w *world) Set([]string) {}

// Wake implements watcher.
func (w *world) Wake() <-chan struct{} { return w.files }

// Drain implements watcher.
func (w *world) Drain() ([]string, bool) { return nil, true }

// Observe implements system.
func (w *world) Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent != nil {
		return nil, w.silent
	}
	out := make([]unit.Status, len(names))
	for i, n := range names {
		s, is := w.units[n]
		if !is {
			s = unit.Status{Load: unit.NotFound, Active: unit.Inactive}
		}
		s.Asked = n
		out[i] = s
	}
	return out, ctx.Err()
}

// Notify implements system.
func (w *world) Notify(ch chan<- struct{}, names ...unit.Name) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notify = ch; len(names) == 0 {
		w.notify = nil
	}
}

// Enqueue implements system.
func (w *world) Enqueue(_ context.Context, jobs []unit.JobRequest) []unit.Queued {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts++
	w.come()
	return []unit.Queued{{Request: jobs[0], ID: 1}}
}

// come starts the manager; the lock is held.
func (w *world) come() {
	w.runs++
	s := w.units[opals]
	s.Active, s.MainPID, s.Trouble = unit.Active, uint32(100+w.runs), unit.Trouble{} //nolint:gosec // few
	s.Invocation = fmt.Sprint("run", w.runs)
	switch {
	case w.slow:
		s.Active = unit.Activating
	case w.broken:
		s.Active, s.MainPID, s.Trouble = unit.FailedState, 0, unit.Trouble{Result: "exit-code", ExitStatus: 1}
	}
	w.units[opals] = s
	w.happened()
}

func (w *world) happened() {
	if w.notify != nil {
		hand(w.notify)
	}
}

// change changes the world, and PID 1 says so.
func (w *world) change(f func()) {
	w.mu.Lock()
	f()
	w.happened()
	w.mu.Unlock()
}

// ends ends the manager.
func (w *world) ends() {
	w.units[opals] = unit.Status{Load: unit.Loaded, Active: unit.Inactive}
}

// Login implements logind.
func (w *world) Login(_ context.Context, name string, uid uint32) (bool, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.linger, w.session, w.login
}

// Linger implements logind.
func (w *world) Linger(_ context.Context, _ uint32, on bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.login != nil {
		return w.login
	}
	w.turned = append(w.turned, on)
	w.linger = on
	switch {
	case on && w.units[opals].Active == unit.Inactive && !w.deaf:
		time.AfterFunc(100*time.Millisecond, func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.come()
		})
	case !on && w.session == 0:
		w.ends()
		w.happened()
	}
	return nil
}

// Account implements ledger.
func (w *world) Account(a *plan.Account) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full == nil {
		w.record = a
	}
	return w.full
}

// stat stands for the kernel.
func (w *world) stat(dir string) (fs.FileInfo, error) {
	w.mu.Lock()
	h, is := w.homes[dir]
	hanging := w.hanging
	w.mu.Unlock()
	if hanging != nil {
		<-hanging
	}
	if !is {
		return nil, fs.ErrNotExist
	}
	return info{h: h}, h.err
}

type info struct {
	fs.FileInfo
	h home
}

func (i info) IsDir() bool { return i.h.folder }
func (i info) Sys() any    { return &syscall.Stat_t{Uid: uint32(i.h.owner)} } //nolint:gosec // small

// manager is the account's manager as far as a Keeper asks it.
type manager struct{ w *world }

// Running implements tenant.
func (m manager) Running(context.Context) ([]unit.Name, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	names := []unit.Name{"init.scope", "dbus.service", "-.slice", "default.target", "systemd-tmpfiles-clean.timer"}
	for _, s := range m.w.others {
		names = append(names, s.Asked)
	}
	return names, nil
}

// Observe implements tenant.
func (m manager) Observe(_ context.Context, names []unit.Name) ([]unit.Status, error) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	var out []unit.Status
	for _, n := range names {
		for _, s := range m.w.others {
			if s.Asked == n {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// dial does what a systemd.Manager does with its Guard.
func (w *world) dial(ctx context.Context, k *Keeper) {
	delay := 50 * time.Millisecond
	for ctx.Err() == nil {
		err := w.connect(ctx, k)
		k.Dialed(err)
		if delay = min(2*delay, 5*time.Second); err == nil {
			pid := w.main()
			for ctx.Err() == nil && w.main() == pid {
				time.Sleep(time.Millisecond * 10)
			}
			k.Dialed(fault.New(fault.Unavailable, "", "", errors.New("lost")))
			delay = 50 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-k.Redial():
		case <-time.After(delay):
		}
	}
}

func (w *world) main() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.units[opals].MainPID
}

func (w *world) connect(ctx context.Context, k *Keeper) error {
	uid, err := k.UID()
	if err != nil {
		return err
	}
	w.mu.Lock()
	pid, err := w.peer, w.socket
	s := w.units[opals]
	w.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !s.Active.Up():
		return fault.New(fault.NotFound, "", "", errors.New("no socket"))
	case pid == 0:
		pid = s.MainPID
	}
	return k.Peer(ctx, pid, uid)
}

// keep runs a Keeper of opal until the test ends.
func (w *world) keep(o Options) *Keeper {
	w.t.Helper()
	o.System, o.Logind, o.Ledger, o.Boot, o.Logins, o.Watcher = w, w, w, "boot", Logins{w.passwd}, w
	o.Tell = func(s string) { w.told = append(w.told, s) }
	k, err := New(o)
	require.NoError(w.t, err)
	k.prober.stat = w.stat
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = k.Run(ctx, manager{w}) })
	all.Go(func() { w.dial(ctx, k) })
	w.t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	w.k = k
	return k
}

// soon lets some seconds go by.
func soon() {
	time.Sleep(6 * time.Second)
	synctest.Wait()
}

func (w *world) ready() {
	w.t.Helper()
	soon()
	require.Nil(w.t, w.k.Obstacle())
	require.True(w.t, w.k.State().Ready)
}

func (w *world) barred(r report.Reason) *report.Obstacle {
	w.t.Helper()
	soon()
	o := w.k.Obstacle()
	require.NotNil(w.t, o, "nothing is in the way, not even %s", r)
	require.Equal(w.t, r, o.Reason, o.Text)
	require.False(w.t, w.k.State().Ready)
	return o
}

// mount makes a mount unit stand so.
func (w *world) mount(n unit.Name, a unit.ActiveState) {
	w.units[n] = unit.Status{Load: unit.Loaded, Active: a}
}
