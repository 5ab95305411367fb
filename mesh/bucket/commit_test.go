package bucket_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/identity"
)

func writes(n int, value thing, expect uint64) []bucket.Write[thing] {
	var all []bucket.Write[thing]
	for i := range n {
		all = append(all, bucket.Write[thing]{Key: fmt.Sprintf("declaration.%04d", i), Value: value, Expect: expect})
	}
	return all
}

func TestCommitOfAThousandLandsWhole(t *testing.T) {
	_, _, b := alone(t)
	start := time.Now()
	last, err := b.Commit(t.Context(), writes(bucket.MaxCommit, thing{N: 1, Text: strings.Repeat("x", 1000)}, 0))
	require.NoError(t, err)
	t.Logf("1,000 writes of 1 KB in %s", time.Since(start))
	for i, key := range []string{"declaration.0000", "declaration.0500", "declaration.0999"} {
		e, err := b.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, last-999+uint64([]int{0, 500, 999}[i]), e.Revision, "revisions are consecutive")
	}
	_, err = b.Commit(t.Context(), writes(bucket.MaxCommit+1, thing{}, bucket.Any))
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	_, err = b.Commit(t.Context(), nil)
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "twice"}, {Key: "twice"}})
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
}

func TestCommitWithOneStaleRevisionStoresNothing(t *testing.T) {
	_, _, b := alone(t)
	stale := put(t, b, "declaration.0700", 1)
	now := put(t, b, "declaration.0700", 2)
	all := writes(1000, thing{N: 3}, 0)
	all[700].Expect = stale
	_, err := b.Commit(t.Context(), all)
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.EqualError(t, err, fmt.Sprintf("commit: state: state/declaration.0700: it is at revision %d, not %d", now, stale))
	for _, key := range []string{"declaration.0000", "declaration.0699", "declaration.0999"} {
		_, err := b.Get(t.Context(), key)
		require.Equal(t, fault.NotFound, fault.ClassOf(err), "%s: %v", key, err)
	}
	all[700].Expect = now
	_, err = b.Commit(t.Context(), all)
	require.NoError(t, err)

	// Deletions are writes like others, and a commit of one is one.
	e, err := b.Get(t.Context(), "declaration.0001")
	require.NoError(t, err)
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: e.Key, Expect: e.Revision, Delete: true}, {Key: "new"}})
	require.NoError(t, err)
	e, err = b.Get(t.Context(), "declaration.0001")
	require.NoError(t, err)
	require.True(t, e.Deleted)
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "new", Expect: 1}})
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
}

func TestCommitAtExpectsTheWholeBucket(t *testing.T) {
	_, _, b := alone(t)
	at, err := b.CommitAt(t.Context(), 0, writes(3, thing{N: 1}, 0))
	require.NoError(t, err)
	put(t, b, "elsewhere", 1)
	_, err = b.CommitAt(t.Context(), at, writes(3, thing{N: 2}, bucket.Any))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	e, err := b.Get(t.Context(), "declaration.0000")
	require.NoError(t, err)
	require.Equal(t, 1, e.Value.N)
	_, err = b.CommitAt(t.Context(), at+1, writes(3, thing{N: 2}, bucket.Any))
	require.NoError(t, err)
	_, err = b.CommitAt(t.Context(), at, writes(1, thing{N: 3}, bucket.Any))
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "a commit of one too: %v", err)
}

func TestCommitsOfManyDoNotMix(t *testing.T) {
	m, _, b := alone(t)
	var wait sync.WaitGroup
	var landed, refused atomic.Int64
	for w := range 12 { // more than the server takes at one time
		own := open(t, m.Connect(identity.Controller, "c1"))
		wait.Go(func() {
			for round := range 5 {
				var all []bucket.Write[thing]
				e, err := own.Get(t.Context(), "lead")
				if fault.Is(err, fault.NotFound) {
					err, e.Revision = nil, 0
				}
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				all = append(all, bucket.Write[thing]{Key: "lead", Value: thing{N: w*100 + round}, Expect: e.Revision})
				for i := range 50 {
					all = append(all, bucket.Write[thing]{Key: fmt.Sprintf("k%d", i), Value: thing{N: w*100 + round}, Expect: bucket.Any})
				}
				switch _, err := own.Commit(t.Context(), all); {
				case err == nil:
					landed.Add(1)
				case fault.Is(err, fault.Conflict):
					refused.Add(1)
				default:
					t.Errorf("commit: %v", err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("%d commits landed, %d were conflicts", landed.Load(), refused.Load())
	require.EqualValues(t, 60, landed.Load()+refused.Load())
	require.Positive(t, landed.Load())
	lead, err := b.Get(t.Context(), "lead")
	require.NoError(t, err)
	for i := range 50 {
		e, err := b.Get(t.Context(), fmt.Sprintf("k%d", i))
		require.NoError(t, err)
		require.Equal(t, lead.Value.N, e.Value.N, "two commits were mixed")
		require.Equal(t, lead.Revision+uint64(i)+1, e.Revision)
	}
}

func TestCommitThatIsCutOffStoresAllOrNothing(t *testing.T) {
	m, _, b := alone(t)
	way := m.Way()
	other := open(t, m.ConnectBy(way, identity.Controller, "c2"))
	for round := range 6 {
		done := make(chan error, 1)
		value := thing{N: round + 1, Text: strings.Repeat("x", 2000)}
		go func() {
			_, err := other.Commit(t.Context(), writes(1000, value, bucket.Any))
			done <- err
		}()
		time.Sleep(time.Duration(round) * 15 * time.Millisecond)
		way.Kill()
		err := <-done
		t.Logf("killed after %d ms: %v", round*15, err)
		var last bucket.Entry[thing]
		require.EventuallyWithT(t, func(c *assert.CollectT) { // it may land between the two looks; half of one would stay
			first, firstErr := b.Get(t.Context(), "declaration.0000")
			var lastErr error
			last, lastErr = b.Get(t.Context(), "declaration.0999")
			require.Equal(c, fault.ClassOf(firstErr), fault.ClassOf(lastErr))
			if firstErr == nil {
				require.Equal(c, first.Value.N, last.Value.N, "half a commit")
				require.Equal(c, first.Revision+999, last.Revision)
			}
		}, patience, 5*time.Millisecond)
		if err == nil {
			require.Equal(t, value.N, last.Value.N, "an acknowledged commit was lost")
		}
		require.Eventually(t, func() bool {
			_, err := other.Get(t.Context(), "declaration.0000")
			return err == nil || fault.Is(err, fault.NotFound)
		}, patience, 5*time.Millisecond)
	}
}
