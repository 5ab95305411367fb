package bucket_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/identity"
)

func TestValuesAreWrittenAsTheyWereExpectedToBe(t *testing.T) {
	_, _, b := alone(t)
	ctx := t.Context()
	_, err := b.Get(ctx, "node.ws1")
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
	first, err := b.Create(ctx, "node.ws1", thing{N: 1})
	require.NoError(t, err)
	_, err = b.Create(ctx, "node.ws1", thing{N: 2})
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	second, err := b.Update(ctx, "node.ws1", thing{N: 2}, first)
	require.NoError(t, err)
	require.Greater(t, second, first)
	_, err = b.Update(ctx, "node.ws1", thing{N: 3}, first)
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "update: state/node.ws1: ")
	_, err = b.Delete(ctx, "node.ws1", thing{N: 3}, first)
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)

	e, err := b.Get(ctx, "node.ws1")
	require.NoError(t, err)
	require.Equal(t, thing{N: 2}, e.Value)
	require.Equal(t, second, e.Revision)
	require.WithinDuration(t, time.Now(), e.Time, time.Minute)

	third, err := b.Delete(ctx, "node.ws1", thing{N: 2, Text: "deleted by olga"}, second)
	require.NoError(t, err)
	e, err = b.Get(ctx, "node.ws1")
	require.NoError(t, err)
	require.True(t, e.Deleted)
	require.Equal(t, "deleted by olga", e.Value.Text)
	require.Equal(t, third, e.Revision)
	_, err = b.Create(ctx, "node.ws1", thing{N: 4})
	require.NoError(t, err, "a tombstone is no value")
}

func TestOnlyOneOfManyWritersWins(t *testing.T) {
	m, _, b := alone(t)
	put(t, b, "count", 0)
	const writers, rounds = 8, 25
	var wait sync.WaitGroup
	for range writers {
		c := m.Connect(identity.Controller, "c1")
		own := open(t, c)
		wait.Go(func() {
			for range rounds {
				for {
					e, err := own.Get(t.Context(), "count")
					if err == nil {
						_, err = own.Update(t.Context(), "count", thing{N: e.Value.N + 1}, e.Revision)
					}
					if err == nil {
						break
					}
					if !fault.Is(err, fault.Conflict) {
						t.Errorf("update: %v", err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	e, err := b.Get(t.Context(), "count")
	require.NoError(t, err)
	require.Equal(t, writers*rounds, e.Value.N, "an update was lost")
}

func TestBadKeysAndValuesAreRefusedBeforeTheyAreSent(t *testing.T) {
	_, _, b := alone(t)
	for _, key := range []string{"", ".", "a.", ".a", "a..b", "a b", "a*", ">", "*", "ä", "a\r\nb", "a\x00", strings.Repeat("k", 513), strings.Repeat("a.", 12) + "a"} {
		_, err := b.Put(t.Context(), key, thing{})
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q: %v", key, err)
		_, err = b.Get(t.Context(), key)
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q: %v", key, err)
		_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "good"}, {Key: key}})
		require.Equal(t, fault.Invalid, fault.ClassOf(err), "%q: %v", key, err)
	}
	require.NoError(t, bucket.CheckKey("declaration.MODULE/x_y-z=.NAME"))
	long := thing{Text: strings.Repeat("x", options().MaxValue)}
	_, err := b.Put(t.Context(), "big", long)
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
	long.Text = long.Text[:options().MaxValue-20]
	_, err = b.Put(t.Context(), "big", long)
	require.NoError(t, err, "a value of exactly the bound")
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "big1", Value: long}, {Key: strings.Repeat("k", 512), Value: long}})
	require.NoError(t, err, "headers of a commit fit besides it")
}

func TestFullBucketRefusesAndForgetsNothing(t *testing.T) {
	_, c, _ := alone(t)
	o := options()
	o.Name, o.MaxBytes = "small", 20<<10
	b, err := bucket.Open(t.Context(), c, o, bucket.JSON[thing]())
	require.NoError(t, err)
	value, n := thing{Text: strings.Repeat("x", 1000)}, 0
	keys := strings.Split(strings.Repeat("abcdefghijklmnopqrstuvwxyz", 2), "")
	for ; n < len(keys); n++ {
		if _, err = b.Put(t.Context(), keys[n]+keys[n/26], value); err != nil {
			break
		}
	}
	require.Equal(t, fault.Refused, fault.ClassOf(err), "%v", err)
	require.Greater(t, n, 10)
	for i := range n {
		_, err := b.Get(t.Context(), keys[i]+keys[i/26])
		require.NoError(t, err)
	}
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "new1", Value: value, Expect: bucket.Any}, {Key: "new2", Value: value, Expect: bucket.Any}})
	require.Error(t, err)
	_, err = b.Get(t.Context(), "new1")
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "half a commit was stored")
	_, err = b.Put(t.Context(), keys[0]+keys[0], thing{N: 7})
	require.NoError(t, err, "a smaller value finds its place")
}

