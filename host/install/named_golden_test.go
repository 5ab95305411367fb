package install

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// golden is what systemd 252 made of the named scenes.
//
//go:embed testdata/named.golden
var golden string

// TestNamed compares with what a real manager was recorded to do; record it
// anew with: go test -run TestManagerNamed ./host/install -args -record
func TestNamed(t *testing.T) {
	var got strings.Builder
	for i, n := range namedScenes() {
		o := n.disk.options()
		r, err := Links(n.ask, o)
		require.NoError(t, err)
		links, good := n.disk.after(r, o)
		got.WriteString(outcomeText(i, n, links, good))
	}
	require.Empty(t, cmp.Diff(golden, got.String()))
}

// outcomeText says which links there are when a scene's unit has been enabled,
// those of the scene itself left out.
func outcomeText(i int, n named, links map[string]string, good bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s: %s", i, n.name, n.ask)
	if !good {
		b.WriteString(" fails")
	}
	b.WriteByte('\n')
	for _, p := range slices.Sorted(maps.Keys(links)) {
		if n.disk[p].text != links[p] {
			fmt.Fprintf(&b, "\t%s -> %s\n", strings.TrimPrefix(p, etc+"/"), links[p])
		}
	}
	return b.String()
}
