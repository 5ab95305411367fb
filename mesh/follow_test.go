package mesh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

var journal1 = subject.ForVerb(subject.Read, "ws1", "node-service-manager", "journal")

// source streams numbers, and counts how it does.
type source struct {
	end   int           // behind the last number; 0: never
	pause time.Duration // between two numbers
	pad   int           // bytes besides the number

	last  atomic.Int64 // number that was handed over
	runs  atomic.Int64 // how often it was asked
	ended chan error   // why each run ended
	when  chan time.Time
}

func newSource() *source {
	return &source{ended: make(chan error, 256), when: make(chan time.Time, 256)}
}

// stream sends the numbers behind the one that the request names.
func (s *source) stream(ctx context.Context, r mesh.Request, st *mesh.Stream) error {
	s.runs.Add(1)
	err := s.send(ctx, string(r.Payload), st)
	s.ended <- err
	s.when <- time.Now()
	return err
}

func (s *source) send(ctx context.Context, behind string, st *mesh.Stream) error {
	at, _ := strconv.Atoi(behind)
	for at++; s.end == 0 || at < s.end; at++ {
		text := strconv.Itoa(at)
		if err := st.Send(append([]byte(text+" "), make([]byte, s.pad)...), text); err != nil {
			return err
		}
		s.last.Store(int64(at))
		if s.pause > 0 {
			select {
			case <-time.After(s.pause):
			case <-ctx.Done():
				return fault.New(fault.Canceled, "stream", "", ctx.Err())
			}
		}
	}
	return nil
}

// sink takes numbers and holds each against the one before.
type sink struct {
	t    *testing.T
	got  atomic.Int64
	slow time.Duration
	stop int64 // at this number; 0: never

	lost atomic.Int64
	mu   sync.Mutex
	why  []error // it was lost
}

func (s *sink) whys() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.why...)
}

var errEnough = errors.New("enough")

func (s *sink) options() mesh.FollowOptions {
	return mesh.FollowOptions{
		Request: func(cursor string) []byte { return []byte(cursor) },
		Take:    s.take,
		Lost: func(err error) {
			s.lost.Add(1)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.why = append(s.why, err)
		},
	}
}

func (s *sink) take(c mesh.Chunk) error {
	text, _, _ := bytes.Cut(c.Payload, []byte(" "))
	want := s.got.Load() + 1
	if string(text) != strconv.FormatInt(want, 10) || c.Cursor != string(text) {
		return fmt.Errorf("%q with the cursor %q came where %d should", text, c.Cursor, want)
	}
	s.got.Store(want)
	if s.slow > 0 {
		time.Sleep(s.slow)
	}
	if want == s.stop {
		return errEnough
	}
	return nil
}

// streams serves the journal of ws1.
func streams(t testing.TB, c *mesh.Conn, e mesh.Endpoint) (*mesh.Service, func() error) {
	t.Helper()
	e.Name, e.Subject, e.Accounts = "journal", journal1, []identity.Account{identity.OPS}
	if e.Handler == nil {
		e.Handler = echo
	}
	return run(t, c, mesh.ServiceOptions{
		Name: "runtime", Version: "1.0.0", Node: "ws1", Endpoints: []mesh.Endpoint{e}, Drain: 300 * time.Millisecond,
	})
}

// node is a mesh with the runtime of ws1 and an operator.
func node(t *testing.T) (m *meshtest.Mesh, tool, operator *mesh.Conn) {
	t.Helper()
	m = meshtest.New(t)
	return m, m.Connect(identity.Tool, "ws1"), m.Connect(identity.Operator, "olga")
}

// follows runs a Follow beside the test.
func follows(t *testing.T, c *mesh.Conn, o mesh.FollowOptions) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Follow(ctx, journal1, o) }()
	once := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { _ = once() })
	return once
}

func TestStreamArrivesWholeAndInOrder(t *testing.T) {
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t}
	src.end = 20001
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	require.NoError(t, operator.Follow(t.Context(), journal1, dst.options()))
	require.EqualValues(t, 20000, dst.got.Load())
	require.NoError(t, <-src.ended)
	require.EqualValues(t, 1, src.runs.Load())
	require.Zero(t, dst.lost.Load(), "%v", dst.whys())

	large := newSource()
	large.end, large.pad = 21, identity.MaxPayload-8<<10 // each larger than the window
	_, tool, operator = node(t)
	streams(t, tool, mesh.Endpoint{Stream: large.stream})
	dst = &sink{t: t}
	require.NoError(t, operator.Follow(t.Context(), journal1, dst.options()))
	require.EqualValues(t, 20, dst.got.Load())
}

