package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
)

func TestWhatIsKeptIsWholeAndItsOwnersAlone(t *testing.T) {
	f := kept{filepath.Join(t.TempDir(), "tools.json")}
	s, err := f.read()
	require.NoError(t, err)
	require.Nil(t, s)
	want := wire.Signed{Index: []byte(`{"a":"<>&"}`), Signature: []byte("s")}
	require.NoError(t, f.keep(wire.Signed{Index: []byte("{}")}))
	require.NoError(t, f.keep(want))
	s, err = f.read()
	require.NoError(t, err)
	require.Equal(t, &want, s)
	info, err := os.Stat(f.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(f.path))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing half-written stays")

	require.NoError(t, os.WriteFile(f.path, []byte(`{"ind`), 0o600))
	_, err = f.read()
	require.Error(t, err)
	require.NoError(t, f.keep(want), "a damaged one is replaced")
	require.Error(t, kept{filepath.Join(t.TempDir(), "none", "tools.json")}.keep(want))
}
