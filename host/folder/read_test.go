package folder

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/shape"
	"stead/test/lab"
)

func doc(name string) string { return "shape: service\nname: " + name + "\nensure: running\n" }

// put writes files below dir, given as pairs of name and content.
func put(t *testing.T, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(pairs[i+1]), 0o644))
	}
}

func open(t *testing.T, dir string) *Source {
	t.Helper()
	s, err := New(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return s
}

func read(t *testing.T, s *Source) Reading {
	t.Helper()
	r, err := s.Read(t.Context())
	require.NoError(t, err)
	return r
}

func names(r Reading) string {
	var all []string
	for _, s := range r.Services {
		all = append(all, s.Name)
	}
	return strings.Join(all, " ")
}

// problem requires that r has one problem, of the file of that name.
func problem(t *testing.T, r Reading, kind Kind, file, rule, cure string) {
	t.Helper()
	require.Equal(t, kind, r.Kind)
	require.Nil(t, r.Services)
	require.Equal(t, shape.Problems{{File: file, Rule: rule, Cure: cure}}, r.Problems)
}

func TestReadTakesEveryDeclarationFileInOrder(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "b.yaml", doc("b")+"---\n"+doc("c"), "a/z.yml", doc("az"), "a.yaml", doc("a"), "d/e/f/g/h/i/j/k/deep.yaml", doc("deep"),
		"notes.txt", "x: [", ".hidden.yaml", "x: [", ".git/x.yaml", "x: [", "#a.yaml#", "x: [", "#a.yaml", "x: [", "a.yaml~", "x: [", "old~/a.yaml", "x: [", ".#a.yaml", "x: [", "only.yaml", "# nothing\n", "b.yaml.swp", "x: [")
	r := read(t, open(t, dir))
	require.Equal(t, OK, r.Kind, r.Problems)
	require.Equal(t, "a az b c deep", names(r))
	require.Equal(t, shape.Origin{File: dir + "/b.yaml", Line: 5}, r.Services[3].Origin)
	require.Equal(t, 5, r.Files)
	require.Empty(t, r.Warnings)
}

func TestReadShowsNamesAsTheFolderWasGiven(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "mesh", "a.yaml", doc("a"), "b/\x1b[2J.yaml", doc("b"))
	r := read(t, open(t, "mesh"))
	require.Equal(t, "mesh/a.yaml:1", r.Services[0].Origin.String())
	require.Equal(t, `"mesh/b/\x1b[2J.yaml":1`, r.Services[1].Origin.String())
}

// A folder that is missing or empty is no wish for nothing; one whose files say
// nothing is.
func TestReadTellsMissingFromEmptyFromNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mesh")
	s := open(t, dir)
	problem(t, read(t, s), Missing, dir, "the folder does not exist", "make it; what was declared stays in force")
	put(t, dir, "README", "x")
	problem(t, read(t, s), Empty, dir, "the folder holds no declaration file (*.yaml, *.yml)", "what was declared stays in force; a file that holds only a comment declares nothing on purpose")
	put(t, dir, "a.yaml", "# nothing here on purpose\n")
	r := read(t, s)
	require.Equal(t, OK, r.Kind)
	require.Empty(t, r.Services)
	require.NoError(t, os.RemoveAll(dir))
	require.Equal(t, Missing, read(t, s).Kind)
	require.NoError(t, os.WriteFile(dir, []byte("x"), 0o644))
	problem(t, read(t, s), Bad, dir, "it is a file and not a folder", "name a folder of declaration files")
}

func TestReadRefusesHalfWrittenFiles(t *testing.T) {
	const cure = "write a declaration; to withdraw, delete the file, or leave a comment in it"
	dir := t.TempDir()
	put(t, dir, "a.yaml", "", "b.yaml", doc("b"))
	problem(t, read(t, open(t, dir)), Bad, dir+"/a.yaml", "it is empty, and taken for half-written", cure)
	for _, s := range []string{"\n", "---\n", " \n\n", "~\n"} {
		put(t, dir, "a.yaml", s)
		r := read(t, open(t, dir))
		require.Equal(t, shape.Problems{{File: dir + "/a.yaml", Line: 1, Rule: "it holds neither a declaration nor a comment, and is taken for half-written", Cure: cure}}, r.Problems)
	}
}

