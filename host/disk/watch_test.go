package disk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// watching runs a watcher until the test ends.
func watching(t *testing.T, dirs ...string) *Watcher {
	t.Helper()
	w, err := NewWatcher(WatcherOptions{Quiet: 20 * time.Millisecond, Most: 100 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	w.Set(dirs)
	next(t, w) // the folders themselves: they may have changed before
	return w
}

// next waits for the watcher's next word.
func next(t *testing.T, w *Watcher) []string {
	t.Helper()
	select {
	case <-w.Wake():
	case <-time.After(10 * time.Second):
		require.Fail(t, "the watcher says nothing")
	}
	paths, all := w.Drain()
	require.False(t, all)
	return paths
}

func write1(t *testing.T, p string) {
	t.Helper()
	require.NoError(t, os.WriteFile(p, []byte("x"), 0o600))
}

func TestWatcherTellsOfEveryKindOfChange(t *testing.T) {
	dir := t.TempDir()
	p := filepath.Join(dir, "a.service")
	w := watching(t, dir)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"made", func() error { return os.WriteFile(p, []byte("x"), 0o600) }},
		{"written", func() error { return os.WriteFile(p, []byte("y"), 0o600) }},
		{"mode", func() error { return os.Chmod(p, 0o640) }},
		{"owner", func() error { return os.Chown(p, 3, 4) }},
		{"renamed", func() error { return os.Rename(p, p+".old") }},
		{"linked", func() error { return os.Symlink("/dev/null", p) }},
		{"removed", func() error { return os.Remove(p) }},
	} {
		require.NoError(t, c.do(), c.name)
		require.Contains(t, next(t, w), p, c.name)
	}
}

func TestWatcherIsSilentOverOurTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	w := watching(t, dir)
	write1(t, filepath.Join(dir, tmpPrefix+"1-1"+tmpSuffix))
	write1(t, filepath.Join(dir, "real"))
	require.Equal(t, []string{filepath.Join(dir, "real")}, next(t, w))
}

func TestFolderThatComesIsWatched(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b", "c")
	w := watching(t, deep)
	write1(t, filepath.Join(root, "unrelated"))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	require.Contains(t, until(t, w, deep), deep)
	write1(t, filepath.Join(deep, "x"))
	require.Contains(t, until(t, w, filepath.Join(deep, "x")), filepath.Join(deep, "x"))

	require.NoError(t, os.RemoveAll(filepath.Join(root, "a")))
	until(t, w, deep)
	require.NoError(t, os.MkdirAll(deep, 0o755))
	until(t, w, deep)
	write1(t, filepath.Join(deep, "y"))
	require.NotContains(t, until(t, w, filepath.Join(deep, "y")), filepath.Join(root, "unrelated"))
}

// until collects what the watcher says until it speaks of p.
func until(t *testing.T, w *Watcher, p string) []string {
	t.Helper()
	var all []string
	for !slices.Contains(all, p) {
		all = append(all, next(t, w)...)
	}
	return all
}

func TestFolderThatIsReplacedIsWatched(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "d")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.Mkdir(dir+".new", 0o755))
	w := watching(t, dir)
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.NoError(t, os.Rename(dir+".new", dir))
	until(t, w, dir)
	write1(t, filepath.Join(dir, "x"))
	until(t, w, filepath.Join(dir, "x"))
}

func TestSetReplacesTheSet(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	w := watching(t, a)
	w.Set([]string{b})
	require.Equal(t, []string{b}, next(t, w), "it may have changed before")
	write1(t, filepath.Join(a, "x"))
	write1(t, filepath.Join(b, "x"))
	require.Equal(t, []string{filepath.Join(b, "x")}, next(t, w))
}

func TestWatcherRefusesAWaitThatIsShorterThanItsQuiet(t *testing.T) {
	_, err := NewWatcher(WatcherOptions{Quiet: time.Second, Most: time.Millisecond})
	require.Error(t, err)
}

