package disk

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"stead/host/fault"
)

// WatcherOptions say how a Watcher watches.
type WatcherOptions struct {
	Logger *slog.Logger  // default: nothing is logged
	Quiet  time.Duration // changes are told when this long none came; default 200 ms
	Most   time.Duration // and this long after the first at the latest; default 1 s
}

// Watcher tells which of the watched folders' entries changed. What it says is
// a hint to look there: it carries no state, may come late and for nothing, and
// says "everything" when it has lost track.
//
// Set, Wake and Drain may be called from any goroutine, before Run too; Run does
// all the work.
type Watcher struct {
	o      WatcherOptions
	wake   chan struct{}
	change chan struct{} // a new set waits
	open   func() (*fsnotify.Watcher, error)
	retry  time.Duration // from one refusal of the kernel to the next try

	mu    sync.Mutex
	want  []string
	paths map[string]bool
	all   bool
}

// NewWatcher returns a watcher that watches nothing yet.
func NewWatcher(o WatcherOptions) (*Watcher, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Quiet == 0 {
		o.Quiet = 200 * time.Millisecond
	}
	if o.Most == 0 {
		o.Most = time.Second
	}
	if o.Most < o.Quiet {
		return nil, fault.New(fault.Invalid, "watch", "", errors.New("the longest wait is shorter than the quiet period"))
	}
	return &Watcher{o: o, open: fsnotify.NewWatcher, retry: 10 * time.Second, wake: make(chan struct{}, 1), change: make(chan struct{}, 1), paths: make(map[string]bool)}, nil
}

// Set makes dirs the watched folders. One that does not exist is watched for: by
// its nearest folder above that does. So are those above it, which may be replaced
// or, as links, made to lead elsewhere.
func (w *Watcher) Set(dirs []string) {
	w.mu.Lock()
	w.want = slices.Clone(dirs)
	w.mu.Unlock()
	signal(w.change)
}

// Wake has a value when there is something to Drain.
func (w *Watcher) Wake() <-chan struct{} { return w.wake }

// Drain returns the paths that changed since it was last called, sorted: entries
// of watched folders, or the folders themselves where these came or went; all is
// true when any may have changed.
func (w *Watcher) Drain() (paths []string, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.paths {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	all = w.all
	w.paths, w.all = make(map[string]bool), false
	return paths, all
}

// tell hands over what happened.
func (w *Watcher) tell(b burst) {
	w.mu.Lock()
	for p := range b.paths {
		w.paths[p] = true
	}
	w.all = w.all || b.all
	w.mu.Unlock()
	signal(w.wake)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Run watches until ctx ends, and returns nil then. While the kernel gives no
// watch at all, because others have used up what there is, it says "everything"
// every ten seconds instead.
func (w *Watcher) Run(ctx context.Context) error {
	n := w.begin(ctx)
	if n == nil {
		return nil
	}
	defer n.Close() //nolint:errcheck // nothing is lost
	a := &armed{n: n, log: w.o.Logger, dirs: make(map[string]fs.FileInfo)}
	l := &coalescer{quiet: w.o.Quiet, most: w.o.Most, tell: w.tell, concerns: a.concerns, arm: func(b *burst) {
		w.mu.Lock()
		want := slices.Clone(w.want)
		w.mu.Unlock()
		a.arm(want, b)
	}}
	l.run(ctx, n.Events, n.Errors, w.change)
	return nil
}

// begin returns what watches, when there is one; nil when ctx ends before.
func (w *Watcher) begin(ctx context.Context) *fsnotify.Watcher {
	for tries := 0; ; tries++ {
		n, err := w.open()
		if err == nil {
			if tries > 0 {
				w.o.Logger.Info("folders are watched")
			}
			return n
		}
		if tries == 0 {
			w.o.Logger.Warn("folders cannot be watched, they are looked at instead", "error", err, "every", w.retry,
				"hint", "raise fs.inotify.max_user_instances: sysctl fs.inotify")
		}
		w.tell(burst{all: true})
		timer := time.NewTimer(w.retry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// armed is what the kernel watches for us.
type armed struct {
	n      *fsnotify.Watcher
	log    *slog.Logger
	dirs   map[string]fs.FileInfo // watched folders, as they were when the watch began
	wanted map[string]bool
	failed bool
}

// concerns reports whether a change of p matters: p is an entry of a wanted
// folder, such a folder itself, or one above it.
func (a *armed) concerns(p string) bool {
	if strings.HasPrefix(filepath.Base(p), tmpPrefix) {
		return false // our own, on its way
	}
	if a.wanted[filepath.Dir(p)] || a.wanted[p] {
		return true
	}
	for d := range a.wanted {
		if strings.HasPrefix(d, p+"/") {
			return true
		}
	}
	return false
}

// arm makes the watches those that want asks for. A folder that begins to be
// watched, or is another one than before, may have changed unseen: it goes into b.
func (a *armed) arm(want []string, b *burst) {
	a.wanted = make(map[string]bool, len(want))
	for _, d := range want {
		a.wanted[filepath.Clean(d)] = true
	}
	need := make(map[string]bool, len(want)) // true: it is asked for, or the nearest to that
	for _, d := range want {
		if d = nearest(d); d == "" {
			continue
		}
		need[d] = true
		for d = filepath.Dir(d); d != "/" && d != "."; d = filepath.Dir(d) {
			if _, known := need[d]; !known {
				need[d] = false
			}
		}
	}
	for d := range a.dirs {
		if _, still := need[d]; !still {
			_ = a.n.Remove(d) // it may be gone already
			delete(a.dirs, d)
		}
	}
	var failed error
	listed := make(map[string]bool, len(need))
	for _, d := range a.n.WatchList() {
		listed[d] = true
	}
	for d, asked := range need {
		st, err := os.Stat(d)
		if was := a.dirs[d]; err == nil && was != nil && os.SameFile(was, st) && listed[d] {
			continue
		}
		_ = a.n.Remove(d)
		delete(a.dirs, d)
		if err == nil {
			err = a.n.Add(d)
		}
		if err != nil {
			if asked && !errors.Is(err, fs.ErrNotExist) {
				failed = err
			}
			b.all = b.all || asked
			continue
		}
		a.dirs[d] = st
		if asked {
			b.add(d)
		}
	}
	if failed != nil && !a.failed {
		a.log.Warn("folder is not watched, the full look has to do", "error", failed)
	}
	a.failed = failed != nil
}

// nearest returns dir, or the nearest folder above it that exists.
func nearest(dir string) string {
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			return dir
		}
		if dir == "/" || dir == "." {
			return ""
		}
	}
}
