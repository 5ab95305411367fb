package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/account"
	diskpkg "stead/host/disk"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

// rig is a loop over the fake manager, the real disk in a temporary folder, and
// a ledger in memory, with a clock that only moves when everybody waits.
type rig struct {
	t       *testing.T
	etc     string
	lib     string
	fake    *systemdtest.Fake
	loop    *Loop
	book    *book
	watch   *watch
	options Options
	stop    func()
	life    atomic.Pointer[string] // the boot, or the life of the manager
	kill    string
	born    time.Time
	log     *slog.Logger     // of the next loop; nil: nothing is logged
	given   []*report.Report // what was told to be given back
	heard   func(*managed, report.Step)
	full    time.Duration // between full looks; 0 is the default
	gate    *barrier      // nil: open
	conf    string        // of what units cite; "" is beside the folders of units
}

// inRig runs f with a running loop.
func inRig(t *testing.T, f func(*rig)) { inSlowRig(t, 0, f) }

// inSlowRig has a manager whose reloads take their time.
func inSlowRig(t *testing.T, reload time.Duration, f func(*rig)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, etc: filepath.Join(dir, "etc"), lib: filepath.Join(dir, "lib"), book: newBook(), born: time.Now()}
		r.lives("boot")
		for _, d := range []string{r.etc, r.lib} {
			require.NoError(t, os.Mkdir(d, 0o755))
		}
		r.fake = systemdtest.NewFake(systemdtest.Options{Dirs: []string{r.etc, r.lib}, Clock: r.monotonic, ReloadTook: reload})
		r.fake.Reconnect()
		defer r.fake.Close()
		r.start()
		defer func() { r.stop() }()
		f(r)
	})
}

func (r *rig) monotonic() time.Duration { return time.Hour + time.Since(r.born) }

func (r *rig) lives(life string) { r.life.Store(&life) }

func (r *rig) clock() plan.Clock {
	return plan.Clock{Wall: time.Now(), Monotonic: r.monotonic(), Boot: *r.life.Load()}
}

