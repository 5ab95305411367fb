package escalate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

func TestMain(m *testing.M) {
	if f, ok := others()[os.Getenv(otherEnv)]; ok {
		os.Exit(f())
	}
	if len(os.Args) > 1 {
		if f, ok := commands()[os.Args[1]]; ok {
			os.Exit(runCommand(f))
		}
	}
	goleak.VerifyTestMain(m)
}

// pid1 is a fake manager that also says who is the main process, and ties that a
// test makes up.
type pid1 struct {
	*systemdtest.Fake

	mu    sync.Mutex
	main  unit.Process
	mark  uint64
	asked int
	err   error
	ties  map[unit.Name]unit.Ties
	// untold are units that it says nothing of when a job ends.
	untold map[unit.Name]bool
	deaf   bool // what it says is not heard: there is no mark
	// tiesErr is answered in place of ties.
	tiesErr error
	// services are the main processes of others than the runtime.
	services map[unit.Name]unit.Process
}

func (p *pid1) Process(_ context.Context, n unit.Name) (unit.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	if n != Runtime {
		if main, is := p.services[n]; is {
			return main, p.err
		}
		return unit.Process{UID: unit.NoUID}, p.err
	}
	return p.main, p.err
}

// Standing says nothing of units that are not told of.
func (p *pid1) Standing(n unit.Name) (active unit.ActiveState, sub string, ok bool) {
	p.mu.Lock()
	untold := p.untold[n]
	p.mu.Unlock()
	seen, err := p.Observe(context.Background(), []unit.Name{n})
	if err != nil || untold {
		return "", "", false
	}
	return seen[0].Active, seen[0].Sub, true
}

func (p *pid1) setMain(main unit.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.main = main
	p.mark++
}

// Mark is another one with each main process.
func (p *pid1) Mark(unit.Name) unit.Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deaf {
		return unit.Mark{}
	}
	return unit.MarkOf(1, p.mark)
}

func (p *pid1) Ties(ctx context.Context, names []unit.Name) ([]unit.Ties, error) {
	seen, err := p.Observe(ctx, names)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err = errors.Join(err, p.tiesErr); err != nil {
		return nil, err
	}
	out := make([]unit.Ties, len(names))
	for i, n := range names {
		out[i] = p.ties[n]
		st := seen[i]
		out[i].ID, out[i].Load, out[i].Active, out[i].Sub, out[i].Invocation = st.ID, st.Load, st.Active, st.Sub, st.Invocation
	}
	return out, nil
}

func (p *pid1) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	seen, err := p.Observe(ctx, names)
	out := make([]unit.Listed, len(seen))
	for i, st := range seen {
		out[i] = unit.Listed{Name: st.ID, Load: st.Load, Active: st.Active, Sub: st.Sub}
	}
	return out, err
}

func me() unit.Process {
	return unit.Process{PID: uint32(os.Getpid()), UID: uint32(os.Getuid()), Invocation: strings.Repeat("a", 32)}
}

// rig is a manager, a socket as systemd keeps it, and helpers and clients on it.
type rig struct {
	t      *testing.T
	m      *pid1
	dir    string
	path   string
	calls  string
	socket *os.File
	log    *record
	opal   *opal // the account; nil: user scope is not served
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, dir: t.TempDir(), log: &record{}}
	r.path, r.calls = filepath.Join(r.dir, "s"), filepath.Join(r.dir, "run", "calls")
	fake := systemdtest.NewFake(systemdtest.Options{Dirs: []string{r.dir}})
	r.m = &pid1{Fake: fake, main: me(), ties: map[unit.Name]unit.Ties{}}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: r.path, Net: "unix"})
	require.NoError(t, err)
	ln.SetUnlinkOnClose(false)
	r.socket, err = ln.File()
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- fake.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
		fake.Close()
		require.NoError(t, r.socket.Close())
		if t.Failed() {
			t.Log(r.log.text())
		}
	})
	return r
}

// unit writes unit files: a notify service stays in its start until Ready.
func (r *rig) unit(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
	_, err := r.m.Other().Reload(context.Background())
	require.NoError(r.t, err)
}

const (
	sleeper = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
	slow    = "[Service]\nType=notify\nExecStart=/bin/sleep infinity\n"
)

// helper runs one until the function it returns is called.
func (r *rig) helper() (stop func()) {
	r.t.Helper()
	l, err := net.FileListener(r.socket)
	require.NoError(r.t, err)
	ln := l.(*net.UnixListener)
	ln.SetUnlinkOnClose(false)
	o := Options{Listener: ln, Manager: r.m, Calls: r.calls, Logger: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	if r.opal != nil {
		o.Users, o.Login, o.Account = r.opal.users, r.opal.login, r.opal.file
	}
	s, err := New(o)
	require.NoError(r.t, err)
	if r.opal != nil && r.opal.keep > 0 {
		s.tenants.keep = r.opal.keep
	}
	return r.run(s.Run)
}

// client runs one until the function it returns is called.
func (r *rig) client(late func(Late)) (*Client, func()) {
	r.t.Helper()
	c, err := NewClient(ClientOptions{Path: r.path, Late: late, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(r.t, err)
	return c, r.run(c.Run)
}

func (r *rig) run(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			require.NoError(r.t, err)
		case <-time.After(20 * time.Second):
			r.t.Error("it does not end")
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// did is what the manager was asked to do, reloads aside.
func (r *rig) did() []string {
	return slices.DeleteFunc(r.m.Log(), func(s string) bool { return s == "reload" })
}

func bound(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// later collects late ends.
type later struct {
	mu  sync.Mutex
	all []Late
}

func (l *later) take(e Late) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, e)
}

func (l *later) seen() []Late {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.all)
}

// one waits for the only late end.
func (l *later) one(t *testing.T) Late {
	t.Helper()
	require.Eventually(t, func() bool { return len(l.seen()) == 1 }, 10*time.Second, time.Millisecond)
	return l.seen()[0]
}

// record is a log that may be read while it is written.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

func (r *rig) logged(parts ...string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool {
		for line := range strings.Lines(r.log.text()) {
			if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
				return true
			}
		}
		return false
	}, 5*time.Second, time.Millisecond, fmt.Sprint(parts))
}
