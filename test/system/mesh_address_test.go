package system

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
)

// TestAFolderComesToTheNodesThatItAddresses applies one folder, moves a label from
// one node to the other, and lets a node come that was not there.
func TestAFolderComesToTheNodesThatItAddresses(t *testing.T) {
	r := startMeshWith(t, 2, "ws1", "ws2")
	ws1, ws2 := r.nodes["ws1"], r.nodes["ws2"]
	r.done("node", "label", "ws1", "role=web")
	base, web := sleeper(1), sleeper(2)
	begun := time.Now()
	r.apply(map[string]string{"web": addressed("web", "labels: {role: web}", web), "base": addressed("base", "all: true", base)})
	t.Logf("applied to two nodes and converged after %s", time.Since(begun).Round(time.Millisecond))
	require.True(t, ws1.runs("web.service", web), "ws1 has the label")
	require.True(t, ws1.runs("base.service", base))
	require.True(t, ws2.runs("base.service", base))
	require.True(t, ws2.absent("web.service"), "ws2 has not the label")
	r.reports("ws1 base 1", "ws1 web 1", "ws2 base 1")

	was := []string{ws1.prop("base.service", "InvocationID"), ws2.prop("base.service", "InvocationID")}
	begun = time.Now()
	r.done("node", "label", "ws1", "role-")
	r.done("node", "label", "ws2", "role=web")
	r.reports("ws1 base 1", "ws2 base 1", "ws2 web 1")
	t.Logf("the label moved and the unit with it after %s", time.Since(begun).Round(time.Millisecond))
	require.True(t, ws2.runs("web.service", web))
	require.True(t, ws1.absent("web.service"), "the unit stays where the label went")
	require.Equal(t, was, []string{ws1.prop("base.service", "InvocationID"), ws2.prop("base.service", "InvocationID")}, "others were touched")

	// One that is known before it comes, and one that nobody announced.
	r.done("node", "add", "ws3", "role=web")
	begun = time.Now()
	ws3, ws4 := r.join("ws3"), r.join("ws4")
	r.reports("ws1 base 1", "ws2 base 1", "ws2 web 1", "ws3 base 1", "ws3 web 1", "ws4 base 1")
	t.Logf("two nodes booted, joined and converged after %s", time.Since(begun).Round(time.Millisecond))
	require.True(t, ws3.runs("web.service", web) && ws3.runs("base.service", base) && ws4.runs("base.service", base))
	require.True(t, ws4.absent("web.service"))
	for _, n := range r.get(wire.Nodes).Nodes {
		require.Equal(t, wire.Ready, n.State, n.Name)
	}

	// What people read says the same.
	require.Regexp(t, `web +web\.service +system +role=web +2 .* alice +converged`, r.done("get", "declarations"))
	require.Regexp(t, `ws3 +ready +\d+ +– +role=web +2 +2`, r.done("get", "nodes"))
	require.Contains(t, r.done("describe", "node", "ws3"), "role=web")
	require.Contains(t, r.done("describe", "declaration", "web"), strings.Fields(web)[1], "it shows what is declared")

	// And all of it goes by name.
	r.done("withdraw", "web", "--wait=1m")
	r.reports("ws1 base 1", "ws2 base 1", "ws3 base 1", "ws4 base 1")
	require.True(t, ws2.absent("web.service") && ws3.absent("web.service"))
}
