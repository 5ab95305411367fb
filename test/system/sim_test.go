package system

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/controller"
	"stead/host"
	"stead/host/plan"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/wire"
	"stead/modules"
)

// simulation is a mesh in this process: a real controller with its NATS server,
// and real hosts over fake service managers, each in a folder of its own.
type simulation struct {
	t    *testing.T
	dir  string
	mesh string // the controller's folder
	keys *identity.Mesh
	urls []string
	log  *lines
	// servers are NATS servers that the controller uses; without any it runs one.
	servers []string

	modules        []modules.Manifest // that the controller brings; nil: those that are built in
	stopController func()
}

// lines keeps the last of a log.
type lines struct {
	mu   sync.Mutex
	text []string
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	if over := len(l.text) - 60; over > 0 {
		l.text = append([]string{}, l.text[over:]...)
	}
	return len(p), nil
}

// String is what was written last.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.text, "")
}

func newSimulation(t *testing.T) *simulation {
	t.Helper()
	dir := t.TempDir()
	s := &simulation{t: t, dir: dir, mesh: filepath.Join(dir, "mesh"), log: &lines{}}
	s.startController()
	var err error
	s.keys, err = identity.Open(controller.KeysDir(s.mesh))
	require.NoError(t, err)
	s.showLog()
	return s
}

// showLog shows the log of a test that failed.
func (s *simulation) showLog() {
	t := s.t
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.log.String())
		}
	})
}

// startController runs the controller, at the address that it had before.
func (s *simulation) startController() {
	s.t.Helper()
	require.NoError(s.t, s.tryController(false))
}

// tryController is startController of one that may have reasons not to start.
func (s *simulation) tryController(beginEpoch bool) error {
	s.t.Helper()
	o := controller.Options{Dir: s.mesh, BeginEpoch: beginEpoch, Name: "c1", Listen: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, MaxStore: 512 << 20,
		Version: "1.0.0", Modules: s.modules, Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	switch {
	case len(s.servers) > 0:
		o.Servers, o.Listen, o.Hosts = s.servers, "", nil
	case len(s.urls) > 0:
		o.Listen = strings.TrimPrefix(s.urls[0], "tls://")
	}
	c, err := controller.New(o)
	require.NoError(s.t, err)
	refused := make(chan error, 1)
	stop := s.background(func(ctx context.Context) error {
		err := c.Run(ctx)
		select {
		case <-c.Ready():
			return err
		default:
			refused <- err
			return nil
		}
	})
	select {
	case <-c.Ready():
	case err := <-refused:
		stop()
		return err
	case <-time.After(patience):
		s.t.Fatal("the controller does not become ready:\n" + s.log.String())
	}
	s.urls, s.stopController = c.URLs(), stop
	return nil
}

// background runs f until the function is called, and at the end of the test.
func (s *simulation) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				s.t.Errorf("it ended: %v", err) // and the test goes on to its end
			}
		})
	}
	s.t.Cleanup(stop)
	return stop
}

// simulated is one node.
type simulated struct {
	s    *simulation
	name string
	dir  string
	fake *systemdtest.Fake
	host *host.Host
	stop func()
}

// node makes a node with its credentials, on which no host runs yet.
func (s *simulation) node(name string) *simulated {
	s.t.Helper()
	n := &simulated{s: s, name: name, dir: filepath.Join(s.dir, name)}
	for _, d := range []string{"etc", "lib", "state"} {
		require.NoError(s.t, os.MkdirAll(filepath.Join(n.dir, d), 0o755))
	}
	for file, role := range map[string]identity.Role{"host.json": identity.Host, "listener.json": identity.Listener} {
		who, err := s.keys.Mint(identity.Request{Role: role, Name: name, URLs: s.urls})
		require.NoError(s.t, err)
		require.NoError(s.t, os.MkdirAll(n.credentials(), 0o700))
		require.NoError(s.t, identity.WriteCredentials(filepath.Join(n.credentials(), file), who))
	}
	n.fake = systemdtest.NewFake(systemdtest.Options{Dirs: []string{n.etc(), filepath.Join(n.dir, "lib")}, Clock: monotonic})
	s.t.Cleanup(n.fake.Close)
	return n
}

