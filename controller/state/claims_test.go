package state_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

const aSeat = subject.Seat("node-service-manager")

// claim claims for a module what nobody holds.
func (c *controller) claim(node, module string) error {
	c.t.Helper()
	before, err := c.Claimed(c.t.Context(), node, aSeat)
	require.NoError(c.t, err)
	if before.Module != "" {
		return fault.New(fault.Conflict, "test", before.Module, nil)
	}
	return c.take(before, module)
}

func (c *controller) take(before state.Claim, module string) error {
	c.t.Helper()
	after, err := c.Claim(c.t.Context(), before, module)
	if err == nil {
		require.Equal(c.t, []any{before.Node, before.Seat, module}, []any{after.Node, after.Seat, after.Module})
		require.Greater(c.t, after.Revision, before.Revision)
	}
	return err
}

func TestOneOfManyClaimantsWins(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	require.NoError(t, c.Ready(t.Context()))
	require.NoError(t, other.Ready(t.Context()))
	var wait sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i, who := range []*controller{c, other, c, other, c, other} {
		wait.Go(func() {
			err := who.claim("ws1", []string{"systemd", "other"}[i%2])
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !fault.Is(err, fault.Conflict) {
				t.Errorf("claim: %v", err)
			}
		})
	}
	wait.Wait()
	require.Equal(t, 1, won)

	// What one was told, the other knows as soon as it is asked.
	one, err := c.Claimed(t.Context(), "ws1", aSeat)
	require.NoError(t, err)
	two, err := other.Claimed(t.Context(), "ws1", aSeat)
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.NotEmpty(t, one.Module)
	require.False(t, one.At.IsZero())
	require.EqualValues(t, 1, one.Revision)

	require.NoError(t, other.take(two, "third"))
	require.True(t, fault.Is(c.take(one, "fourth"), fault.Conflict), "it was claimed since")
	require.True(t, fault.Is(c.take(one, ""), fault.Internal))
	require.NoError(t, c.claim("ws1-2", "systemd"), "another node")
	require.Eventually(t, func() bool { return len(other.Claims()) == 2 }, patience, 10*time.Millisecond)
	require.Equal(t, "third", other.Claims()[0].Module)
	require.Equal(t, state.Claim{Node: "ws1-2", Seat: aSeat, Module: "systemd", At: other.Claims()[1].At, Revision: 3}, other.Claims()[1])
}

func TestClaimsOfARemovedNodeAreForgotten(t *testing.T) {
	_, c := alone(t)
	require.NoError(t, c.Ready(t.Context()))
	require.NoError(t, c.claim("ws1", "systemd"))
	require.NoError(t, c.claim("ws2", "systemd"))
	require.NoError(t, c.Forget(t.Context(), "ws1"))
	require.Len(t, c.Claims(), 1)
	before, err := c.Claimed(t.Context(), "ws1", aSeat)
	require.NoError(t, err)
	require.Empty(t, before.Module)
	require.NoError(t, c.take(before, "systemd"), "it may come back")
}

func TestAClaimThatCannotBeReadHoldsNobodyOff(t *testing.T) {
	_, c := alone(t)
	require.NoError(t, c.Ready(t.Context()))
	_, err := c.js().Publish(t.Context(), "$KV.claims.ws1."+string(aSeat), []byte("{"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		before, err := c.Claimed(t.Context(), "ws1", aSeat)
		return err == nil && before.Module == "" && c.take(before, "systemd") == nil
	}, patience, 10*time.Millisecond)
	require.Len(t, c.Claims(), 1)
}

func TestAProfileIsReadFromTheStore(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	none, err := c.Profile(t.Context(), "ws1")
	require.NoError(t, err)
	require.Nil(t, none)
	for _, version := range []string{"1", "2"} {
		require.NoError(t, other.PutProfile(t.Context(), "ws1", wire.Profile{Wire: wire.Version, Version: version}))
		p, err := c.Profile(t.Context(), "ws1")
		require.NoError(t, err)
		require.Equal(t, version, p.Version)
	}
	require.NoError(t, c.Forget(t.Context(), "ws1"))
	none, err = other.Profile(t.Context(), "ws1")
	require.NoError(t, err)
	require.Nil(t, none)
}
