package state_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh"
	"stead/mesh/bucket"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// controller is one controller's store, running.
type controller struct {
	*state.Store
	t    *testing.T
	conn *mesh.Conn
	log  *journal
	end  func()
}

// start opens and runs a store with a marker of its own at path, on a connection
// through link.
func start(t *testing.T, m *meshtest.Mesh, path string, change ...func(*state.Options)) *controller {
	t.Helper()
	c, err := try(t, m, path, change...)
	require.NoError(t, err)
	return c
}

func try(t *testing.T, m *meshtest.Mesh, path string, change ...func(*state.Options)) (*controller, error) {
	t.Helper()
	c := &controller{t: t, log: &journal{}}
	o := state.Options{Mesh: m.Keys.ID(), Key: m.Keys.DeclarationKey(), Marker: path, By: "controller c1", Logger: slog.New(slog.NewTextHandler(c.log, nil))}
	for _, f := range change {
		f(&o)
	}
	if o.Conn == nil {
		o.Conn = m.Connect(identity.Controller, "c1")
	}
	c.conn = o.Conn
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var err error
	if c.Store, err = state.Open(ctx, o); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(running) }()
	var once sync.Once
	c.end = func() {
		once.Do(func() {
			stop()
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(c.end)
	return c, nil
}

func begin(o *state.Options) { o.BeginEpoch = true }

func through(c *mesh.Conn) func(*state.Options) {
	return func(o *state.Options) { o.Conn = c }
}

// journal collects what is logged.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// marker is a path for one, of a folder that is there.
func marker(t *testing.T) string { return filepath.Join(t.TempDir(), "epoch.json") }

// alone is a mesh with one controller.
func alone(t *testing.T) (*meshtest.Mesh, *controller) {
	t.Helper()
	m := meshtest.New(t)
	return m, start(t, m, marker(t))
}

// declare is a declaration for all nodes, of the generation that follows d, which
// may be nil.
func declare(t *testing.T, name, content string, d *assign.Declaration) state.Change {
	t.Helper()
	all, problems := shape.Parse("test.yaml", fmt.Appendf(nil, "shape: service\nname: %s\nall: true\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep %s\n", name, content))
	require.NoError(t, problems.Err())
	now := &assign.Declaration{Name: name, UID: "uid-" + name, Generation: 1, Canonical: all[0].Canonical(), Digest: all[0].Digest(), Service: all[0],
		Address: assign.Address{All: true}, By: "operator alice", At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	if d != nil {
		now.UID, now.Generation = d.UID, d.Generation+1
	}
	return state.Change{Declaration: now}
}

func withdraw(d *assign.Declaration) state.Change {
	return state.Change{Declaration: &assign.Declaration{Name: d.Name, UID: d.UID, Generation: d.Generation, Withdrawn: true, By: "operator bob", At: d.At}}
}

func node(name string, labels map[string]string) state.Change {
	return state.Change{Node: &assign.Node{Name: name, Labels: labels, Linger: "auto", By: "operator alice"}}
}

// put commits changes on the newest state.
func (c *controller) put(changes ...state.Change) *assign.State {
	c.t.Helper()
	after, err := c.Commit(c.t.Context(), c.Now(), changes)
	require.NoError(c.t, err)
	return after
}

// until waits until ok holds of Now.
func (c *controller) until(what string, ok func(*assign.State) bool) *assign.State {
	c.t.Helper()
	wake, stop := c.Subscribe()
	defer stop()
	end := time.After(patience)
	for {
		if now := c.Now(); ok(now) {
			return now
		}
		select {
		case <-wake:
		case <-end:
			c.t.Fatalf("%s: did not come about; revision %d, unsound %v\n%s", what, c.Now().Revision, c.Now().Unsound, c.log)
		}
	}
}

func (c *controller) unsound(with string) {
	c.t.Helper()
	now := c.until("unsound: "+with, func(s *assign.State) bool { return s.Unsound != nil && strings.Contains(s.Unsound.Error(), with) })
	require.Contains(c.t, fault.HintOf(now.Unsound), "--begin-epoch")
	_, err := c.Commit(c.t.Context(), now, []state.Change{node("nobody", nil)})
	require.Error(c.t, err, "nothing is written to a state that is unsound")
	_, _, err = c.Decide(c.t.Context(), func(*assign.State) ([]state.Change, error) {
		c.t.Error("nothing is decided on a state that is unsound")
		return nil, nil
	})
	require.ErrorContains(c.t, err, with)
}

// js is JetStream by itself, for what stead never does.
func (c *controller) js() jetstream.JetStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	s, err := c.conn.Session(ctx)
	require.NoError(c.t, err)
	js, err := jetstream.New(s.NATS())
	require.NoError(c.t, err)
	return js
}

// plant writes a value past every rule of the controller, as whoever owns the
// NATS server can.
func (c *controller) plant(key string, value []byte, deleted bool) uint64 {
	c.t.Helper()
	m := nats.NewMsg("$KV.state." + key)
	m.Data = value
	if deleted {
		m.Header.Set("KV-Operation", "DEL")
	}
	ack, err := c.js().PublishMsg(c.t.Context(), m)
	require.NoError(c.t, err)
	return ack.Sequence
}

// stored is what stands under key in the store.
func (c *controller) stored(key string) bucket.Entry[[]byte] {
	c.t.Helper()
	b, err := bucket.Open(c.t.Context(), c.conn, bucket.Options{Name: "state", Description: "what is declared, and the nodes", MaxBytes: 96 << 20,
		MaxValue: state.MaxCanonical + 16<<10, Existing: true, Logger: slog.New(slog.DiscardHandler)}, bucket.Bytes())
	require.NoError(c.t, err)
	e, err := b.Get(c.t.Context(), key)
	require.NoError(c.t, err)
	return e
}

// opened is the place of a stored value.
func (c *controller) opened(m *meshtest.Mesh, key string) seal.Place {
	c.t.Helper()
	e := c.stored(key)
	p, _, err := seal.OpenValue(m.Credentials(identity.Operator, "alice", m.Link).DeclarationKey,
		seal.Place{Mesh: m.Keys.ID(), Key: key, Revision: e.Revision, Deleted: e.Deleted}, e.Value)
	require.NoError(c.t, err)
	return p
}