func (n *simulated) etc() string         { return filepath.Join(n.dir, "etc") }
func (n *simulated) credentials() string { return filepath.Join(n.dir, "credentials") }

// start runs the host, which goes on from what an earlier one left.
func (n *simulated) start() {
	n.s.t.Helper()
	h, err := host.New(host.Options{
		Credentials: n.credentials(), State: filepath.Join(n.dir, "state"), Version: "1.0.0",
		Logger: slog.New(slog.NewTextHandler(n.s.log, &slog.HandlerOptions{Level: slog.LevelError})).With("node", n.name),
		Machine: &host.Machine{Manager: n.fake, ConfigDir: n.etc(), Boot: "boot", Clock: simulatedClock, Watcher: newDeaf(), Adviser: silent{},
			Facts: host.Facts{OS: "Simulated 1", ID: n.name}},
	})
	require.NoError(n.s.t, err)
	n.host, n.stop = h, n.s.background(h.Run)
}

func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail on Linux
	return time.Duration(ts.Nano())
}

func simulatedClock() plan.Clock {
	return plan.Clock{Wall: time.Now(), Monotonic: monotonic(), Boot: "boot"}
}

// deaf is a watcher that hears nothing: a machine gives only some hundred
// processes the kernel's.
type deaf struct{ wake chan struct{} }

func newDeaf() deaf                              { return deaf{make(chan struct{})} }
func (d deaf) Set([]string)                      {}
func (d deaf) Wake() <-chan struct{}             { return d.wake }
func (d deaf) Drain() (paths []string, all bool) { return nil, false }
func (d deaf) Run(ctx context.Context) error     { <-ctx.Done(); return nil }

// silent knows nothing of what systemd wrote.
type silent struct{}

// Lines implements host.Adviser.
func (silent) Lines(context.Context, []unit.Name) map[unit.Name][]string { return nil }

// Verify implements host.Adviser.
func (silent) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string { return nil }

// operator is a person's way to the controllers.
func (s *simulation) operator(name string) *client.Client {
	s.t.Helper()
	who, err := s.keys.Mint(identity.Request{Role: identity.Operator, Name: name, URLs: s.urls})
	require.NoError(s.t, err)
	conn, err := mesh.Connect(context.WithoutCancel(s.t.Context()), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: name, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(s.t, err)
	s.t.Cleanup(conn.Close)
	require.NoError(s.t, conn.Wait(s.within(patience)))
	return client.New(conn)
}

func (s *simulation) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), d)
	s.t.Cleanup(cancel)
	return ctx
}

// nodes are those that the mesh knows to be in a state.
func (s *simulation) nodes(c *client.Client, state string) int {
	s.t.Helper()
	n := 0
	require.NoError(s.t, c.Get(s.within(patience), wire.GetRequest{Wire: wire.Version, Kind: wire.Nodes}, func(p wire.GetReply) error {
		for _, one := range p.Nodes {
			if one.State == state {
				n++
			}
		}
		return nil
	}))
	return n
}

// apply applies text, and wants it to land.
func (s *simulation) apply(c *client.Client, text string) wire.ChangeReply {
	s.t.Helper()
	reply, err := c.Apply(s.within(patience), wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a.yaml", Text: text}}, Force: true, Yes: true})
	require.NoError(s.t, err)
	require.Empty(s.t, reply.Problems)
	require.Empty(s.t, reply.Sure)
	return reply
}

// sleeping declares a service for nodes.
func sleeping(name, address string, seconds int) string {
	return fmt.Sprintf("shape: service\nname: %s\n%s\nensure: running\nenabled: true\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep %d\n  [Install]\n  WantedBy=multi-user.target\n",
		name, address, seconds)
}

// drift stops a unit from outside, and waits until the host has undone that.
func (n *simulated) drift(name unit.Name) {
	n.s.t.Helper()
	starts := func() int {
		count := 0
		for _, line := range n.fake.Log() {
			if line == "start "+string(name) {
				count++
			}
		}
		return count
	}
	before := starts()
	q := n.fake.Other().Enqueue(n.s.within(patience), []unit.JobRequest{{Name: name, Type: unit.StopJob}})
	require.NoError(n.s.t, q[0].Err)
	require.Eventually(n.s.t, func() bool { return starts() > before }, patience, time.Millisecond, "it stays stopped")
}
