package systemdtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// Options of a Fake.
type Options struct {
	// Dirs are the folders of unit files, the one that wins first. At least one.
	Dirs []string
	// ConnectWait is how long a call waits for a connection; 0 is 2 s.
	ConnectWait time.Duration
	// CallTimeout is when a call that hangs is answered with Timeout and the
	// connection is dropped; 0 is 25 s.
	CallTimeout time.Duration
	// ReloadTook is how long a reload takes; 0 is 1 ms.
	ReloadTook time.Duration
	// Clock gives the CLOCK_MONOTONIC reading that states are stamped with; nil
	// counts from 1 s at NewFake.
	Clock func() time.Duration
	// Presets are what unit files are meant to be.
	Presets unit.Presets
}

// Fake is a service manager over a folder of unit files, with the methods of
// systemd.Manager and systemd.Reader. It loads definitions, is stale until a reload, runs simple
// commands in thought (see program), queues jobs and sends changes as systemd
// does. What it does not know it refuses to load, rather than to guess.
//
// Its own state goes on while it is disconnected, as that of a real manager.
// All methods may be called from any goroutine.
type Fake struct {
	opts Options
	wake chan struct{}

	mu      sync.Mutex
	closed  bool
	units   map[unit.Name]*loaded     // by primary name
	names   map[unit.Name]unit.Name   // what a name of a loaded unit means
	pinned  map[unit.Name]bool        // referred to by a link of another unit, as of the last reload
	lastJob uint32                    //
	lastPID uint32                    //
	lastRun uint64                    //
	queue   []*job                    // jobs that wait for their turn
	breaks  map[string][]*Break       // by call
	calls   map[string]int            //
	log     []string                  // what was asked for and accepted, in order
	link    *connection               // nil while disconnected
	linked  chan struct{}             // closed when link is set
	changed map[unit.Name]bool        //
	pending unit.Changes              //
	skipped map[unit.Name]bool        // unloaded units whose last start was skipped by a condition
	starts  map[unit.Name][]time.Time // of units that are loaded, for their start limit
}

// connection ends when it is lost.
type connection struct{ lost chan struct{} }

// NewFake returns a Fake with no unit loaded, which Run connects.
func NewFake(o Options) *Fake {
	for d, v := range map[*time.Duration]time.Duration{
		&o.ConnectWait: 2 * time.Second, &o.CallTimeout: 25 * time.Second, &o.ReloadTook: time.Millisecond,
	} {
		if *d == 0 {
			*d = v
		}
	}
	if o.Clock == nil {
		boot := time.Now()
		o.Clock = func() time.Duration { return time.Second + time.Since(boot) }
	}
	f := &Fake{
		opts: o, wake: make(chan struct{}, 1), linked: make(chan struct{}),
		units: map[unit.Name]*loaded{}, names: map[unit.Name]unit.Name{}, pinned: map[unit.Name]bool{},
		breaks: map[string][]*Break{}, calls: map[string]int{}, changed: map[unit.Name]bool{},
		starts: map[unit.Name][]time.Time{}, skipped: map[unit.Name]bool{}, lastPID: 1000,
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pin()
	return f
}

// Run connects f until ctx ends, and then returns nil.
func (f *Fake) Run(ctx context.Context) error {
	f.Reconnect()
	<-ctx.Done()
	f.Disconnect()
	return nil
}

// Close ends all that f runs, without a word to anybody. Nothing happens any
// more by itself after it.
func (f *Fake) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, u := range f.units {
		u.stopTimers()
	}
}

// Connected reports whether there is a connection.
func (f *Fake) Connected() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.link != nil
}

// Wake is ready when something happened since the last Drain.
func (f *Fake) Wake() <-chan struct{} { return f.wake }

// Drain returns what happened since it was last called.
func (f *Fake) Drain() unit.Changes {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.pending
	f.pending = unit.Changes{}
	clear(f.changed)
	select {
	case <-f.wake:
	default:
	}
	return out
}

func (f *Fake) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// tell notes a change of n for Drain; nobody hears it while disconnected.
func (f *Fake) tell(n unit.Name) {
	if f.link == nil || f.pending.All || f.changed[n] {
		return
	}
	f.changed[n] = true
	f.pending.Units = append(f.pending.Units, n)
	f.signal()
}

// tellAll notes that everything is to be looked at.
func (f *Fake) tellAll() {
	f.pending.All, f.pending.Units = true, nil
	clear(f.changed)
	f.signal()
}

// tellEnd notes the end of a job.
func (f *Fake) tellEnd(j unit.JobEnd) {
	if f.link == nil {
		return
	}
	f.pending.Jobs = append(f.pending.Jobs, j)
	f.tell(j.Unit)
	f.signal()
}

// errLost is why a call that was under way has no answer.
var errLost = errors.New("the connection to the manager was lost")

// visit is a call that found a connection.
type visit struct {
	f    *Fake
	ctx  context.Context
	name string
	link *connection
}

// enter waits for a connection, counts the call and lets befall it what Break
// asked for. The result of the call goes through the function that it returns.
func (f *Fake) enter(ctx context.Context, name string) (*visit, func(error) error, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, ended(name, err)
	}
	l, err := f.connection(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	f.mu.Lock()
	f.calls[name]++
	f.mu.Unlock()
	v := &visit{f, ctx, name, l}
	after, err := v.suffer("")
	return v, after, err
}

// suffer lets befall the request about a unit, or the whole call, what Break
// asked for.
func (v *visit) suffer(of unit.Name) (func(error) error, error) {
	v.f.mu.Lock()
	b := v.f.broken(v.name, of)
	v.f.mu.Unlock()
	pass := func(err error) error { return err }
	if b == nil {
		return pass, nil
	}
	if err := v.wait(b); err != nil {
		return pass, err
	}
	switch {
	case b.Err != nil && !b.After:
		return pass, b.Err
	case b.Err == nil:
		return pass, nil
	}
	return func(err error) error {
		if err == nil {
			return b.Err
		}
		return err
	}, nil
}

// connection returns the connection, waiting for one for at most ConnectWait.
func (f *Fake) connection(ctx context.Context, name string) (*connection, error) {
	timeout := time.NewTimer(f.opts.ConnectWait)
	defer timeout.Stop()
	for {
		f.mu.Lock()
		l, linked := f.link, f.linked
		f.mu.Unlock()
		if l != nil {
			return l, nil
		}
		select {
		case <-linked:
		case <-ctx.Done():
			return nil, ended(name, ctx.Err())
		case <-timeout.C:
			return nil, fault.New(fault.Unavailable, name, "", errors.New("no connection to the service manager"))
		}
	}
}

// wait waits as long as b asks for.
func (v *visit) wait(b *Break) error {
	d := b.Delay
	if b.Hang {
		d = v.f.opts.CallTimeout
	}
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-v.ctx.Done():
		return ended(v.name, v.ctx.Err())
	case <-v.link.lost:
		class := fault.Timeout
		switch v.name {
		case "Enqueue", "Reload", "ResetFailed", "Enable", "Disable":
		default: // it only reads
			class = fault.Unavailable
		}
		return fault.New(class, v.name, "", errLost)
	}
	if b.Hang {
		v.f.drop(v.link)
		return fault.New(fault.Timeout, v.name, "", errors.New("the manager does not answer"))
	}
	return nil
}

func ended(name string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Timeout, name, "", err)
	}
	return fault.New(fault.Canceled, name, "", err)
}