func TestOpenMakesFindsAndPutsRight(t *testing.T) {
	_, c, b := alone(t)
	js := stream(t, c)
	put(t, b, "k", 1)
	open(t, c)
	s, err := js.Stream(t.Context(), "KV_state")
	require.NoError(t, err)
	want := s.CachedInfo().Config
	require.True(t, want.DenyPurge && want.DenyDelete && want.AllowAtomicPublish)
	require.False(t, want.AllowRollup || want.AllowDirect)
	require.Error(t, s.Purge(t.Context()), "nobody purges a bucket")
	require.Error(t, s.DeleteMsg(t.Context(), 1))
	rollup := nats.NewMsg("$KV.state.k")
	rollup.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupAll)
	_, err = js.PublishMsg(t.Context(), rollup)
	require.Error(t, err, "a rollup header wipes a bucket")

	o := options()
	o.MaxBytes *= 2
	_, err = bucket.Open(t.Context(), c, o, bucket.JSON[thing]())
	require.NoError(t, err)
	e, err := b.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, 1, e.Value.N)

	// One that was made otherwise is put right where the server lets it be.
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KV_other", Subjects: []string{"$KV.other.>"}, MaxMsgsPerSubject: 5,
		AllowRollup: true, AllowDirect: true, MaxBytes: 1 << 20})
	require.NoError(t, err)
	o.Name = "other"
	_, err = bucket.Open(t.Context(), c, o, bucket.JSON[thing]())
	require.NoError(t, err)
	s, err = js.Stream(t.Context(), "KV_other")
	require.NoError(t, err)
	require.False(t, s.CachedInfo().Config.AllowRollup)
	require.EqualValues(t, 1, s.CachedInfo().Config.MaxMsgsPerSubject)

	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "KV_memory", Subjects: []string{"$KV.memory.>"}, Storage: jetstream.MemoryStorage, MaxBytes: 1 << 20})
	require.NoError(t, err)
	o.Name = "memory"
	_, err = bucket.Open(t.Context(), c, o, bucket.JSON[thing]())
	require.Error(t, err, "what lies in memory is not kept")
}

func TestWithoutTheServerNothingIsDone(t *testing.T) {
	m, c, b := alone(t)
	m.Stop()
	require.Eventually(t, func() bool { return !c.State().Connected }, patience, time.Millisecond)
	start := time.Now()
	_, err := b.Put(t.Context(), "k", thing{})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	_, err = b.Get(t.Context(), "k")
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	_, err = b.Commit(t.Context(), []bucket.Write[thing]{{Key: "a"}, {Key: "b"}})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.Less(t, time.Since(start), time.Second)
}

func TestOperationsEndWithTheirContext(t *testing.T) {
	m, _, _ := alone(t)
	way := m.Way()
	c := m.ConnectBy(way, identity.Controller, "c2")
	b := open(t, c)
	way.Swallow(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := b.Put(ctx, "k", thing{})
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "may have been done")
	require.Eventually(t, func() bool { return !c.State().Connected }, patience, time.Millisecond, "the silent server is found out")
}

func TestTombstonesSurviveRestarts(t *testing.T) {
	m, c, b := alone(t)
	kept := put(t, b, "kept", 1)
	revision, err := b.Delete(t.Context(), "deleted", thing{N: 5}, put(t, b, "deleted", 4))
	require.NoError(t, err)
	for range 2 {
		session := c.State().Session
		m.Stop()
		m.Start()
		require.Eventually(t, func() bool { return c.State().Session > session }, patience, time.Millisecond)
		e, err := b.Get(t.Context(), "deleted")
		require.NoError(t, err)
		require.True(t, e.Deleted)
		require.Equal(t, revision, e.Revision)
		e, err = b.Get(t.Context(), "kept")
		require.NoError(t, err)
		require.Equal(t, kept, e.Revision)
	}
}

func TestValueIsFoundByItsRevision(t *testing.T) {
	_, _, b := alone(t)
	first, second := put(t, b, "a", 1), put(t, b, "b.c", 2)
	e, err := b.At(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, "b.c", e.Key)
	require.Equal(t, second, e.Revision)
	require.Equal(t, thing{N: 2}, e.Value)
	third, err := b.Delete(t.Context(), "a", thing{N: 3}, first)
	require.NoError(t, err)
	_, err = b.At(t.Context(), first)
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "it was written again: %v", err)
	e, err = b.At(t.Context(), third)
	require.NoError(t, err)
	require.True(t, e.Deleted)
	_, err = b.At(t.Context(), third+1)
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)

	f, err := b.Figures(t.Context())
	require.NoError(t, err)
	require.Equal(t, third, f.Revision)
	require.Equal(t, 2, f.Keys)
	require.Positive(t, f.Bytes)
	require.WithinDuration(t, time.Now(), f.Created, time.Minute)
}

func TestBucketThatMustBeThereIsNotMade(t *testing.T) {
	m, c, _ := alone(t)
	o := options()
	o.Name, o.Existing = "other", true
	_, err := bucket.Open(t.Context(), c, o, bucket.JSON[thing]())
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
	_, err = stream(t, c).Stream(t.Context(), "KV_other")
	require.Error(t, err)
	o.Name = "state"
	b, err := bucket.Open(t.Context(), m.Connect(identity.Controller, "c2"), o, bucket.JSON[thing]())
	require.NoError(t, err)
	require.NoError(t, stream(t, c).DeleteStream(t.Context(), "KV_state"))
	_, err = b.Figures(t.Context())
	require.Equal(t, fault.NotFound, fault.ClassOf(err), "%v", err)
}
