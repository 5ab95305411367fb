package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// within is when a wait is given up.
const within = 20 * time.Second

// world is a mesh, a node of it, and what stands in for controllers: it tells the
// node what a test declares, and keeps what the node tells.
type world struct {
	t    *testing.T
	mesh *meshtest.Mesh
	way  *meshtest.Link // the node's
	dir  string
	fake *systemdtest.Fake
	host *Host
	stop func()

	control *mesh.Conn

	mu       sync.Mutex // guards what follows
	revision uint64
	declared []*shape.Service
	profiles []wire.Profile
	asked    wire.SyncRequest // the last one
	reports  map[string]*report.Report
	source   wire.Source
	run      string
	seq      uint64
	events   []wire.Event
	removed  string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, mesh: meshtest.New(t), dir: t.TempDir(), revision: 1, reports: map[string]*report.Report{}}
	w.way = w.mesh.Way()
	for _, d := range []string{"etc", "lib", "credentials"} {
		require.NoError(t, os.Mkdir(filepath.Join(w.dir, d), 0o700))
	}
	w.fake = systemdtest.NewFake(systemdtest.Options{Dirs: []string{w.path("etc"), w.path("lib")},
		Clock: func() time.Duration { return clock("boot")().Monotonic }})
	t.Cleanup(w.fake.Close)
	w.serve()
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// background runs f until the function is called, and at the end of the test.
func (w *world) background(f func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("it ended: %v", err) // and the test goes on to its end
			}
		})
	}
	w.t.Cleanup(stop)
	return stop
}

// serve answers as a controller does.
func (w *world) serve() {
	w.t.Helper()
	w.control = w.mesh.Connect(identity.Controller, "c1")
	var endpoints []mesh.Endpoint
	for topic, answer := range map[subject.Topic]func([]byte) (any, error){
		subject.Sync: w.sync, subject.Body: w.body, subject.Report: w.report, subject.Event: w.event, subject.Profile: w.profile,
	} {
		endpoints = append(endpoints, mesh.Endpoint{Name: string(topic), Subject: subject.TopicPattern(subject.Any, topic), Queue: "q",
			Accounts: []identity.Account{identity.HOST},
			Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
				w.mu.Lock()
				defer w.mu.Unlock()
				reply, err := answer(r.Payload)
				if err != nil {
					return nil, err
				}
				return json.Marshal(reply)
			}})
	}
	s, err := mesh.NewService(w.control, mesh.ServiceOptions{Name: "controller", Version: "1.0.0", Endpoints: endpoints, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(w.t, err)
	w.background(s.Run)
	select {
	case <-s.Ready():
	case <-time.After(within):
		w.t.Fatal("nobody serves")
	}
}

func (w *world) sync(payload []byte) (any, error) {
	var q wire.SyncRequest
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, err
	}
	w.asked = q
	index := wire.Index{Wire: wire.Version, Mesh: w.mesh.Keys.ID(), Epoch: "e1", Revision: w.revision, Node: "web1", Entries: []wire.Entry{}, Nonce: q.Nonce}
	for _, s := range w.declared {
		index.Entries = append(index.Entries, wire.Entry{Name: s.Name, UID: "uid-" + s.Name, Generation: uint64(s.Timeout / time.Second), Digest: s.Digest(), Size: len(s.Canonical())})
	}
	if q.Digest == index.Digest() && q.Epoch == "e1" {
		return wire.SyncReply{Same: true, Revision: w.revision}, nil
	}
	text, err := json.Marshal(index)
	return wire.SyncReply{Revision: w.revision, Signed: &wire.Signed{Index: text, Signature: seal.Index(w.mesh.Keys.DeclarationKey(), text)}}, err
}

func (w *world) body(payload []byte) (any, error) {
	var q wire.BodyRequest
	var reply wire.BodyReply
	err := json.Unmarshal(payload, &q)
	for _, d := range q.Digests {
		for _, s := range w.declared {
			if s.Digest() == d {
				reply.Bodies = append(reply.Bodies, s.Canonical())
			}
		}
	}
	return reply, err
}

func (w *world) report(payload []byte) (any, error) {
	var b wire.ReportBatch
	if err := json.Unmarshal(payload, &b); err != nil {
		return nil, err
	}
	switch {
	case b.Base == 0:
		clear(w.reports)
	case b.Run != w.run || b.Base != w.seq:
		return wire.ReportReply{Full: true}, nil
	}
	w.source, w.run, w.seq = b.Source, b.Run, b.Seq
	for _, r := range b.Reports {
		w.reports[r.Name] = r
	}
	for _, n := range b.Gone {
		delete(w.reports, n)
	}
	return wire.ReportReply{}, nil
}

