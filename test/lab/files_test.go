package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

func TestFilesGoInAndOut(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	require.NoError(t, n.WriteFile("/srv/new/deep/file", []byte("one"), 0o640))
	require.Equal(t, "one 640 root 755\n", n.Run(t, "sh", "-c", "echo $(cat /srv/new/deep/file) $(stat -c '%a %U' /srv/new/deep/file) $(stat -c %a /srv/new)"))
	require.NoError(t, n.WriteFile("/srv/new/deep/file", []byte("2"), 0o666))
	b, err := n.ReadFile("/srv/new/deep/file")
	require.NoError(t, err)
	require.Equal(t, "2", string(b))
	require.Equal(t, "666\n", n.Run(t, "stat", "-c", "%a", "/srv/new/deep/file"))
	require.FileExists(t, n.Path("/srv/new/deep/file"))
	require.FileExists(t, n.Upper()+"/srv/new/deep/file")
	require.NoError(t, n.Remove("/srv/new"))
	require.NoError(t, n.Remove("/srv/new"), "it is gone already")
	_, err = n.ReadFile("/srv/new/deep/file")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, `read "/srv/new/deep/file" in lab node`)
}

// A test must never touch this machine by way of a link that a node holds.
func TestSymlinksInsideStayInside(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	outside := t.TempDir()
	n.Run(t, "mkdir", "-p", outside)
	n.Run(t, "ln", "-s", outside, "/srv/link")
	n.Run(t, "ln", "-s", "../../../../../.."+outside, "/srv/climb")
	require.NoError(t, n.WriteFile("/srv/link/a", nil, 0o600))
	require.NoError(t, n.WriteFile("/srv/climb/new/b", nil, 0o600))
	require.Equal(t, "a\nnew\n", n.Run(t, "ls", outside))
	require.NoError(t, n.Remove("/srv/link/a"))
	require.Equal(t, "new\n", n.Run(t, "ls", outside))
	require.NoError(t, n.Remove("/srv/link"), "the link and not what it points to")
	require.Equal(t, "new\n", n.Run(t, "ls", outside))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestFoldersAreCopied(t *testing.T) {
	n := lab.Start(t, lab.Options{})
	from := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(from, "bin", "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(from, "bin", "tool"), []byte("#!/bin/sh\necho ran\n"), 0o755))
	require.NoError(t, os.Symlink("tool", filepath.Join(from, "bin", "alias")))
	require.NoError(t, n.CopyIn(from, "/opt/copy"))
	require.Equal(t, "ran\n", n.Run(t, "/opt/copy/bin/alias"))
	require.Equal(t, "700\n", n.Run(t, "stat", "-c", "%a", "/opt/copy/bin/empty"))

	back := filepath.Join(t.TempDir(), "back")
	require.NoError(t, n.CopyOut("/opt/copy", back))
	target, err := os.Readlink(filepath.Join(back, "bin", "alias"))
	require.NoError(t, err)
	require.Equal(t, "tool", target)
	require.NoError(t, n.CopyOut("/opt/copy/bin/tool", back+"-tool"))
	st, err := os.Stat(back + "-tool")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode())

	require.ErrorIs(t, n.CopyIn(from+"/none", "/opt/none"), os.ErrNotExist)
	require.ErrorIs(t, n.CopyOut("/opt/none", back), os.ErrNotExist)
	require.ErrorContains(t, n.CopyIn("/dev/null", "/opt/null"), "neither file")
}
