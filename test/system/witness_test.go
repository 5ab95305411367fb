package system

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/stretchr/testify/require"
)

// tally counts the steps of an apply that were seen.
type tally map[string]int

func (c tally) total() int {
	n := 0
	for _, v := range c {
		n += v
	}
	return n
}

func (c tally) String() string {
	return fmt.Sprintf("%d steps were done (%d files, %d links, %d reloads, %d jobs queued, %d ended)",
		c.total(), c["file"], c["link"], c["reload"], c["queued"], c["ended"])
}

// witness sees from outside what an apply does, step by step: on the disk by
// inotify, of the manager on the bus. It can kill the host at a step, and it
// reads the unit files all the time, in search of one that is half written.
type witness struct {
	t     *testing.T
	m     *machine
	bus   *bus
	units []string
	files *fsnotify.Watcher

	mu      sync.Mutex
	seen    tally
	at, pid int   // kill pid at this step; 0 when not armed
	done    tally // what was done when the host was killed; nil before
	last    time.Time
	half    []string
}

func (m *machine) witness(t *testing.T) *witness {
	t.Helper()
	w := &witness{t: t, m: m, seen: tally{}}
	for i := range killed {
		w.units = append(w.units, fmt.Sprintf("u%02d.service", i))
	}
	w.bus = m.listen(t, w.note)
	var err error
	w.files, err = fsnotify.NewWatcher()
	require.NoError(t, err)
	for _, dir := range []string{"", "multi-user.target.wants", "graphical.target.wants"} {
		require.NoError(t, w.files.Add(m.Path(path.Join(etc, dir))))
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(w.follow)
	group.Go(func() { w.read(stop) })
	t.Cleanup(func() {
		close(stop)
		require.NoError(t, w.files.Close())
		group.Wait()
	})
	return w
}

// follow turns what happens on the disk into steps.
func (w *witness) follow() {
	for e := range w.files.Events {
		what := "link"
		if filepath.Base(filepath.Dir(e.Name)) == filepath.Base(etc) {
			what = "file"
		}
		if e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) {
			w.note(what, filepath.Base(e.Name))
		}
	}
}

// note counts a step, and kills the host when it is the one to do it at.
func (w *witness) note(what, unit string) {
	if what != "reload" && !slices.Contains(w.units, unit) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[what]++
	w.last = time.Now()
	if w.at > 0 && w.seen.total() >= w.at {
		w.fire()
	}
}

// fire kills the host. The caller holds the lock.
func (w *witness) fire() {
	if w.pid == 0 {
		return
	}
	if err := shotAt(w.pid); err != nil {
		w.t.Errorf("kill the host: %v", err)
	}
	w.done, w.at, w.pid = maps.Clone(w.seen), 0, 0
}

// arm begins another count, and has the host killed at a step; never when it is 0.
func (w *witness) arm(pid, at int) {
	w.bus.reset()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen, w.done, w.pid, w.at = tally{}, nil, pid, at
}

func (w *witness) shoot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fire()
}

func (w *witness) shot() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// still waits until nothing has happened for a while.
func (w *witness) still() {
	w.t.Helper()
	w.m.until("nothing happens any more", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return time.Since(w.last) > 300*time.Millisecond
	})
}

// read looks at the unit files until stop.
func (w *witness) read(stop chan struct{}) {
	good := contents()
	paths := make([]string, len(w.units))
	for i, u := range w.units {
		paths[i] = w.m.Path(path.Join(etc, u))
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if _, found := slices.BinarySearch(good, string(data)); err != nil || !found {
				w.mu.Lock()
				w.half = append(w.half, fmt.Sprintf("%s: %q (%v)", path.Base(p), strings.TrimSpace(string(data)), err))
				w.mu.Unlock()
			}
		}
	}
}

// halves are the files that were seen with what no version of them holds.
func (w *witness) halves() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.half)
}
