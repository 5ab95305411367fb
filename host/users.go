package host

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"stead/host/account"
	"stead/host/ledger"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/wire"
)

// users keeps the user scope: the units of the node's operator account, through
// that account's manager. When the node names another account, what the one before
// has is given back first.
//
// One goroutine, that of run, makes and ends tenants and residences; all other
// methods may be called from any goroutine and return at once.
type users struct {
	h      *Host
	book   *ledger.Ledger
	tenant func(TenantOptions) (*Tenant, error)
	wake   chan struct{}
	told   chan struct{}

	now    *stay // of the account of the setting
	before *stay // of the one that is given back
	last   setting
	held   bool // the ledger has units of the user scope

	mu      sync.Mutex // guards what follows
	setting *setting   // nil before the first
	set     reconcile.Set
	given   uint64            // how often set was declared
	loops   []*reconcile.Loop // those of now and before
	stands  *wire.Account     // how the account does; nil for none
}

// setting is what the node's record says of its account.
type setting struct {
	name   string
	linger account.Linger
}

func newUsers(h *Host, book *ledger.Ledger) *users {
	return &users{h: h, book: book, tenant: h.machine.tenants(), wake: make(chan struct{}, 1), told: make(chan struct{}, 1)}
}

// settle takes over what the node's record says. Nothing is done for any account,
// and nothing of one given back, before it was called once.
func (u *users) settle(name string, linger account.Linger) {
	u.mu.Lock()
	u.setting = &setting{name, linger}
	u.mu.Unlock()
	token(u.wake)
}

// Declare implements declarer. It waits for nothing.
func (u *users) Declare(_ context.Context, set reconcile.Set) error {
	u.mu.Lock()
	u.set = set
	u.given++
	u.mu.Unlock()
	token(u.wake)
	return nil
}

// Reports returns how every declaration of the scope stands. What is given back of
// the account before is told of where nothing is declared for the one that there is.
func (u *users) Reports() []*report.Report {
	u.mu.Lock()
	loops := u.loops
	u.mu.Unlock()
	var all []*report.Report
	for _, l := range loops {
		known := named(all)
		for _, r := range l.Reports() {
			if !known[r.Name] {
				all = append(all, r)
			}
		}
	}
	return all
}

// Published has a token when reports were published since the last one was taken.
func (u *users) Published() <-chan struct{} { return u.told }

// Plan implements planner, of the account that there is.
func (u *users) Plan(ctx context.Context, declared []reconcile.Declared, withdrawn []string) ([]plan.Preview, error) {
	u.mu.Lock()
	loops := u.loops
	u.mu.Unlock()
	if len(loops) == 0 {
		return nil, errors.New("the node's account is not known yet")
	}
	return loops[0].Plan(ctx, declared, withdrawn)
}

// givenBack takes in that a unit was.
func (u *users) givenBack(r *report.Report) {
	token(u.wake)
	u.h.givenBack(r)
}

