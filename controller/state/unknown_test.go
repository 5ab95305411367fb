package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/wire"
)

// What nodes keep of an epoch before can be withdrawn by its name, though nothing
// of that name was ever declared in this one.
func TestANameThatWasNeverDeclaredCanBeWithdrawn(t *testing.T) {
	m, c := alone(t)
	after := c.put(state.Change{Declaration: &assign.Declaration{Name: "kept", UID: wire.AnyUID, Withdrawn: true, By: "operator alice"}})
	require.True(t, after.Declarations["kept"].Withdrawn)
	require.Equal(t, wire.AnyUID, start(t, m, marker(t)).Now().Declarations["kept"].UID, "whoever comes later reads the same")
	_, err := c.Commit(t.Context(), after, []state.Change{{Declaration: &assign.Declaration{Name: "other", UID: "u1", Withdrawn: true}}})
	require.Equal(t, fault.Internal, fault.ClassOf(err), "%v", err)
}
