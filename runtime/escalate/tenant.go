package escalate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	// tenantIdle is how long a connection to an account's manager is kept that nobody
	// has a use for, and tendEvery how often is looked whether it is still the right one.
	tenantIdle = 30 * time.Second
	tendEvery  = time.Second
)

// owner is whose job or links an act is about: those of one life of an account's
// manager. The zero owner is the system.
type owner struct {
	UID  uint32 `json:"uid"`
	Life string `json:"life"` // invocation of the manager's service
}

// Guard says which process is the manager of an account: host/systemd.Guard.
type Guard struct {
	account Account
	m       processes
}

// processes is what PID 1 says of services.
type processes interface {
	Process(ctx context.Context, name unit.Name) (unit.Process, error)
}

// UID implements host/systemd.Guard.
func (g *Guard) UID() (uint32, error) { return g.account.UID, nil }

// Peer implements host/systemd.Guard: the main process of the manager's service, as
// PID 1 states it at this moment.
func (g *Guard) Peer(ctx context.Context, pid, uid uint32) error {
	main, err := g.m.Process(ctx, unit.ManagerOf(g.account.UID))
	if err != nil {
		return fault.New(fault.Unavailable, "", "", err)
	}
	return unit.CheckManager(g.account.UID, main.PID, unit.Listener{PID: pid, UID: uid})
}

// Users are the two connections to the manager of an account: host/systemd.Manager
// and Reader, each with the guard. They are made for one life of it.
type Users struct {
	Manager interface {
		units
		Run(ctx context.Context) error
	}
	Reader interface {
		questions
		Run(ctx context.Context) error
	}
}

// tenant is the manager of an account at work: a side, and what reads of it.
type tenant struct {
	*side
	reader questions
	stop   context.CancelFunc

	mu    sync.Mutex // guards what follows
	uses  int
	idle  time.Time // since when uses is 0
	tried bool      // to connect
	err   error     // of the last try, nil while there is a connection
}

// dialed takes in how a try to connect ended.
func (t *tenant) dialed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tried, t.err = true, err
}

func (t *tenant) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.uses--; t.uses == 0 {
		t.idle = time.Now()
	}
}

func (t *tenant) enter() *tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.uses++
	return t
}

// free reports whether nobody has had a use for it for so long.
func (t *tenant) free(keep time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.uses == 0 && time.Since(t.idle) > keep
}

// trouble is what the last try to connect came to, "" when that is nothing.
func (t *tenant) trouble() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return troubleOf(t.account.Name, t.err)
}

// troubleOf words why the manager of an account cannot be asked.
func troubleOf(name string, err error) string {
	switch fault.ClassOf(err) {
	case "":
		return ""
	case fault.NotFound:
		return fmt.Sprintf("user manager of %s runs, and does not listen yet", name)
	case fault.Denied:
		return fmt.Sprintf("another than the user manager of %s stands on its socket: %v", name, innermost(err))
	case fault.Timeout:
		return fmt.Sprintf("user manager of %s does not answer", name)
	case fault.Canceled, fault.Unavailable:
		return fmt.Sprintf("the connection to the user manager of %s was lost", name)
	}
	return fmt.Sprintf("user manager of %s turns stead away: %v", name, innermost(err))
}

// innermost is the error that others were made of.
func innermost(err error) error {
	for {
		var outer, inner *fault.Error
		if !errors.As(err, &outer) || !errors.As(outer.Cause, &inner) {
			return err
		}
		err = inner
	}
}

// worded words errors that say that the manager could not be asked, and leaves its own
// as they are.
func (t *tenant) worded(op, object string, err error) error {
	var f *fault.Error
	if !errors.As(err, &f) || f.Class != fault.Unavailable && f.Class != fault.Timeout {
		return err
	}
	t.mu.Lock()
	why := t.err
	if why == nil && t.tried {
		why = fault.New(f.Class, "", "", nil)
	} else if why == nil {
		why = fault.New(fault.Timeout, "", "", nil) // the first try has not ended
	}
	t.mu.Unlock()
	class := f.Class
	switch fault.ClassOf(why) {
	case fault.NotFound, fault.Unavailable, fault.Canceled: // it is worth while to ask again at once
	default:
		if class == fault.Unavailable {
			class = fault.Failed
		}
	}
	return fault.New(class, op, object, errors.New(troubleOf(t.account.Name, why)))
}

// errUnsaid says that nothing is known of the account's manager.
var errUnsaid = errors.New("PID 1 does not say whether the user manager")