func TestSlowReaderIsNotSentMoreThanItsWindow(t *testing.T) {
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t, slow: 10 * time.Millisecond, stop: 200}
	src.pad = 1000
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	o := dst.options()
	o.Window = 64 << 10
	var most int64
	take := o.Take
	o.Take = func(c mesh.Chunk) error {
		most = max(most, src.last.Load()-dst.got.Load())
		return take(c)
	}
	require.ErrorIs(t, operator.Follow(t.Context(), journal1, o), errEnough)
	t.Logf("at most %d chunks of 1.5 KB ahead of a reader with a window of 64 KiB", most)
	require.LessOrEqual(t, most, int64(64<<10/1500+3))
	require.EqualValues(t, 1, src.runs.Load(), "a slow reader is not one that is gone")
	require.Zero(t, dst.lost.Load(), "%v", dst.whys())
}

func TestReaderThatIsBusyForLongIsNotGone(t *testing.T) {
	t.Parallel()
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t, stop: 20}
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	o := dst.options()
	o.Window = 4 << 10
	take := o.Take
	o.Take = func(c mesh.Chunk) error {
		if dst.got.Load() == 5 {
			time.Sleep(5 * time.Second) // longer than either side is silent for
		}
		return take(c)
	}
	require.ErrorIs(t, operator.Follow(t.Context(), journal1, o), errEnough)
	require.EqualValues(t, 1, src.runs.Load())
	require.Zero(t, dst.lost.Load(), "%v", dst.whys())
}

func TestQuietStreamLives(t *testing.T) {
	t.Parallel()
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t, stop: 3}
	src.pause = 4500 * time.Millisecond
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	require.ErrorIs(t, operator.Follow(t.Context(), journal1, dst.options()), errEnough)
	require.EqualValues(t, 1, src.runs.Load())
	require.Zero(t, dst.lost.Load(), "%v", dst.whys())
}

func TestStreamEndsWithItsCaller(t *testing.T) {
	idle := func(ctx context.Context, _ mesh.Request, _ *mesh.Stream) error { <-ctx.Done(); return ctx.Err() }
	busy := func(src *source) mesh.Streamer { return src.stream }
	for _, way := range []struct {
		name  string
		leave func(m *meshtest.Mesh, way *meshtest.Link, c *mesh.Conn, end func() error)
		most  time.Duration
	}{
		{"that cancels", func(_ *meshtest.Mesh, _ *meshtest.Link, _ *mesh.Conn, end func() error) { go func() { _ = end() }() }, 200 * time.Millisecond},
		{"that is killed", func(_ *meshtest.Mesh, _ *meshtest.Link, c *mesh.Conn, _ func() error) {
			s, err := c.Session(t.Context())
			require.NoError(t, err)
			s.NATS().Close()
		}, time.Second},
		{"whose network is gone", func(_ *meshtest.Mesh, way *meshtest.Link, _ *mesh.Conn, _ func() error) { way.Swallow(true) }, time.Second},
	} {
		t.Run(way.name, func(t *testing.T) {
			m := meshtest.New(t)
			tool := m.Connect(identity.Tool, "ws1")
			src := newSource()
			ended := make(chan time.Time, 8)
			s, _ := streams(t, tool, mesh.Endpoint{Stream: func(ctx context.Context, r mesh.Request, s *mesh.Stream) error {
				defer func() { ended <- time.Now() }()
				if string(r.Payload) == "idle" {
					return idle(ctx, r, s)
				}
				return busy(src)(ctx, r, s)
			}})
			for _, kind := range []string{"idle", "busy"} {
				link := m.Way()
				operator := m.ConnectBy(link, identity.Operator, "olga")
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- operator.Follow(ctx, journal1, mesh.FollowOptions{
						Request: func(string) []byte { return []byte(kind) }, Take: func(mesh.Chunk) error { return nil }, Patience: time.Millisecond,
					})
				}()
				time.Sleep(300 * time.Millisecond)
				start := time.Now()
				way.leave(m, link, operator, func() error { cancel(); return nil })
				took := (<-ended).Sub(start)
				t.Logf("%s: ended after %s", kind, took)
				require.Less(t, took, way.most)
				cancel()
				link.Swallow(false)
				<-done
				require.Eventually(t, func() bool { return s.Statistics()["journal"].Streams == 0 }, patience, time.Millisecond)
				for len(ended) > 0 { // of a caller that asked once more
					<-ended
				}
			}
		})
	}
}

func TestErrorOfTheTakerEndsTheStream(t *testing.T) {
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t, stop: 7}
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	require.Equal(t, errEnough, operator.Follow(t.Context(), journal1, dst.options()), "as it is")
	start := time.Now()
	require.Equal(t, fault.Canceled, fault.ClassOf(<-src.ended))
	require.Less(t, time.Since(start), time.Second)
}

func TestFollowEndsWithItsContext(t *testing.T) {
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t}
	src.pause = 10 * time.Millisecond
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	err := operator.Follow(within(t, 300*time.Millisecond), journal1, dst.options())
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, cancel)
	dst = &sink{t: t}
	err = operator.Follow(ctx, journal1, dst.options())
	require.Equal(t, fault.Canceled, fault.ClassOf(err), "%v", err)
	require.Positive(t, dst.got.Load())
}
