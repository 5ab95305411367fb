package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

func put(p, text string) plan.Change {
	return plan.Change{Path: p, Entry: fileOf(text), Content: []byte(text)}
}

func putLink(p, target string) plan.Change {
	return plan.Change{Path: p, Entry: plan.Entry{Kind: plan.Link, Target: target}}
}

func remove(p string) plan.Change { return plan.Change{Path: p, Entry: absent()} }

// apply makes changes that are to succeed, and sees that nothing temporary stays.
func (w *world) apply(cs ...plan.Change) plan.Applied {
	w.t.Helper()
	r := w.Apply(w.t.Context(), cs)
	for i, err := range r.Errs {
		require.NoError(w.t, err, cs[i].Path)
	}
	w.clean()
	return r
}

func (w *world) clean() {
	w.t.Helper()
	require.NoError(w.t, filepath.WalkDir(w.root, func(p string, e os.DirEntry, err error) error {
		require.False(w.t, temporary(filepath.Base(p)), p)
		return err
	}))
}

// entry is what stands at a path, seen with other means.
func (w *world) entry(p string) plan.Entry {
	w.t.Helper()
	st, err := os.Lstat(w.at(p))
	switch {
	case os.IsNotExist(err):
		return absent()
	case st.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(w.at(p))
		require.NoError(w.t, err)
		return plan.Entry{Kind: plan.Link, Target: target}
	}
	require.True(w.t, st.Mode().IsRegular(), p)
	e := fileOf(w.read(p))
	e.Mode = st.Mode()
	sys := st.Sys().(*syscall.Stat_t)
	e.UID, e.GID = int(sys.Uid), int(sys.Gid)
	return e
}

func TestChangesStandAsAskedFor(t *testing.T) {
	for _, n := range []int{1, 100} { // synced one by one, and all at once
		w := newWorld(t, map[string]string{etc + "/over": "old", etc + "/link-over": "-> old", etc + "/gone": "old", etc + "/link-gone": "-> old"})
		odd := put(etc+"/odd", "text")
		odd.Entry.Mode, odd.Entry.UID, odd.Entry.GID = 0o750|os.ModeSetuid|os.ModeSticky, 7, 8
		cs := []plan.Change{put(etc+"/new", "text"), put(etc+"/over", "text"), put(etc+"/link-over", "text"), odd, put(etc+"/empty", ""),
			putLink(etc+"/link", "/x/y"), putLink(etc+"/over2", "../z"), remove(etc + "/gone"), remove(etc + "/link-gone"), remove(etc + "/never"), remove("/no/such/folder")}
		for i := range n {
			cs = append(cs, put(fmt.Sprintf("%s/u%d.service.d/10.conf", etc, i), "text"))
		}
		r := w.apply(cs...)
		for _, c := range cs {
			require.Equal(t, c.Entry, w.entry(c.Path), c.Path)
		}
		require.Len(t, r.Made, n)
		require.Len(t, r.Kept, 4, "nobody had looked at what stood there")
		st, err := os.Stat(w.at(r.Made[0]))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o755)|os.ModeDir, st.Mode())
	}
}