// tenants keeps the connections to the manager of the node's account, one account and
// one life of its manager at a time, and only while somebody has a use for them.
type tenants struct {
	s     *Server
	known accounts
	keep  time.Duration // tenantIdle
	wake  chan struct{} // capacity one: there is one to be looked after
	life  context.Context
	wg    sync.WaitGroup

	mu  sync.Mutex // guards what follows
	now *tenant
}

// whose is the account, and the life of its manager, at this moment. The error has
// neither operation nor object: refused when there is no account, failed when its
// manager does not run, unavailable when PID 1 does not say.
func (u *tenants) whose(ctx context.Context) (Account, owner, error) {
	a, err := u.known.now()
	if err != nil {
		return a, owner{}, err
	}
	main, err := u.s.o.Manager.Process(ctx, unit.ManagerOf(a.UID))
	switch {
	case err != nil:
		return a, owner{}, fault.New(fault.Unavailable, "", "", fmt.Errorf("%w runs: %w", errUnsaid, err))
	case main.PID == 0:
		return a, owner{}, fault.New(fault.Failed, "", "", fmt.Errorf("user manager of %s is not running", a.Name)).
			WithHint(fmt.Sprintf("systemctl status %s; loginctl enable-linger %s", unit.ManagerOf(a.UID), a.Name))
	}
	return a, owner{a.UID, main.Invocation}, nil
}

// enter is the tenant of this moment, to be left by whoever entered.
func (u *tenants) enter(ctx context.Context) (*tenant, error) {
	a, of, err := u.whose(ctx)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now != nil && (u.now.of != of || u.now.account != a) {
		u.retire()
	}
	if u.now == nil {
		if u.now, err = u.move(a, of); err != nil {
			return nil, err
		}
	}
	select {
	case u.wake <- struct{}{}:
	default:
	}
	return u.now.enter(), nil
}

// move makes a tenant; u.mu is held.
func (u *tenants) move(a Account, of owner) (*tenant, error) {
	t := &tenant{idle: time.Now()}
	users, err := u.s.o.Users(&Guard{a, u.s.o.Manager}, t.dialed)
	if err != nil {
		return nil, fault.New(fault.Internal, "", "", err)
	}
	life, stop := context.WithCancel(u.life)
	t.stop, t.reader = stop, users.Reader
	t.side = newSide(u.s, users.Manager, of)
	t.account, t.reloads.life, t.explain = a, life, t.worded
	u.wg.Go(func() { _ = users.Manager.Run(life) }) // both return nil when life ends
	u.wg.Go(func() { _ = users.Reader.Run(life) })
	u.wg.Go(func() { t.watch(life, life) })
	u.s.o.Logger.Info("user scope is served", "account", a.Name, "uid", a.UID)
	return t, nil
}

// retire ends the connections; u.mu is held. Calls that have them in hand fail.
func (u *tenants) retire() {
	if u.now != nil {
		u.s.o.Logger.Info("user scope is left", "account", u.now.account.Name, "uid", u.now.account.UID)
		u.now.stop()
		u.now = nil
	}
}

// tend looks after what is under way in user scope, until ctx ends: acts of an
// earlier helper find their manager, those of a manager that is gone end, and
// connections that nobody uses are dropped.
func (u *tenants) tend(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		open := u.s.book.all(func(e *entry) bool { return e.End == nil && e.Of != owner{} })
		u.mu.Lock()
		some := u.now != nil
		u.mu.Unlock()
		if !some && len(open) == 0 {
			select {
			case <-u.wake:
			case <-ctx.Done():
			}
		} else {
			u.look(ctx, open)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// look is one turn of tend.
func (u *tenants) look(ctx context.Context, open []entry) {
	ctx, cancel := context.WithTimeout(ctx, actFor)
	defer cancel()
	_, now, err := u.whose(ctx)
	if errors.Is(err, errUnsaid) {
		return
	}
	for _, e := range open {
		if e.Of != now {
			u.s.end(e.ID, failed(fault.New(fault.Timeout, string(e.Act), string(e.Unit),
				errors.New("how it ended was not heard: the user manager that had it in hand is gone"))))
		}
	}
	if err == nil && len(open) > 0 {
		if t, err := u.enter(ctx); err == nil {
			t.leave()
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now != nil && (u.now.of != now || len(open) == 0 && u.now.free(u.keep)) {
		u.retire()
	}
}

// close ends all of it, and waits.
func (u *tenants) close() {
	u.mu.Lock()
	u.retire()
	u.mu.Unlock()
	u.wg.Wait()
}
