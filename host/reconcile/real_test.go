package reconcile

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	diskpkg "stead/host/disk"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/test/lab"
)

// machine is a loop on the systemd of a lab node.
type machine struct {
	t       *testing.T
	loop    *Loop
	ears    *ears
	manager *systemd.Manager
	options Options
	book    *book
	halt    func() // ends the loop
}

const realEtc = "/etc/systemd/system"

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, ears: &ears{steps: make(map[unit.Name]doing)}}
	log := slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{}, 2)
	run := func(f func(context.Context) error) {
		go func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
			ended <- struct{}{}
		}()
	}
	var err error
	m.manager, err = systemd.New(systemd.Options{Scope: unit.System, Logger: log})
	require.NoError(t, err)
	run(m.manager.Run)
	path, err := m.manager.UnitPath(ctx)
	require.NoError(t, err)
	specifiers, err := diskpkg.HostSpecifiers("/")
	require.NoError(t, err)
	d, err := diskpkg.New(diskpkg.Options{ConfigDir: realEtc, UnitPath: path, Kept: filepath.Join(t.TempDir(), "kept"), Specifiers: specifiers, Logger: log})
	require.NoError(t, err)
	w, err := diskpkg.NewWatcher(diskpkg.WatcherOptions{Logger: log})
	require.NoError(t, err)
	run(w.Run)
	m.book = newBook()
	m.options = Options{Scope: unit.System, ConfigDir: realEtc, Manager: m.manager, Disk: d, Ledger: m.book, Watcher: w, Adviser: silent{},
		Clock: realClock, Logger: log, FullLook: time.Hour}
	m.start("")
	t.Cleanup(func() {
		m.halt()
		cancel()
		for range 2 {
			<-ended
		}
	})
	return m
}

// start runs a loop from what the book remembers, which goes no further than the
// named boundary; "" for one that goes on.
func (m *machine) start(kill string) (killed <-chan struct{}) {
	ctx, cancel := context.WithCancel(m.t.Context())
	ended, at := make(chan struct{}), make(chan struct{}, 1)
	o := m.options
	o.Memories, o.Memory = m.book.load()
	o.Point = func(point string) {
		if point == kill {
			at <- struct{}{}
			<-ctx.Done()
			runtime.Goexit()
		}
	}
	m.loop = New(o)
	m.loop.heard = m.ears.hear
	go func() {
		defer close(ended)
		_ = m.loop.Run(ctx)
	}()
	m.halt = func() { cancel(); <-ended }
	return at
}

// restarted is another host, which knows what the one before has noted.
func (m *machine) restarted() {
	m.halt()
	m.start("")
}

// killedAt lets a host come as far as the named boundary.
func (m *machine) killedAt(point string, all ...*shape.Service) {
	m.t.Helper()
	killed := m.start(point)
	m.declare(all...)
	select {
	case <-killed:
	case <-time.After(time.Minute):
		m.t.Fatalf("the host was never at %q", point)
	}
	time.Sleep(2 * time.Second) // what is on its way ends without it
	m.halt()
}

// realClock is the clock that systemd stamps states by.
func realClock() plan.Clock {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return plan.Clock{Wall: time.Now(), Monotonic: time.Duration(ts.Nano()), Boot: "boot"}
}

func (m *machine) declare(all ...*shape.Service) {
	m.t.Helper()
	require.NoError(m.t, m.loop.Declare(m.t.Context(), Set{Declared: set(all...)}))
}

// quiet waits until nothing has happened for a while and nothing is on its way.
func (m *machine) quiet() map[unit.Name]doing {
	m.t.Helper()
	all := make(map[unit.Name]doing)
	since := time.Now()
	for end := since.Add(time.Minute); time.Since(since) < 1500*time.Millisecond; time.Sleep(50 * time.Millisecond) {
		require.True(m.t, time.Now().Before(end), "it does not come to rest: %v", all)
		for n, s := range m.ears.take() {
			all[n], since = append(all[n], s...), time.Now()
		}
		for _, rep := range m.loop.Reports() {
			if rep.Outcome == report.Waiting {
				since = time.Now()
			}
		}
	}
	return all
}

