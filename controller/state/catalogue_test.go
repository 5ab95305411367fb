package state_test

import (
	"crypto/ed25519"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func record(edition int) assign.Record {
	return assign.Record{Edition: edition, By: "controller c1", At: noon}
}

// builtIn are the seat and the module that come with stead.
func builtIn() (*assign.Seat, *assign.Module) {
	return &assign.Seat{Seat: seats.Seeded()[0], Record: record(2)}, &assign.Module{Manifest: modules.Catalogue()[0], Record: record(2)}
}

func TestSeatsAndModulesAreReadBackByEveryController(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	seat, module := builtIn()
	n := node("ws1", nil)
	n.Node.Capabilities = []string{"desk", "service-manager"}
	n.Node.Pauses = []wire.Pause{{Unit: "web.service", Scope: "system", Until: time.Unix(1800, 0).UTC(), Seconds: 60, Declaration: "web", By: "operator alice", At: time.Unix(1740, 0).UTC()}}
	after := c.put(state.Change{Seat: seat}, state.Change{Module: module}, n)
	require.EqualValues(t, 2, after.Seats["node-service-manager"].Revision)
	require.EqualValues(t, 3, after.Modules["systemd"].Revision)
	require.Equal(t, []string{"desk", "service-manager"}, after.Nodes["ws1"].Capabilities)
	require.Equal(t, n.Node.Pauses, after.Nodes["ws1"].Pauses)
	require.JSONEq(t, jsonOf(t, seat.Seat), jsonOf(t, after.Seats["node-service-manager"].Seat))
	require.JSONEq(t, jsonOf(t, module.Manifest), jsonOf(t, after.Modules["systemd"].Manifest))
	require.Equal(t, 2, after.Modules["systemd"].Edition)
	require.NoError(t, other.Reach(t.Context(), after.Revision))
	require.Empty(t, cmp.Diff(after, other.Now()))

	gone := *module
	gone.Gone = true
	last := other.put(state.Change{Module: &gone})
	require.Equal(t, &assign.Module{Manifest: modules.Manifest{Name: "systemd"},
		Record: assign.Record{Gone: true, Edition: 2, By: "controller c1", At: noon, Revision: last.Revision}}, last.Modules["systemd"])
	require.True(t, c.opened(m, "module.systemd").Deleted)
	fresh := start(t, m, marker(t))
	require.Empty(t, cmp.Diff(last, fresh.Now()))
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

func TestAChangeIsOneThing(t *testing.T) {
	_, c := alone(t)
	seat, module := builtIn()
	broken := *seat
	broken.Verbs = []seats.Verb{{Name: "x", Arguments: json.RawMessage("{")}}
	for name, change := range map[string]state.Change{
		"nothing": {}, "two": {Seat: seat, Module: module}, "a node too": {Node: &assign.Node{Name: "ws1"}, Seat: seat},
		"without a name": {Module: &assign.Module{}}, "a schema that is no JSON": {Seat: &broken},
	} {
		_, err := c.Commit(t.Context(), c.Now(), []state.Change{change})
		require.True(t, fault.Is(err, fault.Internal), "%s: %v", name, err)
	}
}

// TestASeatThatNoControllerWroteIsNone: whoever owns the store makes no seat and
// no module.
func TestASeatThatNoControllerWroteIsNone(t *testing.T) {
	m, c := alone(t)
	seat, module := builtIn()
	c.put(state.Change{Module: module})
	c.plant("seat.node-mine", []byte(`{"name":"node-mine","seat":{"name":"node-mine"}}`), false)
	_, other, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	at := c.plant("seat.node-evil", seal.Value(other, seal.Place{Mesh: m.Keys.ID(), Key: "seat.node-evil", Revision: 4}, []byte(`{"name":"node-evil","seat":{"name":"node-evil"}}`)), false)
	require.EqualValues(t, 4, at)
	after := c.put(state.Change{Seat: seat})
	require.NoError(t, after.Unsound)
	require.Len(t, after.Seats, 1)
	require.Empty(t, after.UnreadableSeats)
	require.Equal(t, []string{"seat.node-evil", "seat.node-mine"}, c.Strangers())
}

// TestWhatASealedSeatSaysAndCannotBeReadIsNamed: a newer version of stead may
// write what this one cannot read.
func TestWhatASealedSeatSaysAndCannotBeReadIsNamed(t *testing.T) {
	m, c := alone(t)
	c.seal(m, "module.systemd", []byte(`{"name":"systemd"}`))
	now := c.until("unreadable", func(s *assign.State) bool { return len(s.UnreadableModules) > 0 })
	require.Contains(t, now.UnreadableModules["systemd"], "it is no module of that name")
	c.seal(m, "seat.node-service-manager", []byte(`{"name":"other","gone":true}`))
	now = c.until("unreadable", func(s *assign.State) bool { return len(s.UnreadableSeats) > 0 })
	require.Contains(t, now.UnreadableSeats["node-service-manager"], `it is called "other"`)
	seat, module := builtIn()
	after := c.put(state.Change{Seat: seat}, state.Change{Module: module})
	require.Empty(t, after.UnreadableSeats)
	require.Empty(t, after.UnreadableModules)
}
