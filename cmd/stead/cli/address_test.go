package cli

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"stead/mesh/subject"
)

func TestNodesThatAreNamedNeedNoController(t *testing.T) {
	require.Equal(t, []subject.Node{"b", "a"}, (&address{nodes: []string{"b", "a", "b"}}).named())
	for _, a := range []address{{}, {all: true}, {labels: labels{"role": "web"}}, {nodes: []string{"a"}, labels: labels{"role": "web"}}} {
		require.Empty(t, a.named(), "it is the mesh that knows which")
	}
}

func TestAnAddressIsOneWayAndOneScope(t *testing.T) {
	c := &cobra.Command{Use: "units"}
	for _, bad := range []address{{all: true, nodes: []string{"a"}}, {all: true, labels: labels{"a": "b"}}, {user: true, system: true}, {nodes: []string{"_all"}}, {nodes: []string{"a.b"}}} {
		require.ErrorAs(t, bad.check(c), &usageError{})
	}
	a := address{nodes: []string{"a"}, labels: labels{"role": "web"}, user: true}
	require.NoError(t, a.check(c))
	require.Equal(t, "user", a.scope())
	require.Equal(t, "-n a -l role=web", a.String())
}