// foretells holds what a dry run says against what is done, and returns it.
func (m *machine) foretells(now []*shape.Service, declared []*shape.Service, withdrawn ...string) []plan.Preview {
	m.t.Helper()
	said, err := m.loop.Plan(m.t.Context(), set(declared...), withdrawn)
	require.NoError(m.t, err)
	require.Empty(m.t, m.ears.take(), "a dry run does nothing")
	m.declare(now...)
	is := m.quiet()
	require.Equal(m.t, is, foretold(said))
	return said
}

// TestWhatIsForetoldIsWhatIsDoneBySystemd goes through the life of a few units on
// a real systemd, and then through sets made by chance.
func TestWhatIsForetoldIsWhatIsDoneBySystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	vendor := "/usr/local/lib/systemd/system"
	require.NoError(t, os.MkdirAll(vendor, 0o755))
	lay := func(p, text string) { require.NoError(t, os.WriteFile(p, []byte(text), 0o644)) }
	lay(vendor+"/t@.service", "[Service]\nExecStart=/bin/sleep infinity\n")
	lay(vendor+"/vendor.service", "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\nAlias=nick.service\n")
	lay(realEtc+"/mine.service", "[Service]\nExecStart=/bin/sleep 5000\n")
	m := newMachine(t)
	_, err := m.manager.Reload(t.Context())
	require.NoError(t, err)
	m.manager.Enqueue(t.Context(), []unit.JobRequest{{Name: "mine.service", Type: unit.StartJob}})
	m.declare()
	m.quiet()

	web := service("web", "/bin/sleep infinity", func(s *shape.Service) { s.DropIns = map[string]string{"10-a.conf": "[Service]\nNice=5\n"} })
	mine := service("mine", "/bin/sleep infinity")
	yes := true
	vend := &shape.Service{Name: "vendor", Scope: unit.System, Unit: "vendor.service", Ensure: shape.Running, Enabled: &yes, Timeout: time.Minute, OnWithdraw: shape.Restore}
	once := service("once", "/bin/true", func(s *shape.Service) { *s.Content, s.Enabled = "[Service]\nType=oneshot\nExecStart=/bin/true\n", nil })
	inst := &shape.Service{Name: "inst", Scope: unit.System, Unit: "t@1.service", Ensure: shape.Running, Timeout: time.Minute, OnWithdraw: shape.Restore}
	all := []*shape.Service{web, mine, vend, once, inst}
	m.foretells(all, all)

	tmpl := &shape.Service{Name: "tmpl", Scope: unit.System, Unit: "t@.service", Timeout: time.Minute, OnWithdraw: shape.Restore}
	text := "[Service]\nExecStart=/bin/sleep 9999\n"
	tmpl.Content = &text
	web2 := service("web", "/bin/sleep 8888")
	absent := &shape.Service{Name: "absent", Scope: unit.System, Unit: "absent.service", Ensure: shape.Running, Timeout: time.Minute}
	all = []*shape.Service{web2, mine, vend, once, inst, tmpl, absent}
	said := m.foretells(all, []*shape.Service{tmpl, web2, absent})
	require.Equal(t, report.Missing, said[2].Reason)
	require.True(t, said[3].Besides, "the instance runs an older definition")

	all = []*shape.Service{vend, tmpl}
	m.foretells(all, nil, "web", "mine", "once", "inst", "absent")
	m.foretells(nil, nil, "vendor", "tmpl")

	for seed := range uint64(3) {
		c := chance{rand.New(rand.NewPCG(seed, 5)), ""}
		next := make(map[string]*shape.Service)
		var declared []*shape.Service
		for _, name := range []string{"a", "b", "c", "d"} {
			if !c.one(3) {
				next[name] = c.service(name)
				declared = append(declared, next[name])
			}
		}
		var gone []string
		for _, rep := range m.loop.Reports() {
			if next[rep.Name] == nil {
				gone = append(gone, rep.Name)
			}
		}
		t.Logf("seed %d", seed)
		m.foretells(inOrder(next), declared, gone...)
	}
}
