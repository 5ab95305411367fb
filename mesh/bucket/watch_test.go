package bucket_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/identity"
)

func TestWatcherReadsEverythingAndFollows(t *testing.T) {
	_, _, b := alone(t)
	w := bucket.NewWatcher(b, bucket.WatchOptions{})
	_, ok := w.Take()
	require.False(t, ok, "nothing is known before the first reading")
	_, _, ok = w.Snapshot()
	require.False(t, ok)

	put(t, b, "a", 1)
	put(t, b, "a", 2)
	revision := put(t, b, "b", 1)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("the first reading", func() bool { return len(f.have) == 2 })
	require.Equal(t, revision, f.last.Revision)
	require.True(t, f.is("a", 2)())
	require.True(t, f.Status().Current)

	revision = put(t, b, "c", 1)
	f.until("a new key", f.is("c", 1))
	require.Equal(t, revision, f.have["c"].Revision)
	_, err := b.Delete(t.Context(), "c", thing{N: 9}, revision)
	require.NoError(t, err)
	f.until("a tombstone", func() bool { return f.have["c"].Deleted })
	require.Equal(t, 9, f.have["c"].Value.N)
	require.Len(t, f.last.Entries, 1, "only what changed")
	require.Zero(t, f.gone)
	f.same(b)
}

func TestWatcherOfAnEmptyBucketKnowsThatItIsEmpty(t *testing.T) {
	_, _, b := alone(t)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("the reading", func() bool { return f.Status().Read })
	require.Empty(t, f.have)
	put(t, b, "a", 1)
	f.until("the first key", f.is("a", 1))
}

func TestWatcherReachesOnesOwnWrites(t *testing.T) {
	_, _, b := alone(t)
	f := follow(t, b, bucket.WatchOptions{})
	for i := range 50 {
		revision := put(t, b, "a", i)
		require.NoError(t, f.Reach(t.Context(), revision))
		all, at, ok := f.Snapshot()
		require.True(t, ok)
		require.GreaterOrEqual(t, at, revision)
		require.Equal(t, i, all["a"].Value.N)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.Equal(t, fault.Timeout, fault.ClassOf(f.Reach(ctx, 1<<40)))
}

func TestWatcherReadsMuchInPieces(t *testing.T) {
	_, _, b := alone(t)
	big := thing{Text: strings.Repeat("x", 60<<10)}
	for i := range 100 { // 6 MiB, and more than one request asks for
		_, err := b.Put(t.Context(), fmt.Sprintf("k%d", i), big)
		require.NoError(t, err)
	}
	_, err := b.Commit(t.Context(), writes(400, thing{N: 1}, 0)) // and more keys
	require.NoError(t, err)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("everything", func() bool { return len(f.have) == 500 })
	last, err := b.Commit(t.Context(), writes(1000, thing{N: 2}, bucket.Any))
	require.NoError(t, err)
	f.until("a commit", func() bool { return len(f.have) == 1100 })
	require.Equal(t, last, f.last.Revision)
	require.True(t, f.is("declaration.0999", 2)())
	require.Equal(t, big, f.have["k99"].Value)
}

func TestValueThatCannotBeReadIsNamedAndHarmsNoOther(t *testing.T) {
	_, c, b := alone(t)
	put(t, b, "good", 1)
	_, err := stream(t, c).Publish(t.Context(), "$KV.state.bad", []byte("not json"))
	require.NoError(t, err)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("both", func() bool { return len(f.have) == 2 })
	require.ErrorContains(t, f.have["bad"].Err, "read value: state/bad: ")
	require.NoError(t, f.have["good"].Err)
	_, err = b.Get(t.Context(), "bad")
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	put(t, b, "bad", 2)
	f.until("the cure", f.is("bad", 2))
	require.NoError(t, f.have["bad"].Err)
}

func TestCommitIsSeenWhole(t *testing.T) {
	_, _, b := alone(t)
	_, err := b.Commit(t.Context(), writes(100, thing{N: 0}, 0))
	require.NoError(t, err)
	seen := 0
	torn := func(f *follower) func() {
		return func() {
			seen++
			n := f.have["declaration.0000"].Value.N
			for key, e := range f.have {
				if e.Value.N != n {
					t.Errorf("half a commit: declaration.0000 is %d, %s is %d", n, key, e.Value.N)
				}
			}
		}
	}
	f := follow(t, b, bucket.WatchOptions{})
	f.check = torn(f)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 1; n <= 40; n++ {
			if _, err := b.Commit(t.Context(), writes(100, thing{N: n}, bucket.Any)); err != nil {
				t.Errorf("commit: %v", err)
			}
		}
	}()
	// Others begin to read while commits land.
	for range 5 {
		other := follow(t, b, bucket.WatchOptions{})
		other.check = torn(other)
		other.until("a first reading", func() bool { return len(other.have) == 100 })
	}
	f.until("the last commit", f.is("declaration.0099", 40))
	<-done
	t.Logf("%d batches of changes", seen)
}

