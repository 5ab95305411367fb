package folder

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/shape"
)

// problemsOf reads path and returns the problems that forbid it.
func problemsOf(t *testing.T, path string) shape.Problems {
	t.Helper()
	texts, _, err := Texts(t.Context(), path)
	require.Empty(t, texts)
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	var p shape.Problems
	require.ErrorAs(t, err, &p)
	return p
}

func TestTextsAreTheFilesOfAFolderAsTheyAre(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "mesh", "b.yaml", "x: [", "a/z.yml", doc("z"), ".hidden.yaml", "x", "notes.txt", "x", "only.yaml", "# nothing\n")
	require.NoError(t, os.Symlink("a", "mesh/link"))
	texts, warnings, err := Texts(t.Context(), "mesh/")
	require.NoError(t, err)
	require.Equal(t, []Text{{"mesh/a/z.yml", []byte(doc("z"))}, {"mesh/b.yaml", []byte("x: [")}, {"mesh/only.yaml", []byte("# nothing\n")}}, texts)
	require.Equal(t, []string{"mesh/link is a link to a folder, and is not followed"}, warnings)
}

func TestTextsTakeOneFileOfAnyName(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "mesh", ".odd", doc("a"), "b.yaml", doc("b"))
	require.NoError(t, os.Symlink("mesh/.odd", "link"))
	for path, name := range map[string]string{"mesh/.odd": "mesh/.odd", "link": "link", "./mesh//b.yaml": "mesh/b.yaml"} {
		texts, _, err := Texts(t.Context(), path)
		require.NoError(t, err)
		require.Len(t, texts, 1)
		require.Equal(t, name, texts[0].Name)
	}
}

func TestTextsNameWhatIsWrongWithAPath(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "mesh", "README", "x", "sub/empty.yaml", "")
	require.NoError(t, unix.Mkfifo("fifo", 0o644))
	require.NoError(t, os.Symlink("nowhere", "dangling"))
	require.NoError(t, os.Mkdir("none", 0o755))
	require.NoError(t, os.WriteFile("large", nil, 0o644))
	require.NoError(t, os.Truncate("large", shape.MaxBatch+1))
	for path, want := range map[string]string{
		"nowhere":             "nowhere: there is no such file or folder; see to the path",
		"none":                "none: the folder holds no declaration file (*.yaml, *.yml); see to the path; to withdraw: stead withdraw NAME",
		"mesh":                "mesh/sub/empty.yaml: it is empty, and taken for half-written; write a declaration, or delete the file",
		"mesh/sub/empty.yaml": "mesh/sub/empty.yaml: it is empty, and taken for half-written; write a declaration, or delete the file",
		"fifo":                "fifo: it is a FIFO, which is not opened; declarations stand in regular files: give it another name, or delete it",
		"/dev/zero":           "/dev/zero: it is a device, which is not opened; declarations stand in regular files: give it another name, or delete it",
		"dangling":            "dangling: it is a link to a file that does not exist; put the file there, or name another",
		"large":               "large: the declaration files have 16777217 bytes; at most 16777216 are read; declare less at a time",
		"mesh/README/x":       "mesh/README/x: the folder cannot be read: not a directory; make it readable, or move it away; until then nothing changes",
	} {
		p := problemsOf(t, path)
		require.Len(t, p, 1)
		require.Equal(t, want, p[0].String())
	}
	require.NoError(t, os.Chmod(t.TempDir(), 0o755))
}

func TestTextsNameAFolderThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	put(t, dir, "a.yaml", doc("a"), "sub/c.yaml", doc("c"))
	require.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0))
	asNobody(t, func() {
		require.Equal(t, dir+"/sub: the folder cannot be read: permission denied; make it readable, or move it away; until then nothing changes",
			problemsOf(t, dir)[0].String())
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0o755))
}

func TestTextsWaitForAWriterForAWhile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.yaml", doc("a"))
	f, err := os.OpenFile(filepath.Join(dir, "a.yaml"), os.O_WRONLY, 0)
	require.NoError(t, err)
	start := time.Now()
	p := problemsOf(t, dir)
	require.Equal(t, "it is open for writing in another process; try again when it is written", strings.SplitN(p[0].String(), ": ", 2)[1])
	require.GreaterOrEqual(t, time.Since(start), settleFor)
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(100 * time.Millisecond)
		f.Close()
	}()
	texts, _, err := Texts(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, texts, 1)
	<-done
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Texts(ctx, dir)
	require.True(t, fault.Is(err, fault.Canceled))
}
