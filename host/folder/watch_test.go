package folder

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStillIsOverAfterQuietAndByMax(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(100, 0).Add(time.Duration(ms) * time.Millisecond) }
	for name, c := range map[string]struct{ changes, due []int }{
		"one":          {[]int{0}, []int{200}},
		"a burst":      {[]int{0, 100, 150}, []int{200, 300, 350}},
		"never still":  {[]int{0, 900, 950}, []int{200, 1000, 1000}},
		"far too late": {[]int{0, 5000}, []int{200, 1000}},
	} {
		s := still{quiet: 200 * time.Millisecond, max: time.Second}
		_, some := s.due()
		require.False(t, some)
		for i, ms := range c.changes {
			s.note(at(ms))
			due, some := s.due()
			require.True(t, some)
			require.Equal(t, at(c.due[i]), due, name)
		}
		s.reset()
		_, some = s.due()
		require.False(t, some)
	}
}

// beat runs the loop in a bubble with a scripted notifier and returns when it
// woke, in milliseconds from the start.
func beat(t *testing.T, watched bool, script func(s *Source, events chan<- fsnotify.Event, errs chan<- error)) (wakes []int64) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Dir: "/x", Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		events, errs, done := make(chan fsnotify.Event), make(chan error), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		go func() {
			defer close(done)
			s.loop(ctx, notifier{events, errs, func(e fsnotify.Event) bool { return e.Name != "other" }, func() bool { return watched }})
		}()
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-s.Wake():
					wakes = append(wakes, time.Since(start).Milliseconds())
				}
			}
		}()
		script(s, events, errs)
		cancel()
		<-done
		synctest.Wait()
	})
	return wakes
}

func TestLoopWakesOnceForABurst(t *testing.T) {
	require.Equal(t, []int64{0, 450, 1700}, beat(t, true, func(_ *Source, events chan<- fsnotify.Event, errs chan<- error) {
		for _, wait := range []int{0, 100, 150, 1250} {
			time.Sleep(time.Duration(wait) * time.Millisecond)
			events <- fsnotify.Event{Name: "a"}
		}
		time.Sleep(time.Minute)
	}))
}

func TestLoopWakesWhileChangesGoOn(t *testing.T) {
	require.Equal(t, []int64{0, 2000, 4100}, beat(t, true, func(_ *Source, events chan<- fsnotify.Event, errs chan<- error) {
		for range 28 {
			events <- fsnotify.Event{Name: "a"}
			time.Sleep(150 * time.Millisecond)
		}
	}))
}

func TestLoopStaysQuietWithoutCause(t *testing.T) {
	require.Equal(t, []int64{0}, beat(t, true, func(_ *Source, events chan<- fsnotify.Event, errs chan<- error) {
		time.Sleep(10 * time.Minute)
		events <- fsnotify.Event{Name: "other"}
		time.Sleep(10 * time.Minute)
	}))
}

func TestLoopLooksAfterLostEvents(t *testing.T) {
	require.Equal(t, []int64{0, 1200}, beat(t, true, func(_ *Source, events chan<- fsnotify.Event, errs chan<- error) {
		time.Sleep(time.Second)
		errs <- errors.New("queue overflow")
		time.Sleep(time.Minute)
	}))
}

func TestLoopPollsWhatItCannotWatch(t *testing.T) {
	require.Equal(t, []int64{0, 10000, 20000, 20300, 30300}, beat(t, false, func(_ *Source, events chan<- fsnotify.Event, errs chan<- error) {
		time.Sleep(20100 * time.Millisecond)
		events <- fsnotify.Event{Name: "a"}
		time.Sleep(11 * time.Second)
	}))
}

func TestLoopLooksAgainAtUnsettledReadings(t *testing.T) {
	require.Equal(t, []int64{0, 1200, 2400, 4200}, beat(t, true, func(s *Source, events chan<- fsnotify.Event, errs chan<- error) {
		for _, kind := range []Kind{Unsettled, Unsettled, OK, Unsettled} {
			time.Sleep(time.Second)
			s.remember(Reading{Kind: kind}, true)
		}
		time.Sleep(time.Minute)
	}))
}

// A file that somebody writes slowly is taken in soon after its last byte.
func TestLoopLooksAgainSoonWhileTheWriterIsAtWork(t *testing.T) {
	require.Equal(t, []int64{0, 1200, 2200, 3200, 4200}, beat(t, true, func(s *Source, events chan<- fsnotify.Event, errs chan<- error) {
		for _, seen := range []string{"a", "b", "c", "d"} {
			time.Sleep(time.Second)
			s.remember(Reading{Kind: Unsettled, Fingerprint: seen}, true)
		}
		time.Sleep(time.Minute)
	}))
}

// watched runs a Source on dir and returns a function that waits for its next
// wake and reads.
func watched(t *testing.T, dir string) func() Reading {
	t.Helper()
	s, err := New(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler), Quiet: 20 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return func() Reading {
		t.Helper()
		select {
		case <-s.Wake():
		case <-time.After(10 * time.Second):
			t.Fatal("no wake")
		}
		return read(t, s)
	}
}

// until reads at each wake until the reading is of that kind with those names.
func until(t *testing.T, next func() Reading, kind Kind, want string) {
	t.Helper()
	for {
		if r := next(); r.Kind == kind && names(r) == want {
			return
		}
	}
}

