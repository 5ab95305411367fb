package host

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/account"
	"stead/host/disk"
	"stead/host/ledger"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

// town is a machine with logins, each with a home and a manager, as far as the user
// scope of a host has to do with them.
type town struct {
	t     *testing.T
	dir   string
	host  *Host
	book  *ledger.Ledger
	users *users
	stop  func()
	n     uint64

	mu     sync.Mutex // guards what follows
	people map[string]*person
	steps  []string
}

// person is a login.
type person struct {
	town *town
	name string
	uid  int
	fake *systemdtest.Fake
	dir  string // the home

	mu      sync.Mutex // guards what follows
	keepers []*mayor
	life    string
	block   *report.Obstacle
	gone    string
}

// newTown makes the test parallel.
func newTown(t *testing.T) *town {
	t.Parallel()
	w := &town{t: t, dir: t.TempDir(), people: map[string]*person{}}
	w.host = &Host{o: Options{State: w.dir}, log: slog.New(slog.DiscardHandler)}
	w.host.machine = &Machine{Boot: "boot", Tenants: w.tenant}
	w.open()
	return w
}

// open starts the user scope, as a host that is started anew.
func (w *town) open() {
	book, err := ledger.Open(ledger.Options{Path: filepath.Join(w.dir, "ledger.db")})
	require.NoError(w.t, err)
	w.book, w.users = book, newUsers(w.host, book)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.users.run(ctx) }()
	var once sync.Once
	w.stop = func() {
		once.Do(func() {
			cancel()
			require.NoError(w.t, <-done)
			require.NoError(w.t, book.Close())
		})
	}
	w.t.Cleanup(w.stop)
}

func (w *town) person(name string, uid int) *person {
	p := &person{town: w, name: name, uid: uid, dir: filepath.Join(w.dir, "homes", name), life: "boot/1"}
	require.NoError(w.t, os.MkdirAll(p.units(), 0o755))
	p.fake = systemdtest.NewFake(systemdtest.Options{Dirs: []string{p.units()}, Clock: func() time.Duration { return clock("boot")().Monotonic }})
	w.t.Cleanup(p.fake.Close)
	w.mu.Lock()
	w.people[name] = p
	w.mu.Unlock()
	return p
}

func (p *person) units() string { return filepath.Join(p.dir, ".config/systemd/user") }

// mayor keeps an account.
type mayor struct {
	o       TenantOptions
	p       *person // nil: nobody
	changed chan struct{}

	mu     sync.Mutex // guards what follows
	known  *plan.Account
	wanted bool
}

func (w *town) tenant(o TenantOptions) (*Tenant, error) {
	w.mu.Lock()
	p := w.people[o.Name]
	w.mu.Unlock()
	m := &mayor{o: o, p: p, known: o.Known, changed: make(chan struct{}, 1)}
	t := &Tenant{Keeper: m, Adviser: func(account.Identity) Adviser { return silent{} },
		Run: func(ctx context.Context) error { <-ctx.Done(); return nil }}
	if p == nil {
		return t, nil
	}
	p.mu.Lock()
	p.keepers = append(p.keepers, m)
	p.mu.Unlock()
	t.Manager = p.fake
	t.Home = func(id account.Identity) (Home, string, error) {
		require.Equal(w.t, p.uid, id.UID)
		return &house{p: p}, p.units(), nil
	}
	return t, nil
}

func (m *mayor) State() account.State {
	m.mu.Lock()
	defer m.mu.Unlock()
	node := account.State{Life: "boot", Obstacle: &report.Obstacle{Outcome: report.Refused, Reason: report.NoAccount,
		Text: `node "ws1" has no operator account: scope user is refused`}}
	if m.p == nil {
		return node
	}
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	s := account.State{Identity: account.Identity{Name: m.p.name, UID: m.p.uid, Home: m.p.dir}, Life: m.p.life, Obstacle: m.p.block}
	if m.o.Former {
		s.Gone = m.p.gone
	} else if m.known != nil && m.known.Name != m.o.Name {
		s.Before = m.known
		s.Obstacle = &report.Obstacle{Outcome: report.Waiting, Reason: report.AccountChanged, Text: "first that of " + m.known.Name}
	}
	s.Ready = s.Obstacle == nil
	return s
}

