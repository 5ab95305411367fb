package bucket_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/bucket"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// insist writes until it is acknowledged.
func insist(t *testing.T, b *bucket.Bucket[thing], key string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := b.Put(t.Context(), key, thing{N: n})
		return err == nil
	}, patience, 5*time.Millisecond)
}

func TestWatcherIsCurrentSoonAfterTheServerIsBack(t *testing.T) {
	m, _, b := alone(t)
	watching := open(t, m.Connect(identity.Controller, "c2"))
	put(t, b, "a", 1)
	f := follow(t, watching, bucket.WatchOptions{})
	f.until("the reading", f.is("a", 1))
	for i, down := range []time.Duration{0, 3 * time.Second} {
		m.Stop()
		require.Eventually(t, func() bool { return !f.Status().Current }, patience, time.Millisecond)
		require.Error(t, f.Status().Err)
		require.True(t, f.is("a", 1+i)(), "the copy stays")
		time.Sleep(down)
		m.Start()
		insist(t, b, "a", 2+i)
		took := f.until("a write after the restart", f.is("a", 2+i))
		t.Logf("down %s: seen %s after the first write that was acknowledged", down, took)
		require.Less(t, took, 6*time.Second)
		f.until("to be current", func() bool { return f.Status().Current })
	}
	require.Zero(t, f.gone)
}

func TestWatcherComesBackFromCutsAndHoles(t *testing.T) {
	m, _, b := alone(t)
	way := m.Way()
	f := follow(t, open(t, m.ConnectBy(way, identity.Controller, "c2")), bucket.WatchOptions{})
	f.until("the reading", func() bool { return f.Status().Read })
	for i := range 5 {
		way.Kill()
		put(t, b, "a", i)
		require.Less(t, f.until("a write of the time between", f.is("a", i)), 6*time.Second)
	}
	way.Swallow(true)
	put(t, b, "a", 100)
	start := time.Now()
	f.until("the silence to be found out", func() bool { return !f.Status().Current })
	t.Logf("silence found out after %s", time.Since(start))
	require.Less(t, time.Since(start), 15*time.Second)
	way.Swallow(false)
	took := f.until("a write of that time", f.is("a", 100))
	t.Logf("seen %s after the network was back", took)
	require.Less(t, took, 6*time.Second)
	f.same(b)
}

// A store that lost its tail, or was restored, gives the same revisions again.
func TestRestoredBucketIsSeenAsItIs(t *testing.T) {
	m, c, b := alone(t)
	put(t, b, "kept", 1)
	put(t, b, "changed", 1)
	m.Stop()
	restore := m.Save()
	m.Start()
	ready(t, c)
	for i := range 12 {
		put(t, b, fmt.Sprintf("lost%d", i), i)
	}
	put(t, b, "changed", 2)
	f := follow(t, b, bucket.WatchOptions{})
	f.until("all", func() bool { return len(f.have) == 14 })
	old := f.last.Revision
	m.Stop()
	restore()
	m.Start()
	ready(t, c)
	for i := range 12 { // they get the revisions of what was lost
		insist(t, b, fmt.Sprintf("new%d", i), i)
	}
	f.until("what came after the restore", func() bool { return f.is("new11", 11)() && f.is("changed", 1)() })
	require.Equal(t, 12, f.gone)
	require.LessOrEqual(t, f.last.Revision, old)
	for i := range 12 {
		require.True(t, f.is(fmt.Sprintf("new%d", i), i)(), "new%d", i)
	}
	require.Len(t, f.have, 14)
	f.same(b)
}

func ready(t *testing.T, c *mesh.Conn) {
	t.Helper()
	require.Eventually(t, func() bool { return c.State().Connected }, patience, time.Millisecond)
}

func TestBucketThatIsMadeAnewIsSeenAsItIs(t *testing.T) {
	m, c, b := alone(t)
	for i := range 5 {
		put(t, b, fmt.Sprintf("old%d", i), i)
	}
	f := follow(t, b, bucket.WatchOptions{})
	f.until("the reading", func() bool { return len(f.have) == 5 })
	created := f.last.Created

	// While everybody is connected.
	require.NoError(t, stream(t, c).DeleteStream(t.Context(), "KV_state"))
	f.until("the loss", func() bool { return !f.Status().Current })
	require.Len(t, f.have, 5, "a bucket that is missing is no empty bucket")
	b = open(t, c)
	put(t, b, "new", 1)
	f.until("the new one", f.is("new", 1))
	require.Len(t, f.have, 1)
	require.Equal(t, 5, f.gone)
	require.True(t, f.last.Created.After(created), "it says that it is another")

	// A server that lost its disk.
	m.Stop()
	m.Wipe()
	m.Start()
	ready(t, c)
	time.Sleep(300 * time.Millisecond)
	f.take()
	require.Len(t, f.have, 1, "a bucket that is missing is no empty bucket")
	require.Equal(t, fault.NotFound, fault.ClassOf(f.Status().Err))
	b = open(t, c)
	put(t, b, "newest", 1)
	f.until("the newest one", f.is("newest", 1))
	require.Len(t, f.have, 1)
	f.same(b)
}

func TestWhateverHappensTheCopyIsExactInTheEnd(t *testing.T) {
	m, c, b := alone(t)
	var ways []*meshtest.Link
	var all []*follower
	for range 3 {
		f := follow(t, open(t, m.Connect(identity.Controller, "c2")), bucket.WatchOptions{Check: 200 * time.Millisecond})
		all = append(all, f)
	}
	ways = append(ways, m.Link)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	end := time.Now().Add(8 * time.Second)
	for n := 0; time.Now().Before(end); n++ {
		key := fmt.Sprintf("k%d", random.IntN(40))
		switch random.IntN(60) {
		case 0:
			ways[0].Kill()
		case 1:
			m.Stop()
			m.Start()
		case 2, 3, 4, 5:
			_, _ = b.Commit(t.Context(), writes(1+random.IntN(60), thing{N: n}, bucket.Any))
		case 6, 7, 8, 9, 10:
			if e, err := b.Get(t.Context(), key); err == nil && !e.Deleted {
				_, _ = b.Delete(t.Context(), key, e.Value, e.Revision)
			}
		default:
			_, _ = b.Put(t.Context(), key, thing{N: n})
			time.Sleep(2 * time.Millisecond)
		}
		for _, f := range all {
			f.take()
		}
	}
	ready(t, c)
	insist(t, b, "last", 1)
	for _, f := range all {
		f.until("the last write", f.is("last", 1))
		f.same(b)
	}
}
