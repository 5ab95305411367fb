package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/seats"
	"stead/test/arch"
)

// Who has read README alone has seen every verb, and what can be asked of seats, each in a block that is run.
func TestReadmeShowsEveryCommandOfTheSeat(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	blocks, err := arch.Blocks("README.md", string(text))
	require.NoError(t, err)
	var shown []string
	for _, b := range blocks {
		commands, err := b.Commands()
		require.NoError(t, err)
		for _, c := range commands {
			shown = append(shown, strings.Fields(c.Text)...)
		}
	}
	given := " " + strings.Join(shown, " ") + " "
	want := []string{"call", "get seats", "get modules", "get holders"}
	for _, v := range seats.Seeded()[0].Verbs {
		want = append(want, string(v.Name))
	}
	for _, w := range want {
		require.Contains(t, given, " stead "+w+" ")
	}
}
