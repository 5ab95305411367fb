package main

import (
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// TestEveryMutantCanBeMade: what it changes stands in the tree once, is Go behind it, and the test that is to fail is there.
func TestEveryMutantCanBeMade(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		require.False(t, names[m.name], m.name)
		names[m.name] = true
		text, err := m.changed(root)
		require.NoError(t, err, m.name)
		_, err = format.Source([]byte(text))
		require.NoError(t, err, m.name)
		require.True(t, strings.Contains(tests(t, m.dir), "func "+m.test+"(t *testing.T)"), "%s: no %s in %s", m.name, m.test, m.dir)
	}
}

// tests is the text of all tests of a package.
func tests(t *testing.T, dir string) string {
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	return all.String()
}
