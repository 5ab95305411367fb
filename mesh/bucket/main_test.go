package bucket_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/mesh"
	"stead/mesh/bucket"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// thing is a value.
type thing struct {
	N    int    `json:"n"`
	Text string `json:"text,omitempty"`
}

func options() bucket.Options {
	return bucket.Options{Name: "state", Description: "what is declared", MaxBytes: 32 << 20, MaxValue: 64 << 10, Logger: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, c *mesh.Conn) *bucket.Bucket[thing] {
	t.Helper()
	b, err := bucket.Open(t.Context(), c, options(), bucket.JSON[thing]())
	require.NoError(t, err)
	return b
}

// alone is a mesh with one controller and its bucket.
func alone(t *testing.T) (*meshtest.Mesh, *mesh.Conn, *bucket.Bucket[thing]) {
	t.Helper()
	m := meshtest.New(t)
	c := m.Connect(identity.Controller, "c1")
	return m, c, open(t, c)
}

// stream is JetStream by itself, for what stead never does.
func stream(t *testing.T, c *mesh.Conn) jetstream.JetStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := c.Session(ctx)
	require.NoError(t, err)
	js, err := jetstream.New(s.NATS())
	require.NoError(t, err)
	return js
}

func put(t *testing.T, b *bucket.Bucket[thing], key string, n int) uint64 {
	t.Helper()
	revision, err := b.Put(t.Context(), key, thing{N: n})
	require.NoError(t, err)
	return revision
}

// follower is a watcher at work, with a copy that is made of its changes alone.
type follower struct {
	*bucket.Watcher[thing]
	t     *testing.T
	have  map[string]bucket.Entry[thing]
	gone  int // keys that vanished
	last  bucket.Changes[thing]
	check func() // after each batch of changes
}

func follow(t *testing.T, b *bucket.Bucket[thing], o bucket.WatchOptions) *follower {
	t.Helper()
	f := &follower{Watcher: bucket.NewWatcher(b, o), t: t, have: map[string]bucket.Entry[thing]{}, check: func() {}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	return f
}

// until takes changes until ok holds, and returns how long that took.
func (f *follower) until(what string, ok func() bool) time.Duration {
	f.t.Helper()
	start := time.Now()
	end := time.NewTimer(2 * patience)
	defer end.Stop()
	for {
		if f.take(); ok() {
			return time.Since(start)
		}
		select {
		case <-f.Wake():
		case <-end.C:
			text, _ := json.Marshal(f.Status())
			f.t.Fatalf("%s: did not come about; %d keys, status %s, error %v", what, len(f.have), text, f.Status().Err)
		}
	}
}

func (f *follower) take() {
	c, ok := f.Take()
	if !ok {
		return
	}
	for _, e := range c.Entries {
		f.have[e.Key] = e
	}
	for _, key := range c.Gone {
		delete(f.have, key)
		f.gone++
	}
	f.last = c
	f.check()
}

// is reports whether the copy has n under key.
func (f *follower) is(key string, n int) func() bool {
	return func() bool { e, ok := f.have[key]; return ok && !e.Deleted && e.Value.N == n }
}

// same holds both copies of the follower against what the bucket itself says.
func (f *follower) same(b *bucket.Bucket[thing]) {
	f.t.Helper()
	snapshot, _, ok := f.Snapshot()
	require.True(f.t, ok)
	require.Len(f.t, f.have, len(snapshot))
	for key, e := range snapshot {
		require.Equal(f.t, e, f.have[key])
		got, err := b.Get(f.t.Context(), key)
		require.NoError(f.t, err)
		require.Equal(f.t, got.Revision, e.Revision, key)
		require.Equal(f.t, got.Value, e.Value, key)
	}
}