func (w *world) event(payload []byte) (any, error) {
	var b wire.EventBatch
	err := json.Unmarshal(payload, &b)
	w.events = append(w.events, b.Events...)
	return wire.EventReply{}, err
}

func (w *world) profile(payload []byte) (any, error) {
	var p wire.Profile
	err := json.Unmarshal(payload, &p)
	w.profiles = append(w.profiles, p)
	return wire.ProfileReply{Removed: w.removed}, err
}

// get reads what the stand-in keeps.
func get[T any](w *world, f func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f()
}

// declare makes these all that is declared for the node, and tells it so.
func (w *world) declare(all ...*shape.Service) {
	w.t.Helper()
	w.mu.Lock()
	w.revision++
	w.declared = all
	hint, err := json.Marshal(wire.Changed{Revision: w.revision})
	w.mu.Unlock()
	require.NoError(w.t, err)
	require.NoError(w.t, w.control.Publish(subject.ForNode("web1", subject.Changed), hint))
}

// sleeper declares a service that runs; another timeout is another generation.
func sleeper(t *testing.T, name string, generation int) *shape.Service {
	t.Helper()
	return service(t, fmt.Sprintf("shape: service\nname: %s\nensure: running\ntimeout: %ds\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep %d\n", name, generation, 1000+generation))
}

// credentials puts those of a node into its folder, and returns them.
func (w *world) credentials(node string) {
	w.t.Helper()
	for file, role := range map[string]identity.Role{hostFile: identity.Host, listenerFile: identity.Listener} {
		require.NoError(w.t, identity.WriteCredentials(filepath.Join(w.path("credentials"), file), w.mesh.Credentials(role, node, w.way)))
	}
}

// start runs the host, which goes on from what an earlier one left.
func (w *world) start() {
	w.t.Helper()
	w.startFrom(Options{Credentials: w.path("credentials")})
}

func (w *world) startFrom(o Options) {
	w.t.Helper()
	o.State, o.Version, o.Logger = w.path("state"), "1.2.3", slog.New(slog.DiscardHandler)
	o.Machine = &Machine{Manager: w.fake, ConfigDir: w.path("etc"), Boot: "boot", Watcher: deaf{make(chan struct{})}, Adviser: silent{},
		Facts: Facts{OS: "Simulated 1", Kernel: "6.1", ID: "5eed"}}
	h, err := New(o)
	require.NoError(w.t, err)
	w.host, w.stop = h, w.background(h.Run)
}

// eventually waits until f holds.
func (w *world) eventually(f func() bool, what string) {
	w.t.Helper()
	for end := time.Now().Add(within); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("%s; the host says %+v", what, w.host.Status())
		}
	}
}

// active is how a unit stands.
func (w *world) active(n unit.Name) unit.ActiveState {
	st, err := w.fake.Observe(w.t.Context(), []unit.Name{n})
	if err != nil {
		return ""
	}
	return st[0].Active
}

// drift stops a unit from outside, and waits until the host has started it.
func (w *world) drift(n unit.Name) {
	w.t.Helper()
	before := w.starts(n)
	q := w.fake.Other().Enqueue(w.t.Context(), []unit.JobRequest{{Name: n, Type: unit.StopJob}})
	require.NoError(w.t, q[0].Err)
	w.eventually(func() bool { return w.starts(n) > before }, string(n)+" stays stopped")
	w.up(n)
}

// starts is how often the host started a unit.
func (w *world) starts(n unit.Name) int {
	count := 0
	for _, line := range w.fake.Log() {
		if line == "start "+string(n) {
			count++
		}
	}
	return count
}

func (w *world) up(n unit.Name) {
	w.t.Helper()
	w.eventually(func() bool { return w.active(n) == unit.Active }, string(n)+" does not run")
}

// converged waits until the mesh knows that a declaration is.
func (w *world) converged(name string, generation uint64) {
	w.t.Helper()
	w.eventually(func() bool {
		return get(w, func() bool {
			r := w.reports[name]
			return r != nil && r.Outcome == report.Converged && r.Generation == generation
		})
	}, name+" is not reported converged")
}

// deaf hears nothing of changed files.
type deaf struct{ wake chan struct{} }

func (deaf) Set([]string)                  {}
func (d deaf) Wake() <-chan struct{}       { return d.wake }
func (deaf) Drain() ([]string, bool)       { return nil, false }
func (deaf) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// silent knows nothing of what systemd wrote.
type silent struct{}

func (silent) Lines(context.Context, []unit.Name) map[unit.Name][]string           { return nil }
func (silent) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string { return nil }