// coalescing runs a coalescer on channels in a bubble of its own time.
func coalescing(t *testing.T, f func(events chan fsnotify.Event, errs chan error, told chan burst)) {
	synctest.Test(t, func(t *testing.T) {
		events, errs, told := make(chan fsnotify.Event), make(chan error), make(chan burst, 100)
		c := &coalescer{quiet: 200 * time.Millisecond, most: time.Second, tell: func(b burst) { told <- b },
			concerns: func(string) bool { return true }, arm: func(*burst) {}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { c.run(ctx, events, errs, make(chan struct{})); close(done) }()
		f(events, errs, told)
		cancel()
		<-done
	})
}

func TestBurstIsToldWhenItIsOver(t *testing.T) {
	coalescing(t, func(events chan fsnotify.Event, _ chan error, told chan burst) {
		start := time.Now()
		for _, p := range []string{"a", "b", "a"} {
			events <- fsnotify.Event{Name: p}
			time.Sleep(100 * time.Millisecond)
		}
		b := <-told
		require.Equal(t, 400*time.Millisecond, time.Since(start), "200 ms after the last")
		require.Equal(t, map[string]bool{"a": true, "b": true}, b.paths)
		require.False(t, b.all)
	})
}

func TestChangesWithoutEndAreToldEverySecond(t *testing.T) {
	coalescing(t, func(events chan fsnotify.Event, _ chan error, told chan burst) {
		start := time.Now()
		for range 35 {
			events <- fsnotify.Event{Name: "a"}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Second)
		require.Equal(t, 4500*time.Millisecond, time.Since(start))
		require.Len(t, told, 4)
	})
}

func TestOverflowMeansEverything(t *testing.T) {
	coalescing(t, func(events chan fsnotify.Event, errs chan error, told chan burst) {
		errs <- fsnotify.ErrEventOverflow
		require.True(t, (<-told).all)
		errs <- errors.New("some other trouble")
		require.True(t, (<-told).all)
		for i := range maxPaths + 1 {
			events <- fsnotify.Event{Name: string(rune(i + 1))}
		}
		b := <-told
		require.True(t, b.all, "more than can be listed")
		require.Len(t, b.paths, maxPaths)
	})
}

// Others may have used up the kernel's watches: everything is said to have
// changed, again and again, until there is one.
func TestWatcherDoesWithoutTheKernel(t *testing.T) {
	dir := t.TempDir()
	w, err := NewWatcher(WatcherOptions{Quiet: 20 * time.Millisecond, Most: 100 * time.Millisecond})
	require.NoError(t, err)
	tries := 0
	w.retry = 10 * time.Millisecond
	w.open = func() (*fsnotify.Watcher, error) {
		if tries++; tries < 3 {
			return nil, unix.EMFILE
		}
		return fsnotify.NewWatcher()
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	w.Set([]string{dir})
	go func() { done <- w.Run(ctx) }()
	<-w.Wake()
	_, all := w.Drain()
	require.True(t, all)
	require.Eventually(t, func() bool { paths, _ := w.Drain(); return slices.Contains(paths, dir) }, 10*time.Second, time.Millisecond, "it begins to watch")
	write1(t, filepath.Join(dir, "a.service"))
	require.Eventually(t, func() bool { paths, _ := w.Drain(); return slices.Contains(paths, filepath.Join(dir, "a.service")) }, 10*time.Second, time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	require.Equal(t, 3, tries)
}

// Whose home it is may turn a folder on the way into a link, or another one.
func TestWhatStandsAboveAFolderIsWatched(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b", "c")
	require.NoError(t, os.MkdirAll(deep, 0o755))
	w := watching(t, deep)
	require.NoError(t, os.Rename(filepath.Join(root, "a"), filepath.Join(root, "z")))
	until(t, w, filepath.Join(root, "a"))
	require.NoError(t, os.Symlink("z", filepath.Join(root, "a")))
	until(t, w, deep)
	write1(t, filepath.Join(root, "z", "b", "c", "x"))
	until(t, w, filepath.Join(deep, "x"))
	require.NoError(t, os.Remove(filepath.Join(root, "a")))
	require.NoError(t, os.MkdirAll(deep, 0o755))
	until(t, w, deep)
	write1(t, filepath.Join(deep, "y"))
	until(t, w, filepath.Join(deep, "y"))
}
