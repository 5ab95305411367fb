package systemd

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/subject"
	"stead/test/odd"
)

// TestVerbsSayWhatSystemctlSays makes units of all types in odd states and holds
// what the verbs answer against systemctl, field by field.
func TestVerbsSayWhatSystemctlSays(t *testing.T) {
	if !served(t, func(run func(args ...string) string) {
		odd.Make(run)
		require.NoError(t, odd.Say(odd.Entries()...))
		run("journalctl", "--sync")
	}) {
		return
	}
	r := realRig(t)
	odd.Compare(t, here(t), func(verb subject.Verb, arguments any) (json.RawMessage, error) {
		return r.d.Call(t.Context(), request(t, verb, arguments))
	}, 1)
}
