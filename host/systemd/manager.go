package systemd

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// SystemAddress is the private socket of the system manager.
const SystemAddress = "/run/systemd/private"

// Defaults of Options.
const (
	DefaultCallTimeout     = 25 * time.Second
	DefaultUserCallTimeout = 10 * time.Second // of a Manager with a Guard
	DefaultReloadTimeout   = 90 * time.Second
	DefaultConnectWait     = 2 * time.Second
)

// Options of a Manager. The zero value of a duration takes its default.
type Options struct {
	Scope         unit.Scope    // "" is unit.System
	Address       string        // path of the manager's private socket; "" for the system scope is SystemAddress
	Guard         Guard         // whose manager it is, and so its address: required in user scope, which has no other
	Logger        *slog.Logger  // required
	CallTimeout   time.Duration // without any answer, after which a manager counts as hung
	ReloadTimeout time.Duration // of one Reload
	ConnectWait   time.Duration // how long a call waits for a connection
	// Dialed is told how each try to connect ended, nil for a connection that can be
	// used, and with an error when that is lost. It must return at once; may be nil.
	// The class of an error in user scope: NotFound, there is no socket; Denied, it is
	// another's than the manager's; Refused, it lets nobody in; Timeout, it does not
	// answer; Unavailable, a connection was lost. Others are the Guard's.
	Dialed func(error)
	// Redial holds a token when it is worth while to dial at once; may be nil.
	Redial <-chan struct{}
	// OnCall is told of each method call that is sent, by member name ("Get",
	// "ListUnitsByNames"), from any goroutine, and must return at once. For tests
	// and benchmarks that count; may be nil.
	OnCall func(method string)
}

// Manager is one systemd manager of one scope. See the package comment.
type Manager struct {
	opts    Options
	changes *changes
	cache   *cache
	conn    *keeper
	door    *door         // nil where the way is root's
	links   atomic.Uint64 // connections so far
}

// New checks opts and returns a Manager that is not connected; Run connects it.
func New(opts Options) (*Manager, error) {
	if opts.Scope == "" {
		opts.Scope = unit.System
	}
	if opts.Address == "" && opts.Scope == unit.System {
		opts.Address = SystemAddress
	}
	switch {
	case opts.Guard != nil && (opts.Scope != unit.User || opts.Address != ""):
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("a guard is of user scope, and knows the address"))
	case opts.Guard == nil && opts.Address == "":
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("no address of its private socket"))
	case opts.Logger == nil:
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("no logger"))
	case opts.CallTimeout < 0 || opts.ReloadTimeout < 0 || opts.ConnectWait < 0:
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("a negative duration"))
	}
	callTimeout := DefaultCallTimeout
	if opts.Guard != nil {
		callTimeout = DefaultUserCallTimeout
	}
	for d, v := range map[*time.Duration]time.Duration{
		&opts.CallTimeout:   callTimeout,
		&opts.ReloadTimeout: DefaultReloadTimeout,
		&opts.ConnectWait:   DefaultConnectWait,
	} {
		if *d == 0 {
			*d = v
		}
	}
	m := &Manager{opts: opts, changes: newChanges(), cache: newCache()}
	address, told := opts.Address, opts.Dialed
	if opts.Guard != nil {
		m.door = &door{root: userRuntime, guard: opts.Guard}
		address = userRuntime
	}
	if told != nil && opts.Guard != nil {
		told = func(err error) {
			if err != nil {
				err = standing("use", "the user manager", err)
			}
			opts.Dialed(err)
		}
	}
	m.conn = &keeper{
		what: "the service manager", address: address, wait: opts.ConnectWait, log: opts.Logger.With("scope", opts.Scope),
		dial: m.dial, owner: m, connected: make(chan struct{}), told: told, redial: opts.Redial,
	}
	return m, nil
}

// Run keeps the connection until ctx ends, and then returns nil. It redials for
// ever, from 50 ms doubling to 5 s; a connection that answered and lived for
// a second starts the delay anew. It may run only once at a time.
func (m *Manager) Run(ctx context.Context) error {
	m.conn.run(ctx)
	return nil
}

// opening implements owner.
func (m *Manager) opening(l *link) {
	m.cache.clear()
	l.signals.setLive(true)
}

// opened implements owner.
func (m *Manager) opened() { m.changes.everything() }

// closing implements owner.
func (m *Manager) closing(l *link) { l.signals.setLive(false) }

// closed implements owner.
func (m *Manager) closed() {
	m.cache.clear()
	m.changes.lost()
}

// Connected reports whether there is a connection at this moment.
func (m *Manager) Connected() bool { return m.conn.up() }

// Wake is ready when something happened since the last Drain. It has capacity
// one and is never closed.
func (m *Manager) Wake() <-chan struct{} { return m.changes.wake }

// Drain returns what happened since it was last called: units in the order of
// their first change, job ends in the order in which they came, none dropped of
// the first 65,536.
// It reports All when a connection was made or lost, after a reload (whoever
// asked for it), and when more than 4,096 units changed; Units is empty then.
// While a reload is going on it lists no units.
func (m *Manager) Drain() unit.Changes { return m.changes.drain() }

// Notify hands ch a token when one of names may have changed, a connection was made
// or lost, or a reload ended; with no names, no more. It is for those who follow a
// few units beside the one who drains. ch must have room for one token.
func (m *Manager) Notify(ch chan<- struct{}, names ...unit.Name) { m.changes.notify(ch, names) }

// using returns the connection, waiting for one for at most ConnectWait.
func (m *Manager) using(ctx context.Context, op string) (*link, error) { return m.conn.using(ctx, op) }
