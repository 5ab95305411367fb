package host

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/account"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/unit"
)

// residence is the loop of one account in one home, and all that it needs. One of
// no identity has a loop that is never let through: it reports what is in the way.
type residence struct {
	id     account.Identity // the zero one for nobody
	tenant *Tenant
	loop   *reconcile.Loop
	gate   *gate
	home   Home
	log    *slog.Logger

	remembers bool // it was made with what the ledger has
	news      chan struct{}

	mu  sync.Mutex // guards what follows
	set numbered
	has bool
}

// newResidence makes the loop; memories are what the ledger has for it.
func (u *users) newResidence(t *Tenant, id account.Identity, memories []plan.Memory, memory plan.Manager) (*residence, error) {
	r := &residence{id: id, tenant: t, gate: newGate(t.Keeper), log: u.h.log, news: make(chan struct{}, 1)}
	o := reconcile.Options{
		Scope: unit.User, Ledger: u.book, Clock: r.clock(u.h.machine.clock()), Logger: u.h.log, Gate: r.gate,
		Memories: memories, Memory: memory, GivenBack: u.givenBack, Point: u.h.userPoint(),
		Manager: idle{}, Watcher: unheard{}, Adviser: mute{},
	}
	if id.Name != "" {
		home, dir, err := t.Home(id)
		if err != nil {
			return nil, err
		}
		r.home = home
		o.Manager, o.Disk, o.Watcher, o.Adviser, o.ConfigDir = t.Manager, home, home, t.Adviser(id), dir
	}
	r.loop = reconcile.New(o)
	return r, nil
}

// clock is the machine's, in the present life of the account's manager.
func (r *residence) clock(of func() plan.Clock) func() plan.Clock {
	return func() plan.Clock {
		c := of()
		c.Boot = r.tenant.Keeper.State().Life
		return c
	}
}

// run keeps the account's units until ctx ends.
func (r *residence) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.loop.Run(ctx) })
	group.Go(func() error { return r.declare(ctx) })
	if r.home != nil {
		group.Go(func() error { return r.tenant.Manager.Run(ctx) })
		group.Go(func() error { return r.home.Run(ctx) })
		group.Go(func() error { return r.meet(ctx) })
	}
	return group.Wait()
}

// give hands a set to the loop, which takes it in when it has the time.
func (r *residence) give(d numbered) {
	r.mu.Lock()
	news := !r.has || r.set.n != d.n
	r.set, r.has = d, true
	r.mu.Unlock()
	if news {
		token(r.news)
	}
}

func (r *residence) declare(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.news:
		}
		r.mu.Lock()
		set := r.set.set
		r.mu.Unlock()
		if err := r.loop.Declare(ctx, set); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// meet opens the gate for each life of the account's manager, when it has said where
// it looks for units.
func (r *residence) meet(ctx context.Context) error {
	const look = 2 * time.Second // at what nobody tells of
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		s := r.tenant.Keeper.State()
		switch {
		case !s.Ready:
		case r.gate.met(s.Life):
			r.gate.trouble(r.home.Trouble())
		default:
			if err := r.introduce(ctx); err != nil && ctx.Err() == nil {
				r.log.Warn("the account's manager does not say where it looks for units", "account", r.id.Name, "error", err)
				r.gate.trouble(err.Error())
			} else if err == nil {
				r.gate.meet(s.Life)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.gate.news:
		case <-tick.C:
		}
	}
}

func (r *residence) introduce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, meeting)
	defer cancel()
	path, err := r.tenant.Manager.UnitPath(ctx)
	if err != nil {
		return err
	}
	v, err := r.tenant.Manager.Version(ctx)
	if err != nil {
		return err
	}
	r.home.Open(path, version(v))
	return nil
}

// gate is what is in the way of an account's loop: what its keeper says, and what
// is not ready yet on this side.
type gate struct {
	keeper  Keeping
	changed chan struct{}
	news    chan struct{} // the keeper has something new; for meet

	mu   sync.Mutex // guards what follows
	life string     // that was met
	why  string     // the home cannot be read or written
}

func newGate(k Keeping) *gate {
	return &gate{keeper: k, changed: make(chan struct{}, 1), news: make(chan struct{}, 1)}
}

// Obstacle implements the loop's gate.
func (g *gate) Obstacle() *report.Obstacle {
	s := g.keeper.State()
	if s.Obstacle != nil {
		return s.Obstacle
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.why != "":
		return &report.Obstacle{Outcome: report.Waiting, Reason: report.DelegateFailed,
			Text: fmt.Sprintf("files of account %q cannot be read: %s", s.Identity.Name, g.why)}
	case g.life == "" || g.life != s.Life:
		return &report.Obstacle{Outcome: report.Waiting, Reason: report.ManagerStarting,
			Text: fmt.Sprintf("the manager of account %q was not met yet", s.Identity.Name)}
	}
	return nil
}

// Changed implements the loop's gate.
func (g *gate) Changed() <-chan struct{} { return g.changed }

// tell says that the keeper has something new.
func (g *gate) tell() {
	token(g.changed)
	token(g.news)
}

func (g *gate) met(life string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.life == life
}

func (g *gate) meet(life string) {
	g.mu.Lock()
	g.life, g.why = life, ""
	g.mu.Unlock()
	token(g.changed)
}

func (g *gate) trouble(why string) {
	g.mu.Lock()
	news := g.why != why
	g.why = why
	g.mu.Unlock()
	if news {
		token(g.changed)
	}
}

// same reports whether r is of the identity id.
func (r *residence) same(id account.Identity) bool { return reflect.DeepEqual(r.id, id) }

// idle, unheard and mute stand where there is no account: the loop's gate is never
// open then, and nobody is asked.
type idle struct{ actor }

func (idle) Wake() <-chan struct{} { return nil }
func (idle) Drain() unit.Changes   { return unit.Changes{} }
func (idle) Observe(context.Context, []unit.Name) ([]unit.Status, error) {
	return nil, context.Canceled
}

func (idle) Reloads(context.Context, []unit.Name) ([]time.Duration, error) {
	return nil, context.Canceled
}

type unheard struct{}

func (unheard) Set([]string)            {}
func (unheard) Wake() <-chan struct{}   { return nil }
func (unheard) Drain() ([]string, bool) { return nil, false }

type mute struct{}

func (mute) Lines(context.Context, []unit.Name) map[unit.Name][]string { return nil }
func (mute) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string {
	return nil
}
