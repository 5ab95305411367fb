package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestTheRootOfAVersionIsFoundOrHowToMakeIt(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(lab.RootsEnv, dir)
	require.Equal(t, []string{"247", "252", "257"}, lab.Versions())
	_, err := lab.VersionRoot("253")
	require.EqualError(t, err, `systemd "253": want one of 247, 252, 257`)
	_, err = lab.VersionRoot("247")
	require.EqualError(t, err, `systemd 247: there is no root file system "`+dir+`/bullseye": make lab-roots`)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bullseye"), 0o755))
	root, err := lab.VersionRoot("247")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "bullseye"), root)

	t.Setenv(lab.RootsEnv, "")
	_, err = lab.VersionRoot("252")
	if err != nil { // it is made where somebody wants it
		require.ErrorContains(t, err, "/build/roots/bookworm")
	}
}