// start makes and runs a loop from what the book remembers, as a host does.
func (r *rig) start() {
	d, err := diskpkg.New(diskpkg.Options{ConfigDir: r.etc, UnitPath: []string{r.etc, r.lib}, Logins: account.Logins{}, Kept: filepath.Join(filepath.Dir(r.etc), "kept"), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(r.t, err)
	r.watch = &watch{wake: make(chan struct{}, 1)}
	memories, manager := r.book.load()
	r.options = Options{Scope: unit.System, ConfigDir: r.etc, Manager: r.fake, Disk: d, Ledger: r.book, Watcher: r.watch,
		Adviser: silent{}, Clock: r.clock, Logger: slog.New(slog.DiscardHandler), Memories: memories, Memory: manager,
		GivenBack: func(g *report.Report) { r.given = append(r.given, g) }, FullLook: r.full}
	if r.log != nil {
		r.options.Logger = r.log
	}
	if r.gate != nil {
		r.options.Gate = r.gate
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	if kill := r.kill; kill != "" {
		r.options.Point = func(at string) {
			if at == kill {
				<-ctx.Done()
				runtime.Goexit()
			}
		}
	}
	r.loop = New(r.options)
	r.loop.heard = r.heard
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.loop.Run(ctx)
	}()
	r.stop = func() { cancel(); <-ended }
}

// killAt starts a loop that goes no further than the named boundary, once.
func (r *rig) killAt(point string) {
	r.kill = point
	r.start()
	r.kill = ""
}

func (r *rig) declare(set ...*shape.Service) {
	r.t.Helper()
	var s Set
	for _, d := range set {
		s.Declared = append(s.Declared, Declared{Service: d, UID: "uid-" + d.Name, Generation: generation(d)})
	}
	require.NoError(r.t, r.loop.Declare(r.t.Context(), s))
}

// generation makes another one for other content.
func generation(s *shape.Service) uint64 {
	var g uint64 = 1
	for _, c := range []byte(s.Digest()) {
		g = g*31 + uint64(c)
	}
	return g
}

// after lets time pass.
func (r *rig) after(d time.Duration) *rig {
	time.Sleep(d)
	synctest.Wait()
	return r
}

func (r *rig) report(n unit.Name) *report.Report {
	for _, rep := range r.loop.Reports() {
		if rep.Unit == n {
			return rep
		}
	}
	return &report.Report{}
}

func (r *rig) outcome(n unit.Name, o report.Outcome, why report.Reason) *report.Report {
	r.t.Helper()
	rep := r.report(n)
	require.Equal(r.t, o, rep.Outcome, "%s: %s %s", n, rep.Reason, rep.Text)
	require.Equal(r.t, why, rep.Reason, "%s: %s", n, rep.Text)
	return rep
}

func (r *rig) active(n unit.Name) unit.ActiveState {
	r.t.Helper()
	st, err := r.fake.Observe(r.t.Context(), []unit.Name{n})
	require.NoError(r.t, err)
	return st[0].Active
}

// outside lets somebody else queue a job.
func (r *rig) outside(n unit.Name, j unit.JobType) {
	r.t.Helper()
	for _, q := range r.fake.Other().Enqueue(r.t.Context(), []unit.JobRequest{{Name: n, Type: j}}) {
		require.NoError(r.t, q.Err)
	}
}

// edit writes below the unit folder from outside, and wakes the watcher.
func (r *rig) edit(name, content string) {
	r.t.Helper()
	p := filepath.Join(r.etc, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(r.t, os.WriteFile(p, []byte(content), 0o644))
	r.watch.saw(p)
}

// link makes a link to a unit file, from outside.
func (r *rig) link(name, to string) {
	r.t.Helper()
	p := filepath.Join(r.etc, name)
	require.NoError(r.t, os.Symlink(filepath.Join(r.etc, to), p))
	r.watch.saw(p)
}

func (r *rig) read(name string) string {
	data, err := os.ReadFile(filepath.Join(r.etc, name))
	if err != nil {
		return ""
	}
	return string(data)
}

// kept are the copies of what was overwritten.
func (r *rig) kept() []string {
	all, err := filepath.Glob(filepath.Join(filepath.Dir(r.etc), "kept", "*"))
	require.NoError(r.t, err)
	return all
}

// service declares a unit with content that runs cmd.
func service(name, cmd string, more ...func(*shape.Service)) *shape.Service {
	content := "[Service]\nExecStart=" + cmd + "\n[Install]\nWantedBy=multi-user.target\n"
	yes := true
	s := &shape.Service{Name: name, Scope: unit.System, Unit: unit.Name(name + ".service"), Content: &content,
		Ensure: shape.Running, Enabled: &yes, Timeout: time.Minute, OnWithdraw: shape.Restore}
	for _, m := range more {
		m(s)
	}
	return s
}

// book is a ledger in memory, which can fail.
type book struct {
	mu      sync.Mutex
	units   map[unit.Name]plan.Memory
	blobs   map[string][]byte
	manager plan.Manager
	writes  int
	fail    error
	failed  int
}

func newBook() *book {
	return &book{units: make(map[unit.Name]plan.Memory), blobs: make(map[string][]byte)}
}

func (b *book) Record(r plan.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		b.failed++
		return b.fail
	}
	for _, m := range r.Put { // as the real one: what could not be put back is refused
		for p, e := range m.Found {
			if _, known := b.blobs[e.Digest]; e.Kind == plan.File && !known && r.Blobs[e.Digest] == nil {
				return errors.New("no bytes of " + p)
			}
		}
	}
	b.writes++
	for _, m := range r.Put {
		b.units[m.Unit] = m
	}
	for _, n := range r.Delete {
		delete(b.units, n)
	}
	for d, data := range r.Blobs {
		b.blobs[d] = data
	}
	if r.Manager != nil {
		b.manager = *r.Manager
	}
	return nil
}

func (b *book) Blob(d string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if data, ok := b.blobs[d]; ok {
		return data, nil
	}
	return nil, errors.New("no such blob")
}

func (b *book) load() (all []plan.Memory, m plan.Manager) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, u := range b.units {
		all = append(all, u)
	}
	return all, b.manager
}

// unit is what is remembered of one, nothing where nothing is. The loop writes at any time, so tests read here and not the fields.
func (b *book) unit(n unit.Name) plan.Memory {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.units[n]
}

func (b *book) names() []unit.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.units))
}

func (b *book) rest() plan.Manager {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.manager
}

// counts are how often it was written to, and how often that failed.
func (b *book) counts() (writes, failed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writes, b.failed
}

func (b *book) breaks(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fail = err
}

// watch is a watcher that tests speak through.
type watch struct {
	mu    sync.Mutex
	wake  chan struct{}
	paths []string
	dirs  []string
}

func (w *watch) Set(dirs []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirs = dirs
}

// folders are those that are watched.
func (w *watch) folders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dirs
}

func (w *watch) Wake() <-chan struct{} { return w.wake }

func (w *watch) Drain() ([]string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.paths
	w.paths = nil
	return p, false
}

func (w *watch) saw(path string) {
	w.mu.Lock()
	w.paths = append(w.paths, path)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

type silent struct{}

func (silent) Lines(context.Context, []unit.Name) map[unit.Name][]string           { return nil }
func (silent) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string { return nil }
