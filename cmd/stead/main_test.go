package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingLargeIsMadeBeforeMain: what a package makes before main is made by
// every command, of which most have no use for it. Bytes stand for time, which a
// busy machine would make of them.
func TestNothingLargeIsMadeBeforeMain(t *testing.T) {
	const most = 256 << 10 // of one package
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.CommandContext(t.Context(), self, "-test.run=^$")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	packages := 0
	for line := range strings.Lines(string(out)) {
		// init stead/modules @1.2 ms, 0.03 ms clock, 44064 bytes, 12 allocs
		word := strings.Fields(line)
		if len(word) < 9 || word[0] != "init" {
			continue
		}
		packages++
		bytes, err := strconv.Atoi(word[7])
		require.NoError(t, err, line)
		require.Less(t, bytes, most, "%s makes this much before main", word[1])
	}
	require.Greater(t, packages, 50, "%s", out)
}