func TestRunWakesForEveryChange(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	put(t, dir, "a.yaml", doc("a"))
	next := watched(t, dir)
	require.Equal(t, "a", names(next()), "at once")
	path := filepath.Join(dir, "a.yaml")

	put(t, dir, "a.yaml", doc("b"))
	until(t, next, OK, "b")
	put(t, dir, "sub/below/c.yaml", doc("c"))
	until(t, next, OK, "b c")
	put(t, dir, "sub/below/c.yaml", doc("d"))
	until(t, next, OK, "b d")
	require.NoError(t, os.Rename(filepath.Join(dir, "sub"), filepath.Join(other, "gone")))
	until(t, next, OK, "b")
	put(t, other, "gone/below/c.yaml", doc("e"))
	require.NoError(t, os.Rename(filepath.Join(other, "gone"), filepath.Join(dir, "back")))
	until(t, next, OK, "b e")
	put(t, dir, "back/below/c.yaml", doc("f"))
	until(t, next, OK, "b f")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "back")))
	until(t, next, OK, "b")
	require.NoError(t, os.Remove(path))
	until(t, next, Empty, "")
}

func TestRunFollowsTheFolderWhereverItGoes(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "some/where/mesh")
	next := watched(t, dir)
	until(t, next, Missing, "")
	put(t, dir, "a.yaml", doc("a"))
	until(t, next, OK, "a")
	// replaced as a whole
	put(t, base, "new/b.yaml", doc("b"))
	require.NoError(t, unix.Renameat2(unix.AT_FDCWD, filepath.Join(base, "new"), unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE))
	until(t, next, OK, "b")
	put(t, dir, "b.yaml", doc("c"))
	until(t, next, OK, "c")
	require.NoError(t, os.RemoveAll(filepath.Join(base, "some")))
	until(t, next, Missing, "")
	put(t, dir, "a.yaml", doc("d"))
	until(t, next, OK, "d")
}

func TestRunFollowsLinks(t *testing.T) {
	base := t.TempDir()
	put(t, base, "v1/web.yaml", doc("v1"), "v2/web.yaml", doc("v2"), "out/o.yaml", doc("o"), "rel1/x.yaml", doc("rel1"), "rel2/x.yaml", doc("rel2"))
	dir := filepath.Join(base, "mesh")
	require.NoError(t, os.Mkdir(dir, 0o755))
	relink := func(target, link string) {
		require.NoError(t, os.Symlink(target, link+".new"))
		require.NoError(t, os.Rename(link+".new", link))
	}
	relink("../v1", filepath.Join(dir, "..data"))
	relink("..data/web.yaml", filepath.Join(dir, "web.yaml"))
	next := watched(t, dir)
	until(t, next, OK, "v1")
	relink("../v2", filepath.Join(dir, "..data"))
	until(t, next, OK, "v2")
	relink(filepath.Join(base, "out/o.yaml"), filepath.Join(dir, "a.yaml"))
	until(t, next, OK, "o v2")
	put(t, base, "out/o.yaml", doc("p"))
	until(t, next, OK, "p v2")

	link := filepath.Join(base, "current")
	relink("rel1", link)
	next = watched(t, link)
	until(t, next, OK, "rel1")
	relink("rel2", link)
	until(t, next, OK, "rel2")
	put(t, base, "rel2/x.yaml", doc("again"))
	until(t, next, OK, "again")

	put(t, base, "r1/in/decl/x.yaml", doc("one"))
	put(t, base, "r2/in/decl/x.yaml", doc("two"))
	relink("r1", filepath.Join(base, "release"))
	next = watched(t, filepath.Join(base, "release/in/decl"))
	until(t, next, OK, "one")
	relink("r2", filepath.Join(base, "release"))
	until(t, next, OK, "two")
}

// A writer that takes its time is waited for, and what it leaves is read without
// any further event than its end.
func TestRunReadsOnceTheWriterIsDone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.yaml", doc("a"))
	next := watched(t, dir)
	until(t, next, OK, "a")
	f, err := os.OpenFile(filepath.Join(dir, "a.yaml"), os.O_WRONLY|os.O_TRUNC, 0)
	require.NoError(t, err)
	_, err = f.WriteString("shape: service\nna")
	require.NoError(t, err)
	until(t, next, Unsettled, "")
	until(t, next, Unsettled, "")
	_, err = f.WriteString("me: b\nensure: running\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	until(t, next, OK, "b")
}

// Beside and above the folder much may go on that is none of its business.
func TestRunPassesOverWhatIsBesideTheFolder(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "mesh")
	put(t, dir, "a.yaml", doc("a"))
	w, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer w.Close()
	v := &watches{s: open(t, dir), w: w, at: map[string]inode{}}
	require.True(t, v.sync(t.Context()))
	require.ElementsMatch(t, []string{base, dir}, w.WatchList())
	for path, want := range map[string]bool{base + "/other": false, base + "/mesh": true, dir + "/a.yaml": true, dir + "/..data": true} {
		require.Equal(t, want, v.relevant(fsnotify.Event{Name: path}), path)
	}
}

func TestRunPollsWhereTooMuchIsToBeWatched(t *testing.T) {
	dir := t.TempDir()
	w, err := fsnotify.NewWatcher()
	require.NoError(t, err)
	defer w.Close()
	v := &watches{s: open(t, dir), w: w, at: map[string]inode{}}
	for i := range maxWatches {
		require.NoError(t, os.Mkdir(filepath.Join(dir, string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676))), 0o755))
	}
	require.False(t, v.sync(t.Context()))
	require.NoError(t, os.Remove(filepath.Join(dir, "aaa")))
	require.NoError(t, os.Remove(filepath.Join(dir, "baa")))
	require.True(t, v.sync(t.Context()), "and no longer")
}
