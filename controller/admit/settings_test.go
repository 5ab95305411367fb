package admit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/mesh/wire"
)

func TestSettingsChangeWhatIsAskedAlone(t *testing.T) {
	w := newWorld(t).node("web1", "role=web", "zone=a")
	opal, on, none := "opal", "on", ""
	d := w.set(wire.SettingsRequest{Node: "web1", Labels: map[string]string{"role": "db", "rack": "7"}, Unlabel: []string{"zone"}, Account: &opal, Linger: &on})
	require.Equal(t, &assign.Node{Name: "web1", Labels: map[string]string{"role": "db", "rack": "7"}, Account: "opal", Linger: "on", By: "operator alice", At: w.now.Add(26 * 3600e9)}, d.Node)

	before := w.state.Nodes["web1"]
	d = w.set(wire.SettingsRequest{Node: "web1", Account: &none})
	require.Empty(t, d.Node.Account)
	require.Equal(t, "opal", before.Account, "what stood is not touched")
	require.Equal(t, map[string]string{"role": "db", "rack": "7"}, d.Node.Labels)

	for name, r := range map[string]wire.SettingsRequest{
		"nothing":              {Node: "web1"},
		"what stands":          {Node: "web1", Add: true, Labels: map[string]string{"rack": "7"}, Linger: &on, Account: &none},
		"a label that is gone": {Node: "web1", Unlabel: []string{"zone"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := w.set(r)
			require.Nil(t, d.Node, "asking again changes nothing")
			require.Empty(t, d.Reply.Changes)
			require.Equal(t, "db", d.Reply.Node.Labels["role"])
		})
	}
}

// TestARemovalThatWasAMistakeIsUndone: removed and added again, a node has its
// labels, and so its set, as before.
func TestARemovalThatWasAMistakeIsUndone(t *testing.T) {
	w := newWorld(t).node("web1", "role=web").node("web2", "role=web")
	w.landed(service("web", "labels: {role: web}"))
	set := assign.Place(w.state).Set("web1")
	d := w.set(wire.SettingsRequest{Node: "web1", Remove: true})
	require.Empty(t, d.Reply.Sure, "nothing is taken from a node that is told nothing")
	require.Empty(t, assign.Place(w.state).Set("web1"))
	w.set(wire.SettingsRequest{Node: "web1", Add: true})
	require.Equal(t, set, assign.Place(w.state).Set("web1"))
}

func TestNamesOfLogins(t *testing.T) {
	for name, ok := range map[string]bool{
		"": true, "opal": true, "_x": true, "a.b-c_9": true, "Opal": true, "9a": false, "-a": false, ".a": false, "a b": false, "a/b": false, "ö": false,
		"a\n": false, strings.Repeat("a", 32): true, strings.Repeat("a", 33): false,
	} {
		require.Equal(t, ok, name == "" || wire.Login(name), "%q", name)
	}
}

func TestANodeCarriesSoManyLabels(t *testing.T) {
	w := newWorld(t).node("web1")
	many := map[string]string{}
	for i := range 64 {
		many[fmt.Sprintf("k%d", i)] = "v"
	}
	require.Len(t, w.set(wire.SettingsRequest{Node: "web1", Labels: many}).Node.Labels, 64)
	one := map[string]string{"one": "more"}
	d := w.set(wire.SettingsRequest{Node: "web1", Labels: one})
	require.Equal(t, "web1.labels: it would carry 65 labels; a node carries at most 64; take some off", d.Reply.Problems[0].String())
	require.Len(t, w.set(wire.SettingsRequest{Node: "web1", Labels: one, Unlabel: []string{"k0"}}).Node.Labels, 64, "one goes, one comes")
}