// run keeps the scope until ctx ends.
func (u *users) run(ctx context.Context) error {
	defer u.close()
	for {
		if err := u.step(ctx); err != nil {
			return err
		}
		timer := time.NewTimer(u.patience())
		select {
		case <-ctx.Done():
		case <-u.wake:
		case <-u.now.changed():
			u.now.tell()
		case <-u.before.changed():
			u.before.tell()
		case <-u.now.published():
			token(u.told)
		case <-u.before.published():
			token(u.told)
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

func (u *users) close() {
	u.now.close()
	u.before.close()
}

// step makes everything as setting, declarations and keepers want it.
func (u *users) step(ctx context.Context) error {
	u.mu.Lock()
	to, set, given := u.setting, u.set, u.given
	u.mu.Unlock()
	if to == nil || given == 0 {
		return nil
	}
	if err := u.house(ctx, *to); err != nil {
		return err
	}
	if u.held && len(set.Declared)+len(set.Leave) == 0 {
		state, err := u.book.Load()
		if err != nil {
			return err
		}
		u.held = len(state.Memories(unit.User)) > 0
	}
	former, err := u.former()
	if err == nil {
		err = u.giveBack(ctx, former)
	}
	if err == nil {
		err = u.reside(ctx, numbered{set, given}, u.before != nil)
	}
	u.show()
	return err
}

// numbered is a set, and which one it is.
type numbered struct {
	set reconcile.Set
	n   uint64
}

// house makes the tenant of the setting the present one.
func (u *users) house(ctx context.Context, to setting) error {
	if u.now != nil && u.now.name == to.name {
		if to.linger != u.last.linger {
			u.now.tenant.Keeper.SetLinger(to.linger)
			u.last = to
		}
		return nil
	}
	u.now.close()
	state, err := u.book.Load()
	if err != nil {
		return err
	}
	u.held, u.last = len(state.Memories(unit.User)) > 0, to
	u.now, err = u.move(ctx, TenantOptions{Name: to.name, Linger: to.linger, Known: state.Managers[unit.User].Account})
	return err
}

// move makes a tenant, and starts what it runs.
func (u *users) move(ctx context.Context, o TenantOptions) (*stay, error) {
	o.Node, o.Ledger, o.Tell, o.Logger = u.h.nodeName(), u.book, u.h.tell, u.h.log
	t, err := u.tenant(o)
	if err != nil {
		return nil, err
	}
	return &stay{name: o.Name, tenant: t, end: u.start(ctx, t.Run)}, nil
}

// start runs something beside, until the function that it returns is called, which
// waits for its end.
func (u *users) start(ctx context.Context, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			u.h.log.Error("the user scope is not kept", "error", err)
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// former is the account whose units are to be given back first, nil for none.
func (u *users) former() (*plan.Account, error) {
	s := u.now.tenant.Keeper.State()
	if s.Before != nil || u.now.name != "" {
		return s.Before, nil
	}
	state, err := u.book.Load() // the account was taken away
	if err != nil {
		return nil, err
	}
	return state.Managers[unit.User].Account, nil
}

// giveBack brings what the account before has to its end.
func (u *users) giveBack(ctx context.Context, former *plan.Account) error {
	b := u.before
	if b != nil && (former == nil || former.Name != b.name) {
		b.close() // it is the account again, or that is over
		u.before, b = nil, nil
	}
	switch {
	case former == nil:
		return nil
	case b == nil:
		var err error
		u.now.vacate() // it looks at what is being given back
		u.before, err = u.move(ctx, TenantOptions{Name: former.Name, Linger: account.Auto, Known: former, Former: true})
		if err != nil {
			return err
		}
		u.before.tenant.Keeper.Wanted(true)
		return nil
	}
	s := b.tenant.Keeper.State()
	switch {
	case s.Gone != "":
		return u.freed(b, true)
	case s.Identity.Name == "":
		return nil
	case b.residence == nil:
		return u.enter(ctx, b, s.Identity, true, numbered{})
	}
	state, err := u.book.Load()
	if err != nil || len(state.Memories(unit.User)) > 0 {
		return err
	}
	if b.emptied.IsZero() {
		b.emptied = time.Now()
		b.tenant.Keeper.Wanted(false)
		return nil
	}
	if s.Ours && time.Since(b.emptied) < lingering {
		return nil
	}
	if s.Ours {
		u.h.tell("lingering of account \"" + b.name + "\" stays on: units that are not of stead's run there")
	}
	return u.freed(b, false)
}

// lingering is how long lingering of an account that was given back waits to be
// undone.
const lingering = 20 * time.Second

// freed ends the account before; lost: what was written there cannot be given back,
// and is no longer remembered.
func (u *users) freed(b *stay, lost bool) error {
	b.close()
	u.before, u.held = nil, false
	if lost {
		state, err := u.book.Load()
		if err != nil {
			return err
		}
		rec := plan.Record{Scope: unit.User, Manager: &plan.Manager{}}
		for _, m := range state.Memories(unit.User) {
			rec.Delete = append(rec.Delete, m.Unit)
		}
		if err := u.book.Record(rec); err != nil {
			return err
		}
	}
	if err := u.book.Account(nil); err != nil {
		return err
	}
	u.now.tenant.Keeper.Freed()
	return nil
}

// reside gives the present account the residence that it is to have.
func (u *users) reside(ctx context.Context, d numbered, giving bool) error {
	n := u.now
	s := n.tenant.Keeper.State()
	wanted := len(d.set.Declared)+len(d.set.Leave) > 0 || u.held
	id, memories := s.Identity, true
	switch {
	case giving:
		id, memories = account.Identity{}, false
	case !wanted && !s.Ours:
		id = account.Identity{}
	}
	if !giving {
		n.tenant.Keeper.Wanted(wanted)
	}
	u.held = u.held || !giving && len(d.set.Declared) > 0
	if n.residence != nil && n.residence.same(id) && n.residence.remembers == memories {
		n.residence.give(d)
		return nil
	}
	return u.enter(ctx, n, id, memories, d)
}

// enter makes a residence.
func (u *users) enter(ctx context.Context, s *stay, id account.Identity, remembers bool, d numbered) error {
	s.vacate()
	state := ledger.State{}
	if remembers {
		var err error
		if state, err = u.book.Load(); err != nil {
			return err
		}
	}
	r, err := u.newResidence(s.tenant, id, state.Memories(unit.User), state.Managers[unit.User])
	if err != nil {
		return err
	}
	r.remembers = remembers
	r.give(d)
	s.residence, s.leave = r, u.start(ctx, r.run)
	return nil
}

// show makes the loops of the moment those that are asked.
func (u *users) show() {
	var loops []*reconcile.Loop
	for _, s := range []*stay{u.now, u.before} {
		if s != nil && s.residence != nil {
			loops = append(loops, s.residence.loop)
		}
	}
	u.mu.Lock()
	same := slices.Equal(u.loops, loops)
	u.loops = loops
	was, now := u.stands, standing(u.now)
	u.stands = now
	u.mu.Unlock()
	if !same {
		token(u.told)
	}
	if !reflect.DeepEqual(was, now) {
		u.post(now)
		u.h.accountChanged()
	}
}

// patience is how long nothing has to be looked at that nobody tells of.
func (u *users) patience() time.Duration {
	if u.before != nil {
		return time.Second
	}
	return time.Minute
}
