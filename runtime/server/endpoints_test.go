package server

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/runtime/escalate"
)

func TestNamesOfCallsAreTheirCallersOwn(t *testing.T) {
	of := func(user, call string, asked time.Duration) escalate.Call {
		return named(mesh.Request{Caller: identity.Caller{User: user}, Call: call, Asked: asked})
	}
	first, again := of("UA", "x", 0), of("UA", "x", time.Second)
	require.Equal(t, first.ID, again.ID)
	require.Zero(t, first.Asked)
	require.Equal(t, time.Second, again.Asked)
	require.NotEqual(t, first.ID, of("UB", "x", 0).ID)
	require.NotEqual(t, first.ID, of("UA", "y", 0).ID)
	require.Equal(t, escalate.Call{}, of("UA", "", 0), "who names no call asks once")
}
