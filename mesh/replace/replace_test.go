package replace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

func TestAFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	for mode, text := range map[os.FileMode]string{0o600: "first", 0o644: "", 0o400: "a\nb"} {
		require.NoError(t, File(path, []byte(text), mode))
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(got))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing half-written stays")
}

func TestWhatCannotBeReplacedStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	require.NoError(t, os.MkdirAll(filepath.Join(path, "full"), 0o700))
	err := File(path, []byte("y"), 0o600)
	require.True(t, fault.Is(err, fault.Failed), "%v", err)
	require.DirExists(t, filepath.Join(path, "full"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.True(t, fault.Is(File(filepath.Join(dir, "none", "x"), nil, 0o600), fault.Failed))
	require.True(t, fault.Is(Sync(filepath.Join(dir, "none")), fault.Failed))
}
