package state_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/state"
	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/meshtest"
	"stead/mesh/wire"
)

func TestProfilesAreStoredOnceAndSeenByAll(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	require.Empty(t, c.Profiles())
	require.Zero(t, c.Seen("ws1"))
	p := wire.Profile{Wire: 1, Version: "1.0.0", Wires: []int{1}, Vocabulary: wire.Vocabulary(), Capabilities: []string{wire.ServiceManager}}
	require.NoError(t, c.PutProfile(t.Context(), "ws1", p))
	require.Equal(t, p, c.Profiles()["ws1"], "one's own is there at once")
	require.WithinDuration(t, time.Now(), c.Seen("ws1"), time.Minute)
	require.True(t, waits(func() bool { return len(other.Profiles()) == 1 }))
	require.WithinDuration(t, time.Now(), other.Seen("ws1"), time.Minute)

	bucket, err := c.js().Stream(t.Context(), "KV_profiles")
	require.NoError(t, err)
	before := bucket.CachedInfo().State.LastSeq
	for range 5 {
		require.NoError(t, c.PutProfile(t.Context(), "ws1", p))
		require.NoError(t, other.PutProfile(t.Context(), "ws1", p))
	}
	info, err := bucket.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, info.State.LastSeq, "what is the same is not written")

	p.Version = "1.0.1"
	require.NoError(t, other.PutProfile(t.Context(), "ws1", p))
	p.Version = "1.0.2"
	require.NoError(t, c.PutProfile(t.Context(), "ws1", p), "also when the copy is late")
	require.True(t, waits(func() bool { return other.Profiles()["ws1"].Version == "1.0.2" }))

	p.OS = strings.Repeat("x", 65<<10)
	require.Equal(t, fault.Invalid, fault.ClassOf(c.PutProfile(t.Context(), "ws1", p)))

	require.False(t, c.store("ws1", batch("r1", 0, 1, reportOf("a", 1, report.Converged))))
	c.lines("ws1", "a/1/converged")
	require.NoError(t, c.Forget(t.Context(), "ws1"))
	require.NoError(t, c.Forget(t.Context(), "ws1"))
	require.NoError(t, c.Forget(t.Context(), "nobody"))
	require.Empty(t, c.Profiles())
	require.Nil(t, c.Summary("ws1"))
	require.True(t, waits(func() bool { return len(other.Profiles()) == 0 && other.Summary("ws1") == nil }))
	p.OS = ""
	require.NoError(t, other.PutProfile(t.Context(), "ws1", p), "a node that comes back")
	require.False(t, other.store("ws1", batch("r1", 0, 1, reportOf("a", 1, report.Converged))))
	require.True(t, waits(func() bool { return len(c.Profiles()) == 1 && c.Summary("ws1") != nil }))
}

func TestAMachineThatComesBackIsOneOfTwo(t *testing.T) {
	m := meshtest.New(t)
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func(o *state.Options) {
		o.Clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	}
	c, other := start(t, m, marker(t), clock), start(t, m, marker(t), clock)
	hear := func(by *controller, machine, boot string, after time.Duration) *state.Double {
		t.Helper()
		mu.Lock()
		now = now.Add(after)
		mu.Unlock()
		p := wire.Profile{Wire: 1, Version: "1.0.0", Host: "h-" + machine, Machine: machine, Boot: boot}
		require.NoError(t, by.PutProfile(t.Context(), "ws1", p))
		for _, one := range []*controller{c, other} {
			require.True(t, waits(func() bool { return one.Profiles()["ws1"].Boot == boot }))
		}
		return by.Double("ws1")
	}
	begun := now
	require.Nil(t, hear(c, "a", "1", 0))
	require.Nil(t, hear(other, "a", "2", time.Minute), "a boot")
	require.Nil(t, hear(c, "b", "3", time.Minute), "reinstalled")
	require.Nil(t, hear(other, "b", "3", time.Minute))
	two := hear(other, "a", "2", time.Minute)
	require.NotNil(t, two, "by whoever the others are heard")
	require.Equal(t, []string{"h-a (machine a, boot 2)", "h-b (machine b, boot 3)"}, []string{two.One.String(), two.Other.String()})
	since := two.Since
	require.Equal(t, begun.Add(4*time.Minute), since)
	for range 10 {
		require.Equal(t, since, hear(c, "b", "3", time.Minute).Since, "it is the same two")
		require.Equal(t, since, hear(other, "a", "2", time.Minute).Since)
	}
	require.True(t, waits(func() bool { d := c.Double("ws1"); return d != nil && d.Last.Equal(begun.Add(24*time.Minute)) }))
	require.NotNil(t, hear(c, "a", "2", 5*time.Minute))
	require.Nil(t, hear(c, "a", "2", time.Second), "one was given others")
	require.Nil(t, hear(c, "b", "3", time.Hour), "moved back")
	require.NotEqual(t, since, hear(c, "a", "2", time.Minute).Since, "another time")
	require.NoError(t, c.Forget(t.Context(), "ws1"))
	require.Nil(t, c.Double("ws1"))
	require.Nil(t, hear(c, "b", "3", time.Second), "a node that comes back")
}

func TestWhenNodesAreHeardIsToldToOthersOnceAMinute(t *testing.T) {
	m := meshtest.New(t)
	var mu sync.Mutex
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func(o *state.Options) {
		o.Clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	}
	c, other := start(t, m, marker(t), clock), start(t, m, marker(t), clock)
	c.Touch("ws1")
	require.Equal(t, now, c.Seen("ws1"))
	require.True(t, waits(func() bool { return other.Seen("ws1").Equal(now) }), "a node that says nothing of itself")
	first := now
	mu.Lock()
	now = now.Add(59 * time.Second)
	mu.Unlock()
	c.Touch("ws1")
	require.Equal(t, now, c.Seen("ws1"))
	time.Sleep(2500 * time.Millisecond) // longer than it is looked for
	require.Equal(t, first, other.Seen("ws1"))
	mu.Lock()
	now = now.Add(time.Second)
	mu.Unlock()
	c.Touch("ws1")
	require.True(t, waits(func() bool { return other.Seen("ws1").Equal(first.Add(time.Minute)) }))
	require.Empty(t, other.Profiles())
}