func (m *mayor) Changed() <-chan struct{}   { return m.changed }
func (m *mayor) SetLinger(l account.Linger) { m.p.town.step("linger " + string(l)) }

// Wanted notes whose units are written, as account.Keeper does.
func (m *mayor) Wanted(yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wanted = yes
	switch {
	case m.p == nil:
	case yes && m.known == nil:
		m.known = &plan.Account{Name: m.p.name, UID: uint32(m.p.uid), Home: m.p.dir}
		_ = m.o.Ledger.Account(m.known)
	case !yes && m.known != nil && m.known.Name == m.o.Name:
		m.known = nil
		_ = m.o.Ledger.Account(nil)
	}
}

func (m *mayor) Freed() {
	m.mu.Lock()
	m.known = nil
	m.mu.Unlock()
	token(m.changed)
}

// house is a home on disk.
type house struct {
	*disk.Disk
	p *person
	*disk.Watcher
}

func (h *house) Open(path []string, _ int) {
	d, err := disk.New(disk.Options{ConfigDir: h.p.units(), UnitPath: path, Kept: filepath.Join(h.p.dir, "kept"), Version: 252})
	require.NoError(h.p.town.t, err)
	h.Disk = d
}

func (h *house) Trouble() string             { return "" }
func (h *house) Set([]string)                {}
func (h *house) Wake() <-chan struct{}       { return nil }
func (h *house) Drain() ([]string, bool)     { return nil, false }
func (*house) Run(ctx context.Context) error { <-ctx.Done(); return nil }

func (w *town) step(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, s)
}

// hinder puts an obstacle between the host and p's manager; nil takes it away.
func (p *person) hinder(o *report.Obstacle) {
	p.mu.Lock()
	p.block = o
	p.mu.Unlock()
	p.tell()
}

// tell has the keepers say that something changed.
func (p *person) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.keepers {
		token(m.changed)
	}
}

func (p *person) active(n unit.Name) unit.ActiveState {
	st, err := p.fake.Observe(context.Background(), []unit.Name{n})
	if err != nil {
		return ""
	}
	return st[0].Active
}

func (p *person) has(name string) bool {
	_, err := os.Lstat(filepath.Join(p.units(), name))
	return err == nil
}

// declare hands over what is declared in user scope.
func (w *town) declare(services ...*shape.Service) {
	var set reconcile.Set
	for _, s := range services {
		w.n++
		set.Declared = append(set.Declared, reconcile.Declared{Service: s, UID: "uid-" + s.Name, Generation: 1})
	}
	require.NoError(w.t, w.users.Declare(w.t.Context(), set))
}

func (w *town) eventually(f func() bool, what string) {
	w.t.Helper()
	require.Eventually(w.t, f, within, 2*time.Millisecond, what)
}

// stands waits until a declaration is reported so.
func (w *town) stands(name string, outcome report.Outcome, reason report.Reason) *report.Report {
	w.t.Helper()
	var last *report.Report
	w.eventually(func() bool {
		for _, r := range w.users.Reports() {
			if r.Name == name {
				last = r
				return r.Outcome == outcome && r.Reason == reason
			}
		}
		return false
	}, string(outcome)+" "+string(reason))
	return last
}

// watcherUnit is a declaration of scope user.
func watcherUnit(name string) *shape.Service {
	yes, content := true, "[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=default.target\n"
	return &shape.Service{Name: name, Scope: unit.User, Unit: unit.Name(name + ".service"), Content: &content, Ensure: shape.Running, Enabled: &yes,
		Timeout: time.Minute, OnWithdraw: shape.Restore}
}