func TestUmaskDoesNotShow(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	w := newWorld(t, nil)
	w.apply(put(etc+"/a.service.d/x.conf", "text"))
	require.Equal(t, os.FileMode(0o644), w.entry(etc+"/a.service.d/x.conf").Mode)
	st, err := os.Stat(w.at(etc + "/a.service.d"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode().Perm())
}

func TestFoldersThatWereMadeGoAgain(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/mine.service.d/user.conf": "x"})
	paths := []string{etc + "/a.service.d/x.conf", etc + "/deep/er/x", etc + "/mine.service.d/x.conf"}
	missing := w.Missing(paths)
	require.Equal(t, []string{etc + "/a.service.d", etc + "/deep", etc + "/deep/er"}, missing)
	r := w.apply(put(paths[0], "x"), put(paths[1], "x"), put(paths[2], "x"))
	require.Equal(t, missing, r.Made)
	require.Empty(t, w.Missing(paths))
	require.Empty(t, w.RemoveDirs(r.Made), "none is empty")
	w.apply(remove(paths[0]), remove(paths[1]), remove(paths[2]))
	require.Equal(t, missing, w.RemoveDirs(append(r.Made, etc+"/mine.service.d")))
	require.Equal(t, missing, w.RemoveDirs(r.Made), "gone is gone")
	require.Equal(t, []string{"mine.service.d"}, w.list(etc))
}

func TestFolderThatIsALinkIsLeft(t *testing.T) {
	w := newWorld(t, map[string]string{"/opt/d/": "", etc + "/a.service.d": "-> /opt/d"})
	require.Empty(t, w.RemoveDirs([]string{etc + "/a.service.d"}))
	w.apply(put(etc+"/a.service.d/x.conf", "text"))
	require.Equal(t, "text", w.read("/opt/d/x.conf"))
}

func TestWhatOnlyTheUserHasIsKept(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/a": "user's", etc + "/l": "-> user's", etc + "/known": "user's", etc + "/touched": "user's", etc + "/asked": "ours"})
	found := map[string]plan.Entry{}
	for _, n := range []string{"known", "touched", "asked", "absent"} {
		found[etc+"/"+n] = plan.Entry{}
	}
	w.look(plan.Query{Unit: "x.service", Memory: plan.Memory{Found: found}})
	_, _, err := w.Snapshot(etc + "/known")
	require.NoError(t, err)
	w.put(etc+"/absent", "came meanwhile")
	require.NoError(t, os.WriteFile(w.at(etc+"/touched"), []byte("edited meanwhile"), 0o600))
	asked := put(etc+"/asked", "new")
	asked.Keep = true
	r := w.apply(put(etc+"/a", "new"), remove(etc+"/l"), put(etc+"/known", "new"), put(etc+"/touched", "new"), asked, put(etc+"/absent", "new"))

	kept := "/var/lib/stead/host/kept"
	as := func(text, name string) string { return fileOf(text).Digest[:16] + "-" + name }
	require.Equal(t, map[string]string{
		etc + "/a":       kept + "/" + as("user's", "a"),
		etc + "/l":       kept + "/index.jsonl",
		etc + "/touched": kept + "/" + as("edited meanwhile", "touched"),
		etc + "/asked":   kept + "/" + as("ours", "asked"),
		etc + "/absent":  kept + "/" + as("came meanwhile", "absent"),
	}, r.Kept)
	require.Equal(t, "edited meanwhile", w.read(r.Kept[etc+"/touched"]))
	st, err := os.Stat(w.at(kept))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	require.Equal(t, os.FileMode(0o600), w.entry(r.Kept[etc+"/a"]).Mode)
	require.NotContains(t, r.Made, kept)

	lines := map[string]Kept{}
	for line := range strings.Lines(w.read(kept + "/index.jsonl")) {
		var k Kept
		require.NoError(t, json.Unmarshal([]byte(line), &k))
		require.False(t, k.Time.IsZero())
		lines[k.Path] = k
	}
	require.Len(t, lines, 5)
	require.Equal(t, plan.Entry{Kind: plan.Link, Target: "user's"}, lines[etc+"/l"].Entry)
	require.Equal(t, plan.Absent, lines[etc+"/l"].Change)
	edited := fileOf("edited meanwhile")
	edited.Mode = 0o644
	require.Equal(t, edited, lines[etc+"/touched"].Entry)

	again := put(etc+"/a", "newer")
	w.look(plan.Query{Unit: "x.service", Memory: plan.Memory{Found: map[string]plan.Entry{again.Path: {}}}})
	require.Empty(t, w.apply(again).Kept)
}

func TestWhatSomebodyDoesAgainAndAgainIsKeptOnce(t *testing.T) {
	w := newWorld(t, nil)
	p := etc + "/a.service"
	kept := make(map[string]int)
	for i := range 6 {
		w.put(p, []string{"one", "another"}[i%2])
		kept[w.apply(put(p, "ours")).Kept[p]]++
	}
	require.Len(t, kept, 2)
	for as, times := range kept {
		require.Equal(t, 3, times, as)
	}
	require.Equal(t, 2, strings.Count(w.read("/var/lib/stead/host/kept/index.jsonl"), "\n"))
}

func TestWhatIsNoFileIsNotTakenAway(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/d/": ""})
	require.NoError(t, unix.Mkfifo(w.at(etc+"/p"), 0o600))
	require.NoError(t, unix.Mknod(w.at(etc+"/n"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
	cs := []plan.Change{put(etc+"/d", "x"), remove(etc + "/d"), putLink(etc+"/p", "x"), put(etc+"/n", "x"), put(etc+"/ok", "x")}
	cs[1].Path = etc + "/./d"
	r := w.Apply(t.Context(), cs)
	for i := range 4 {
		require.Equal(t, fault.Conflict, fault.ClassOf(r.Errs[i]), "%v", r.Errs[i])
	}
	require.NoError(t, r.Errs[4], "the others go on")
	require.ElementsMatch(t, []string{"d", "n", "ok", "p"}, w.list(etc))
}

func TestOnePathOnce(t *testing.T) {
	w := newWorld(t, nil)
	r := w.Apply(t.Context(), []plan.Change{put(etc+"/a", "1"), put(etc+"/a", "2")})
	require.NoError(t, r.Errs[0])
	require.Equal(t, fault.Internal, fault.ClassOf(r.Errs[1]))
	require.Equal(t, "1", w.read(etc+"/a"))
}

func TestCanceledApplyChangesNothing(t *testing.T) {
	w := newWorld(t, map[string]string{etc + "/a": "old"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := w.Apply(ctx, []plan.Change{put(etc+"/a", "new"), remove(etc + "/a2")})
	require.Equal(t, fault.Canceled, fault.ClassOf(r.Errs[0]))
	require.Equal(t, "old", w.read(etc+"/a"))
	w.clean()
}

// A reader sees the old bytes or the new ones, at every moment.
func TestNoHalfFileIsEverSeen(t *testing.T) {
	if !aside(t) {
		return
	}
	w := newWorld(t, nil)
	mount(t, "tmpfs", w.at(etc), "tmpfs", 0, "") // a disk that is quick to sync
	p := etc + "/a.service"
	long, short := strings.Repeat("a", 60_000), strings.Repeat("b", 10)
	w.apply(put(p, long))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	seen := make([]int, 2)
	readers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			switch data, err := os.ReadFile(w.at(p)); {
			case err != nil:
				t.Errorf("a moment without the file: %v", err)
				return
			case bytes.Equal(data, []byte(long)):
				seen[0]++
			case bytes.Equal(data, []byte(short)):
				seen[1]++
			default:
				t.Errorf("%d bytes of something else", len(data))
				return
			}
		}
	})
	for i := range 1000 {
		text := long
		if i%2 == 0 {
			text = short
		}
		r := w.Apply(t.Context(), []plan.Change{put(p, text)})
		require.NoError(t, r.Errs[0])
	}
	close(stop)
	readers.Wait()
	require.Greater(t, seen[0], 20)
	require.Greater(t, seen[1], 20)
}

func TestSweepTakesWhatAKilledRunLeft(t *testing.T) {
	left := tmpPrefix + "1-2" + tmpSuffix
	w := newWorld(t, map[string]string{etc + "/" + left: "x", etc + "/a.service.d/" + left: "x", etc + "/x.target.wants/" + left: "-> x",
		"/var/lib/stead/host/kept/" + left: "x", etc + "/a.service.d/x.conf": "x", etc + "/other/" + left: "not ours", etc + "/.stead": "x"})
	n, err := w.Sweep()
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []string{"x.conf"}, w.list(etc+"/a.service.d"))
	require.Empty(t, w.list(etc+"/x.target.wants"))
	require.Equal(t, []string{left}, w.list(etc+"/other"))
	require.Contains(t, w.list(etc), ".stead")
}

// aside runs the calling test again in a process with mounts of its own, and
// reports whether it is that process.
func aside(t *testing.T) bool {
	t.Helper()
	if os.Getenv("DISK_ASIDE") == t.Name() {
		require.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "DISK_ASIDE="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// mount mounts until the test ends.
func mount(t *testing.T, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	require.NoError(t, unix.Mount(source, target, kind, flags, data))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(target, unix.MNT_DETACH)) })
}

func TestFullDiskLeavesWhatStood(t *testing.T) {
	if !aside(t) {
		return
	}
	w := newWorld(t, nil)
	mount(t, "tmpfs", w.at(etc), "tmpfs", 0, "size=256k")
	w.put(etc+"/a.service", "old")
	big := strings.Repeat("x", 200<<10)
	r := w.Apply(t.Context(), []plan.Change{put(etc+"/b.service.d/x.conf", big), put(etc+"/a.service", big), put(etc+"/c.service.d/x.conf", big),
		putLink(etc+"/x.target.wants/a.service", "../a.service")})
	require.NoError(t, r.Errs[0])
	require.NoError(t, r.Errs[3])
	for _, i := range []int{1, 2} {
		require.ErrorIs(t, r.Errs[i], unix.ENOSPC)
		require.Equal(t, fault.Failed, fault.ClassOf(r.Errs[i]))
	}
	require.ErrorContains(t, r.Errs[1], "write: "+etc+"/a.service: no space left on device")
	require.Equal(t, "old", w.read(etc+"/a.service"))
	require.Equal(t, []string{etc + "/b.service.d", etc + "/x.target.wants"}, r.Made)
	require.Equal(t, []string{"a.service", "b.service.d", "x.target.wants"}, w.list(etc), "no folder for nothing")
	w.clean()
}

func TestReadOnlyFolderIsNamed(t *testing.T) {
	if !aside(t) {
		return
	}
	w := newWorld(t, map[string]string{etc + "/a.service": "old", "/run/systemd/system/": ""})
	mount(t, w.at(etc), w.at(etc), "", unix.MS_BIND, "")
	require.NoError(t, unix.Mount("", w.at(etc), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	r := w.Apply(t.Context(), []plan.Change{put(etc+"/a.service", "new"), put(etc+"/b.service.d/x.conf", "x"), remove(etc + "/a2"), put("/run/systemd/system/ok", "x")})
	for _, i := range []int{0, 1} {
		require.ErrorIs(t, r.Errs[i], unix.EROFS)
		var e *fault.Error
		require.ErrorAs(t, r.Errs[i], &e)
		require.Contains(t, e.Hint, "findmnt -T "+etc)
	}
	require.NoError(t, r.Errs[3])
	require.Equal(t, "old", w.read(etc+"/a.service"))
	require.Empty(t, r.Made)
}

// When the copy cannot be kept, what it is a copy of stays.
func TestNoCopyNoChange(t *testing.T) {
	if !aside(t) {
		return
	}
	w := newWorld(t, map[string]string{etc + "/a.service": "user's", "/var/lib/stead/host/kept/": ""})
	kept := w.at("/var/lib/stead/host/kept")
	mount(t, "tmpfs", kept, "tmpfs", unix.MS_RDONLY, "")
	r := w.Apply(t.Context(), []plan.Change{put(etc+"/a.service", "new"), put(etc+"/b.service", "new")})
	require.ErrorContains(t, r.Errs[0], "keep a copy: "+etc+"/a.service")
	require.NoError(t, r.Errs[1])
	require.Equal(t, "user's", w.read(etc+"/a.service"))
	w.clean()
}

// A FIFO in the place of the list of copies holds nobody up, whether somebody reads
// of it or not.
func TestAListOfCopiesThatIsNoFileIsNamed(t *testing.T) {
	const index = "/var/lib/stead/host/kept/index.jsonl"
	w := newWorld(t, map[string]string{etc + "/a.service": "user's", "/var/lib/stead/host/kept/": ""})
	require.NoError(t, unix.Mkfifo(w.at(index), 0o600))
	for _, read := range []bool{false, true} {
		if read {
			f, err := os.OpenFile(w.at(index), os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
		}
		r := w.Apply(t.Context(), []plan.Change{put(etc+"/a.service", "new")})
		require.ErrorContains(t, r.Errs[0], "a device, FIFO or socket stands there")
		require.Equal(t, "user's", w.read(etc+"/a.service"))
	}
	w.clean()
}
