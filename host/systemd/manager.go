package systemd

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// SystemAddress is the private socket of the system manager.
const SystemAddress = "/run/systemd/private"

// Defaults of Options.
const (
	DefaultCallTimeout   = 25 * time.Second
	DefaultReloadTimeout = 90 * time.Second
	DefaultConnectWait   = 2 * time.Second
)

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// Options of a Manager. The zero value of a duration takes its default.
type Options struct {
	Scope         unit.Scope    // "" is unit.System
	Address       string        // path of the manager's private socket; "" for the system scope is SystemAddress
	Logger        *slog.Logger  // required
	CallTimeout   time.Duration // without any answer, after which a manager counts as hung
	ReloadTimeout time.Duration // of one Reload
	ConnectWait   time.Duration // how long a call waits for a connection
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

	mu        sync.Mutex
	link      *link         // nil while there is no connection
	connected chan struct{} // closed when link is set; replaced when it is lost
	dialErr   error         // why the last dial did not succeed
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
	case opts.Address == "":
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("no address of its private socket"))
	case opts.Logger == nil:
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("no logger"))
	case opts.CallTimeout < 0 || opts.ReloadTimeout < 0 || opts.ConnectWait < 0:
		return nil, fault.New(fault.Invalid, "new manager", string(opts.Scope), errors.New("a negative duration"))
	}
	for d, v := range map[*time.Duration]time.Duration{
		&opts.CallTimeout:   DefaultCallTimeout,
		&opts.ReloadTimeout: DefaultReloadTimeout,
		&opts.ConnectWait:   DefaultConnectWait,
	} {
		if *d == 0 {
			*d = v
		}
	}
	return &Manager{opts: opts, changes: newChanges(), cache: newCache(), connected: make(chan struct{})}, nil
}

// Run keeps the connection until ctx ends, and then returns nil. It redials for
// ever, from 50 ms doubling to 5 s; a connection that answered and lived for
// a second starts the delay anew. It may run only once at a time.
func (m *Manager) Run(ctx context.Context) error {
	delay := time.Duration(0)
	for ctx.Err() == nil {
		l, err := m.dial(ctx)
		if err == nil {
			born := time.Now()
			m.serve(ctx, l)
			if time.Since(born) > time.Second {
				delay = 0
			}
		} else if ctx.Err() == nil {
			m.refused(err, delay)
		}
		if delay > 0 || err != nil {
			delay = min(max(2*delay, backoffFirst), backoffMost)
			sleep(ctx, delay)
		} else {
			delay = backoffFirst / 2 // the first redial after a loss is at once
		}
	}
	return nil
}

// serve makes l the connection of m until it is lost or ctx ends.
func (m *Manager) serve(ctx context.Context, l *link) {
	m.attach(l)
	m.opts.Logger.Info("connected to the service manager", "scope", m.opts.Scope, "address", m.opts.Address)
	select {
	case <-l.lost():
	case <-ctx.Done():
	}
	l.drop(errLost)
	m.detach(l)
	if ctx.Err() == nil {
		m.opts.Logger.Warn("lost the service manager", "scope", m.opts.Scope, "reason", l.cause)
	}
}

func (m *Manager) attach(l *link) {
	m.cache.clear()
	l.signals.setLive(true)
	m.mu.Lock()
	m.link, m.dialErr = l, nil
	close(m.connected)
	m.mu.Unlock()
	m.changes.everything()
}

func (m *Manager) detach(l *link) {
	l.signals.setLive(false)
	m.mu.Lock()
	m.link = nil
	m.connected = make(chan struct{})
	m.mu.Unlock()
	m.cache.clear()
	m.changes.lost()
}

func (m *Manager) refused(err error, delay time.Duration) {
	m.mu.Lock()
	first := m.dialErr == nil || m.dialErr.Error() != err.Error()
	m.dialErr = err
	m.mu.Unlock()
	if first {
		m.opts.Logger.Warn("cannot reach the service manager", "scope", m.opts.Scope, "address", m.opts.Address, "err", err, "retry", delay)
	}
}

// Connected reports whether there is a connection at this moment.
func (m *Manager) Connected() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.link != nil
}

// Wake is ready when something happened since the last Drain. It has capacity
// one and is never closed.
func (m *Manager) Wake() <-chan struct{} { return m.changes.wake }

// Drain returns what happened since it was last called: units in the order of
// their first change, job ends in the order in which they came, none dropped.
// It reports All when a connection was made or lost, after a reload (whoever
// asked for it), and when more than 4,096 units changed; Units is empty then.
// While a reload is going on it lists no units.
func (m *Manager) Drain() unit.Changes { return m.changes.drain() }

// using returns the connection, waiting for one for at most ConnectWait.
func (m *Manager) using(ctx context.Context, op string) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, looking(op, "", err)
	}
	var timeout <-chan time.Time
	for {
		m.mu.Lock()
		l, connected := m.link, m.connected
		m.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if timeout == nil {
			t := time.NewTimer(m.opts.ConnectWait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-connected:
		case <-ctx.Done():
			return nil, looking(op, "", ctx.Err())
		case <-timeout:
			return nil, fault.New(fault.Unavailable, op, m.opts.Address, m.whyNot())
		}
	}
}

// whyNot says why there is no connection.
func (m *Manager) whyNot() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dialErr != nil {
		return m.dialErr
	}
	return errors.New("no connection to the service manager yet")
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
