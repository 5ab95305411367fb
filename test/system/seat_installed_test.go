package system

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/subject"
	"stead/test/odd"
)

// TestTheSeatOfAnInstalledNode asks the runtime as it is installed over the mesh,
// and tries what it and others may do besides.
func TestTheSeatOfAnInstalledNode(t *testing.T) {
	if !insideUp(t) {
		return
	}
	here(t)("stead", "credentials", "operator", "carol", "--out", "/root/carol.json")
	carol := personOf(t, "/root/carol.json")
	t.Run("rights", func(t *testing.T) { newRights(t, carol).tried() })
	t.Run("helper", func(t *testing.T) { newRights(t, carol).knocked() })
	t.Run("words", func(t *testing.T) {
		// From here on the machine is good for nothing else.
		odd.Make(here(t))
		require.NoError(t, odd.Say(odd.Entries()...))
		here(t)("journalctl", "--sync")
		odd.Compare(t, here(t), func(verb subject.Verb, arguments any) (json.RawMessage, error) {
			return carol.ask("ws1", verb, arguments)
		}, sample())
	})
}

// sample is one in how many odd units of the system an installed node is asked about.
// All of them are tried where the verbs are, in modules/systemd.
func sample() int {
	if full() {
		return 1
	}
	return 5
}
