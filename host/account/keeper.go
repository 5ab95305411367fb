package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// system is PID 1's manager.
type system interface {
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
	Enqueue(ctx context.Context, jobs []unit.JobRequest) []unit.Queued
	Notify(ch chan<- struct{}, names ...unit.Name)
}

// logind knows who is logged in.
type logind interface {
	Login(ctx context.Context, name string, uid uint32) (lingers bool, sessions int, err error)
	Linger(ctx context.Context, uid uint32, on bool) error
}

// tenant is the account's own manager.
type tenant interface {
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
	Running(ctx context.Context) ([]unit.Name, error)
}

// ledger remembers whose units were written; nil is nobody's.
type ledger interface {
	Account(a *plan.Account) error
}

// watcher says that something in a folder changed.
type watcher interface {
	Set(dirs []string)
	Wake() <-chan struct{}
	Drain() (paths []string, all bool)
}

// Options are what a Keeper is made of.
type Options struct {
	Name   string        // the login; "" for none
	Node   string        // for texts
	Linger Linger        // "" is Auto
	Known  *plan.Account // whose units the ledger has; nil for nobody's
	// Former: the node's setting is another one by now, and what is there is to be
	// given back. Name is that of Known then.
	Former bool

	System system // required
	Logind logind // required
	Ledger ledger // required
	Boot   string // required; tells one boot from another
	Logger *slog.Logger
	Logins Logins
	// Watcher is run by the caller and by nobody else used; nil when nothing is
	// watched, and a change of passwd is seen only while there is an obstacle.
	Watcher watcher
	// Tick is between two looks while there is an obstacle; default 5 s.
	Tick time.Duration
	// Tell is told what an operator should know, once each; it must return at once.
	// Nil writes it into the log.
	Tell func(text string)
}

// State is how an account stands.
type State struct {
	Identity Identity // the zero Identity while there is none
	Ready    bool     // user units can be applied
	Obstacle *report.Obstacle
	Life     string
	Lingers  bool   // as it was last seen
	Ours     bool   // stead turned lingering on
	Gone     string // of a Former: why what is there can never be given back; "" when it can
	// Before is whose units are to be given back first, while that is the obstacle.
	Before *plan.Account
}

const (
	tick      = 5 * time.Second
	undoTick  = time.Minute      // between looks while lingering waits to be undone
	patience  = 10 * time.Second // of one look
	startWait = time.Second      // that logind has to start what lingers
	startMost = time.Minute
)

// Keeper keeps one account. Make it with New.
type Keeper struct {
	o       Options
	prober  prober
	wake    chan struct{} // something is to be looked at
	changed chan struct{}
	redial  chan struct{}

	mu     sync.Mutex
	state  State
	wanted bool
	linger Linger
	freed  bool
	conn   conn
	peer   uint32 // the manager's pid, as the last check found it

	// What follows is of Run's goroutine alone.
	known   *plan.Account
	said    State // as it was last published
	life    unit.Status
	startAt time.Time     // not before is the manager started
	delay   time.Duration // until the start after the next
	pending bool          // lingering waits to be undone
	again   bool          // something did not succeed that is no obstacle
}

// New checks o and returns a Keeper that has not looked yet: it says
// manager-starting, or what is wrong with the setting itself.
func New(o Options) (*Keeper, error) {
	o.Linger, o.Tick = cmp.Or(o.Linger, Auto), cmp.Or(o.Tick, tick)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tell == nil {
		o.Tell = func(text string) { o.Logger.Info("account", "text", text) }
	}
	bad := func(format string, args ...any) (*Keeper, error) {
		return nil, fault.New(fault.Invalid, "keep account", o.Name, fmt.Errorf(format, args...))
	}
	switch {
	case o.System == nil || o.Logind == nil || o.Ledger == nil:
		return bad("no manager, logind or ledger")
	case o.Linger != Auto && o.Linger != On && o.Linger != Off:
		return bad("%q is no value of linger", o.Linger)
	case o.Boot == "":
		return bad("no boot id")
	case o.Former && (o.Known == nil || o.Known.Name != o.Name):
		return bad("a former account is one that is known")
	}
	k := &Keeper{
		o: o, prober: prober{stat: os.Stat}, known: o.Known, linger: o.Linger,
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), redial: make(chan struct{}, 1),
	}
	k.state.Obstacle = judgeLogin(o.Node, facts{name: o.Name})
	if o.Name != "" && o.Name != "root" {
		k.state.Obstacle = obstacle(report.Waiting, report.ManagerStarting, "", "account %q was not looked at yet", o.Name)
	}
	k.state.Life = o.Boot
	return k, nil
}

// State says how the account stands. Its Obstacle is shared and must not be
// changed.
func (k *Keeper) State() State {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state
}

// Obstacle is what stands between the host and the account's manager, nil for
// nothing. It is shared and must not be changed.
func (k *Keeper) Obstacle() *report.Obstacle { return k.State().Obstacle }

// Changed has a token when State may be another one. It is for one receiver, and
// never closed.
func (k *Keeper) Changed() <-chan struct{} { return k.changed }

// Life tells one life of the account's manager from another: what it had loaded and
// what ran there ended with it. While it does not run it is that of the last one.
func (k *Keeper) Life() string { return k.State().Life }

// Wanted says whether the account's manager must run: a user unit is declared, or
// is being given back. When it must not, and nothing of stead's is left there, what
// stead did for it is undone, and the ledger forgets the account.
func (k *Keeper) Wanted(yes bool) {
	k.mu.Lock()
	k.wanted = yes
	k.mu.Unlock()
	hand(k.wake)
}

// SetLinger changes the setting.
func (k *Keeper) SetLinger(l Linger) {
	k.mu.Lock()
	k.linger = cmp.Or(l, Auto)
	k.mu.Unlock()
	hand(k.wake)
}

// Freed says that nothing of the account before is left, and account-changed ends.
// The ledger's record of it is the caller's.
func (k *Keeper) Freed() {
	k.mu.Lock()
	k.freed, k.state.Before = true, nil // at once: or it would be given back once more
	k.mu.Unlock()
	hand(k.wake)
}

// Dialed implements systemd.Options.Dialed.
func (k *Keeper) Dialed(err error) {
	k.mu.Lock()
	k.conn = conn{tried: true, err: err}
	if err == nil {
		k.conn.pid = k.peer
	}
	k.mu.Unlock()
	hand(k.wake)
}

// Redial has a token when it is worth while to dial at once.
func (k *Keeper) Redial() <-chan struct{} { return k.redial }

// UID implements systemd.Guard.
func (k *Keeper) UID() (uint32, error) {
	id := k.State().Identity
	if id.UID <= 0 {
		return 0, fault.New(fault.NotFound, "dial", "the user manager", errors.New("there is no account to dial"))
	}
	return uint32(id.UID), nil //nolint:gosec // it was one in passwd
}

// Peer implements systemd.Guard: the process must be the main one of user@UID.service,
// as PID 1 states it at this moment.
func (k *Keeper) Peer(ctx context.Context, pid, uid uint32) error {
	const op = "check the process on the socket of"
	want, err := k.UID()
	if err != nil {
		return err
	}
	name := unit.ManagerOf(want)
	s, err := k.o.System.Observe(ctx, []unit.Name{name})
	if err != nil {
		return fault.New(fault.Unavailable, op, string(name), err)
	}
	if err := unit.CheckManager(want, s[0].MainPID, unit.Listener{PID: pid, UID: uid}); err != nil {
		return err
	}
	k.mu.Lock()
	k.peer = pid
	k.mu.Unlock()
	return nil
}