// With one value of each key, a write that is overwritten before it is read is
// never seen; what was committed with it must not be seen without it.
func TestCommitIsSeenWholeWhenItIsOverwrittenAtOnce(t *testing.T) {
	m, _, b := alone(t)
	_, err := b.Commit(t.Context(), writes(100, thing{N: 0}, 0))
	require.NoError(t, err)
	f := follow(t, b, bucket.WatchOptions{})
	// Each commit raises all; each put sets one to what the commit gave it, so
	// that all are equal after every write.
	f.check = func() {
		for key, e := range f.have {
			if n := f.have["declaration.0000"].Value.N; e.Value.N != n {
				t.Errorf("half a commit: declaration.0000 is %d, %s is %d", n, key, e.Value.N)
			}
		}
	}
	done := make(chan struct{})
	other := open(t, m.Connect(identity.Controller, "c2"))
	go func() {
		defer close(done)
		for n := 1; n <= 60; n++ {
			if _, err := other.Commit(t.Context(), writes(100, thing{N: n}, bucket.Any)); err != nil {
				t.Errorf("commit: %v", err)
			}
			for i := range 5 {
				if _, err := other.Put(t.Context(), fmt.Sprintf("declaration.%04d", 17*i+13), thing{N: n}); err != nil {
					t.Errorf("put: %v", err)
				}
			}
		}
	}()
	f.until("the last commit", f.is("declaration.0099", 60))
	<-done
	require.NoError(t, f.Reach(t.Context(), put(t, b, "declaration.0050", 60)))
	f.take()
	f.same(b)
}

func TestKeyThatIsWrittenAllTheTimeDoesNotHoldUpOthers(t *testing.T) {
	m, _, b := alone(t)
	f := follow(t, b, bucket.WatchOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	for range 3 {
		own := open(t, m.Connect(identity.Controller, "c2"))
		wait.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// To its end, or it could land after what is read at the end of the test.
				_, _ = own.Put(t.Context(), "hot", thing{N: n})
			}
		})
	}
	var worst time.Duration
	for n := range 30 {
		put(t, b, "cold", n)
		worst = max(worst, f.until("a write beside it", f.is("cold", n)))
	}
	t.Logf("seen after %s at most", worst)
	require.Less(t, worst, 5*time.Second)
	late := follow(t, b, bucket.WatchOptions{})
	late.until("a first reading", func() bool { return len(late.have) == 2 })
	cancel()
	wait.Wait()
	revision := put(t, b, "cold", 1000)
	require.NoError(t, f.Reach(t.Context(), revision))
	f.take()
	f.same(b)
}

func TestWatcherRereadsFromTimeToTime(t *testing.T) {
	_, _, b := alone(t)
	put(t, b, "a", 1)
	f := follow(t, b, bucket.WatchOptions{Check: 20 * time.Millisecond, Reread: 60 * time.Millisecond})
	f.until("some readings", func() bool { return f.Status().Readings > 5 })
	require.Equal(t, 1, f.have["a"].Value.N)
	changes, ok := f.Take()
	require.True(t, ok)
	require.Empty(t, changes.Entries, "what is the same is no change")
	require.Empty(t, changes.Gone)
}