func TestReadWaitsForWriters(t *testing.T) { waitsForWriters(t, t.TempDir()) }

// The kernel's word on writers holds on the overlay that a lab node lives on,
// too, and changes there are seen.
func TestReadWaitsForWritersOnAnOverlay(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	var st unix.Statfs_t
	require.NoError(t, unix.Statfs("/var/lib", &st))
	require.EqualValues(t, unix.OVERLAYFS_SUPER_MAGIC, st.Type)
	waitsForWriters(t, "/var/lib/mesh-still")
	put(t, "/var/lib/mesh", "a.yaml", doc("a"))
	next := watched(t, "/var/lib/mesh")
	until(t, next, OK, "a")
	put(t, "/var/lib/mesh", "a.yaml", doc("b"))
	until(t, next, OK, "b")
}

func waitsForWriters(t *testing.T, dir string) {
	t.Helper()
	put(t, dir, "a.yaml", doc("a"), "bad.yaml", "x: [")
	s := open(t, dir)
	for _, flags := range []int{os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_APPEND} {
		f, err := os.OpenFile(filepath.Join(dir, "a.yaml"), flags, 0)
		require.NoError(t, err)
		problem(t, read(t, s), Unsettled, dir+"/a.yaml", "it is open for writing in another process", "it is read again soon; nothing changes until then")
		require.NoError(t, f.Close())
	}
	put(t, dir, "a.yaml", doc("a"), "bad.yaml", doc("b"))
	f, err := os.Open(filepath.Join(dir, "a.yaml"))
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, "a b", names(read(t, s)), "a reader is no writer")
}

func TestReadNoticesWhatChangesMeanwhile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.yaml", doc("a"))
	s := open(t, dir)
	path := filepath.Join(dir, "a.yaml")
	for name, c := range map[string]struct {
		change func() error
		rule   string
	}{
		"rewritten": {func() error { return os.WriteFile(path, []byte(doc("b")), 0o644) }, "it changed while the folder was being read"},
		"grown":     {func() error { return os.WriteFile(path, []byte(doc("bbbb")), 0o644) }, "it changed while the folder was being read"},
		"same time": {func() error {
			if err := os.WriteFile(path, []byte(doc("c")), 0o644); err != nil {
				return err
			}
			return os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0))
		}, "it changed while the folder was being read"},
		"replaced": {func() error {
			return os.Rename(filepath.Join(dir, ".new"), path)
		}, "it changed while the folder was being read"},
		"deleted": {func() error { return os.Remove(path) }, "it went away while the folder was being read"},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, dir, "a.yaml", doc("a"), ".new", doc("a"))
			require.NoError(t, os.Chtimes(path, time.Unix(1e9, 0), time.Unix(1e9, 0)))
			tree := s.scan(t.Context())
			time.Sleep(10 * time.Millisecond) // a tick of the kernel's clock
			require.NoError(t, c.change())
			r := s.readTree(t.Context(), tree)
			problem(t, r, Unsettled, path, c.rule, r.Problems[0].Cure)
		})
	}
	put(t, dir, "a.yaml", doc("a"))
	f := s.scan(t.Context()).files[0]
	f.stamp.size-- // it grows under the very read
	h, err := os.Open(path)
	require.NoError(t, err)
	defer h.Close()
	_, trouble := f.bytes(h, int(h.Fd()))
	require.True(t, trouble.moving)
}

func TestReadNamesAllProblemsOfAllFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "mesh", "a.yaml", doc("web"), "b/c.yaml", doc("web")+"---\nshape: service\nname: x\nensure: 1\n", "d.yaml", "")
	require.NoError(t, os.Symlink("nowhere", "mesh/e.yaml"))
	require.NoError(t, os.Symlink("f.yaml", "mesh/f.yaml"))
	r := read(t, open(t, "mesh"))
	require.Equal(t, Bad, r.Kind)
	require.Nil(t, r.Services)
	var b strings.Builder
	require.NoError(t, r.Problems.Format(&b, "nothing was changed"))
	require.Equal(t, `5 problems in 4 files, nothing was changed
  mesh/b/c.yaml:1  web.name  the name "web" is declared at mesh/a.yaml:1 too; give one of them another name, or delete it
  mesh/b/c.yaml:7  x.ensure  the number 1 where a text is wanted; put it in quotes: "1"
  mesh/d.yaml                it is empty, and taken for half-written; write a declaration; to withdraw, delete the file, or leave a comment in it
  mesh/e.yaml                it is a link to a file that does not exist; put the file there, or delete the link
  mesh/f.yaml                the file cannot be read: too many levels of symbolic links; make it readable, or move it away; until then nothing changes
`, b.String())
}

func TestReadNamesFilesThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	put(t, dir, "a.yaml", doc("a"), "b.yaml", doc("b"), "sub/c.yaml", doc("c"))
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.yaml"), 0))
	asNobody(t, func() {
		s := open(t, dir)
		problem(t, read(t, s), Bad, dir+"/a.yaml", "the file cannot be read: permission denied", "make it readable, or move it away; until then nothing changes")
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "a.yaml"), 0o644))
	require.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0))
	asNobody(t, func() {
		problem(t, read(t, open(t, dir)), Bad, dir+"/sub", "the folder cannot be read: permission denied", "make it readable, or move it away; until then nothing changes")
	})
	require.NoError(t, os.Chmod(filepath.Join(dir, "sub"), 0o755))
}

// asNobody runs f without root's right to read everything.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // its thread ends with it, since it stays locked
		defer close(done)
		runtime.LockOSThread()
		if _, err := unix.SetfsuidRetUid(65534); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

func TestReadNeverOpensWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "a.yaml"), 0o644))
	const cure = "declarations stand in regular files: give it another name, or delete it"
	problem(t, read(t, open(t, dir)), Bad, dir+"/a.yaml", "it is a FIFO, which is not opened", cure)
	require.NoError(t, os.Remove(filepath.Join(dir, "a.yaml")))
	l, err := net.Listen("unix", filepath.Join(dir, "s.yaml"))
	require.NoError(t, err)
	problem(t, read(t, open(t, dir)), Bad, dir+"/s.yaml", "it is a socket, which is not opened", cure)
	require.NoError(t, l.Close())
	require.NoError(t, os.Symlink("/dev/zero", filepath.Join(dir, "z.yaml")))
	problem(t, read(t, open(t, dir)), Bad, dir+"/z.yaml", "it is a device, which is not opened", cure)
}

func TestReadFollowsLinksToFilesOnly(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	put(t, other, "o.yaml", doc("o"))
	put(t, dir, "..v1/web.yaml", doc("web"))
	for _, l := range [][2]string{{"..v1", "..data"}, {"..data/web.yaml", "web.yaml"}, {other + "/o.yaml", "o.yml"}, {other, "linked"}, {"/etc/hostname", "hostname"}} {
		require.NoError(t, os.Symlink(l[0], filepath.Join(dir, l[1])))
	}
	r := read(t, open(t, dir))
	require.Equal(t, OK, r.Kind, r.Problems)
	require.Equal(t, "o web", names(r))
	require.Equal(t, []string{dir + "/linked is a link to a folder, and is not followed"}, r.Warnings)
	link := filepath.Join(t.TempDir(), "mesh")
	require.NoError(t, os.Symlink(dir, link))
	require.Equal(t, "o web", names(read(t, open(t, link))), "the folder itself may be a link")
}

func TestReadIsBounded(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "a.yaml", doc("a"), "b.yaml", "")
		require.NoError(t, os.Truncate(filepath.Join(dir, "b.yaml"), 1<<40))
		r := read(t, open(t, dir))
		problem(t, r, Bad, dir, "the declaration files have 1099511627815 bytes; at most 16777216 are read", "declare less, or on more nodes")
	})
	t.Run("files", func(t *testing.T) {
		dir := t.TempDir()
		for i := range MaxFiles + 1 {
			put(t, dir, fmt.Sprintf("%d.yaml", i), "#")
		}
		problem(t, read(t, open(t, dir)), Bad, dir, "there are more than 4096 declaration files", "put several declarations into one file, with --- between them")
		require.NoError(t, os.Remove(filepath.Join(dir, "0.yaml")))
		require.Equal(t, OK, read(t, open(t, dir)).Kind)
	})
	t.Run("names", func(t *testing.T) {
		dir := t.TempDir()
		for i := range MaxEntries + 1 {
			require.NoError(t, os.Symlink("x", filepath.Join(dir, fmt.Sprint(i))))
		}
		problem(t, read(t, open(t, dir)), Bad, dir, "there are more than 16384 names in the folder", "keep declarations in a folder of their own")
	})
	t.Run("depth", func(t *testing.T) {
		dir := t.TempDir()
		put(t, dir, "1/2/3/4/5/6/7/8/9/x.yaml", doc("x"))
		problem(t, read(t, open(t, dir)), Bad, dir+"/1/2/3/4/5/6/7/8/9", "the folder lies more than 8 folders deep", "move it up")
	})
	t.Run("declarations", func(t *testing.T) {
		dir := t.TempDir()
		var b strings.Builder
		for i := range shape.MaxDeclarations + 1 {
			b.WriteString(doc(fmt.Sprintf("n%d", i)) + "---\n")
		}
		put(t, dir, "a.yaml", b.String())
		require.Equal(t, "there are 1001 declarations; a batch has at most 1000", read(t, open(t, dir)).Problems[0].Rule)
	})
	t.Run("problems", func(t *testing.T) {
		dir := t.TempDir()
		for i := range 4 {
			put(t, dir, fmt.Sprintf("%d.yaml", i), strings.Repeat("x: 1\n---\n", 900))
		}
		p := read(t, open(t, dir)).Problems
		require.Len(t, p, shape.MaxProblems+1)
		require.Contains(t, p[shape.MaxProblems].Rule, "further problems are not listed")
	})
}

func TestReadKnowsThatNothingChanged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.yaml")
	put(t, dir, "a.yaml", doc("a"))
	s := open(t, dir)
	require.False(t, read(t, s).Unchanged)
	again := read(t, s)
	require.False(t, again.Unchanged, "a change within the same tick would not be seen")
	aged := func() { // as if all that had been some time ago
		s.last = &again
	}
	aged()
	r := read(t, s)
	require.True(t, r.Unchanged)
	require.Equal(t, again.Fingerprint, r.Fingerprint)
	require.Same(t, again.Services[0], r.Services[0])

	time.Sleep(10 * time.Millisecond) // a tick of the kernel's clock
	stat, err := os.Stat(path)
	require.NoError(t, err)
	put(t, dir, "a.yaml", doc("b"))
	require.NoError(t, os.Chtimes(path, stat.ModTime(), stat.ModTime()))
	r = read(t, s)
	require.False(t, r.Unchanged, "same size, same mtime")
	require.Equal(t, "b", names(r))
	again = r
	aged()
	put(t, dir, "c.yaml", doc("c"))
	require.Equal(t, "b c", names(read(t, s)))
}

func TestReadEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.yaml", doc("a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(t, dir).Read(ctx)
	require.True(t, fault.Is(err, fault.Canceled))
	require.ErrorIs(t, err, context.Canceled)
}

func TestNewWantsFolderAndLogger(t *testing.T) {
	_, err := New(Options{})
	require.True(t, fault.Is(err, fault.Invalid))
}