func TestWatcherRereadsWhenItIsAsked(t *testing.T) {
	_, _, b := alone(t)
	put(t, b, "a", 1)
	w := bucket.NewWatcher(b, bucket.WatchOptions{})
	w.Reread() // before it runs: done with the first reading
	f := &follower{Watcher: w, t: t, have: map[string]bucket.Entry[thing]{}, check: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	f.until("the reading", func() bool { return f.Status().Readings > 0 })
	for range 20 {
		before := f.Status().Readings
		f.Reread()
		f.until("another reading", func() bool { return f.Status().Readings > before })
		require.True(t, f.Status().Current)
	}
	put(t, b, "a", 2)
	f.until("a write after that", f.is("a", 2))
	e, ok := f.Entry("a")
	require.True(t, ok)
	require.Equal(t, 2, e.Value.N)
	_, ok = f.Entry("b")
	require.False(t, ok)
	cancel()
	require.NoError(t, <-done)
}

func TestQuietWatcherDoubtsNothing(t *testing.T) {
	_, _, b := alone(t)
	f := follow(t, b, bucket.WatchOptions{Check: time.Second})
	f.until("the reading", func() bool { return f.Status().Read })
	for i := range 100 {
		put(t, b, fmt.Sprintf("k%d", i%7), i)
		if i%10 == 0 {
			_, err := b.Commit(t.Context(), writes(20, thing{N: i}, bucket.Any))
			require.NoError(t, err)
		}
	}
	time.Sleep(7 * time.Second) // two heartbeats
	require.Equal(t, 1, f.Status().Readings)
	f.take()
	f.same(b)
}

func TestPurgeIsFoundOut(t *testing.T) {
	_, c, b := alone(t)
	js := stream(t, c)
	// A bucket of stead refuses to be purged, so this one is made by hand.
	require.NoError(t, js.DeleteStream(t.Context(), "KV_state"))
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KV_state", Subjects: []string{"$KV.state.>"}, MaxMsgsPerSubject: 1, MaxBytes: 1 << 20})
	require.NoError(t, err)
	put(t, b, "a", 1)
	put(t, b, "b", 1)
	f := follow(t, b, bucket.WatchOptions{Check: 100 * time.Millisecond})
	f.until("both", func() bool { return len(f.have) == 2 })
	require.NoError(t, s.Purge(t.Context(), jetstream.WithPurgeSubject("$KV.state.b")))
	f.until("the purge", func() bool { return len(f.have) == 1 })
	readings := f.Status().Readings
	time.Sleep(500 * time.Millisecond)
	require.Equal(t, readings, f.Status().Readings, "what is known is no doubt any more")
	put(t, b, "b", 2)
	f.until("what came after", f.is("b", 2))
	require.NoError(t, s.Purge(t.Context()))
	f.until("the purge of all", func() bool { return len(f.have) == 0 })
}

func TestConsumerThatSomebodyDeletesIsMadeAgain(t *testing.T) {
	_, c, b := alone(t)
	put(t, b, "a", 1)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("the reading", f.is("a", 1))
	s, err := stream(t, c).Stream(t.Context(), "KV_state")
	require.NoError(t, err)
	for name := range s.ConsumerNames(t.Context()).Name() {
		require.NoError(t, s.DeleteConsumer(t.Context(), name))
	}
	put(t, b, "a", 2)
	took := f.until("a write after that", f.is("a", 2))
	require.Less(t, took, 5*time.Second)
	require.Equal(t, 2, f.Status().Readings)
}

func TestWatchersLeaveNothingBehind(t *testing.T) {
	m, c, b := alone(t)
	for range 3 {
		other := m.Connect(identity.Controller, "c2")
		ctx, cancel := context.WithCancel(t.Context())
		w, done := bucket.NewWatcher(open(t, other), bucket.WatchOptions{}), make(chan error, 1)
		go func() { done <- w.Run(ctx) }()
		require.NoError(t, w.Reach(t.Context(), 0))
		cancel()
		require.NoError(t, <-done)
	}
	s, err := stream(t, c).Stream(t.Context(), "KV_state")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := s.Info(t.Context())
		return err == nil && info.State.Consumers == 0
	}, patience, 10*time.Millisecond)
	_ = b
}
