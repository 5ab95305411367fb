package systemd

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	busName    = "org.freedesktop.systemd1"
	busPath    = dbus.ObjectPath("/org/freedesktop/systemd1")
	managerIfc = "org.freedesktop.systemd1.Manager"
)

// window bounds the calls of one batch that are in flight. The manager answers
// one after the other, so more gains nothing, and this many small messages fit
// into the socket's buffer: a write does not block unless the manager hangs.
const window = 128

// link is one connection to a manager, from dial to loss. It is never reused.
type link struct {
	bus      *dbus.Conn
	nc       net.Conn
	signals  *receiver
	timeout  time.Duration // without any answer, after which the manager counts as hung
	patience time.Duration // instead of timeout while a reload is going on
	total    time.Duration // of one batch of calls, or patience; 0 for no bound
	onCall   func(method string)
	flags    dbus.Flags
	to       string        // the name that is asked; "" for the manager's
	slots    chan struct{} // bounds the calls of all batches together; nil where window is enough

	reloads  atomic.Int32 // reloads of our own in flight
	dropOnce sync.Once
	gone     chan struct{}          // closed when it was dropped; nil where nobody waits for that
	ended    func(lost error) error // why the connection did, as far as that is known; nil where nobody asks
	cause    error                  // why it was dropped; set before bus is closed
}

// call is one method call.
type call struct {
	path   dbus.ObjectPath
	iface  string
	member string
	args   []any
}

func get(path dbus.ObjectPath, iface, property string) call {
	return call{path, "org.freedesktop.DBus.Properties", "Get", []any{iface, property}}
}

func onManager(member string, args ...any) call {
	return call{busPath, managerIfc, member, args}
}

func pingCall() call { return call{busPath, "org.freedesktop.DBus.Peer", "Ping", nil} }

// reply is the answer to a call: a body, or an *answer, errUnsent, errLost,
// errHung or the context's error.
type reply struct {
	body []any
	err  error
}

// drop closes the link for good; every call in flight ends. The socket goes
// first: godbus's Close waits for a write that is blocked.
func (l *link) drop(cause error) {
	l.dropOnce.Do(func() {
		l.cause = cause
		if l.gone != nil {
			close(l.gone)
		}
		_ = l.nc.Close()
		_ = l.bus.Close()
	})
}

func (l *link) lost() <-chan struct{} { return l.bus.Context().Done() }

// do sends calls in order, without waiting for one answer before the next, and
// returns the replies in the same order. It ends when ctx does, and drops the
// link when no answer at all has come for the link's timeout, or not all have for
// its total.
func (l *link) do(ctx context.Context, calls []call) []reply {
	sent := make([]*dbus.Call, 0, len(calls))
	done := make(chan *dbus.Call, len(calls))
	stall := l.watch()
	defer stall.stop()
	for finished := 0; finished < len(calls); finished++ {
		for len(sent) < len(calls) && l.enter(ctx, len(sent)-finished) {
			sent = append(sent, l.send(ctx, calls[len(sent)], done))
		}
		if len(sent) == finished {
			break // its turn never came
		}
		<-done // godbus completes every call: by answer, by ctx, or by the link's end
		l.leave()
		stall.progress()
	}
	replies := make([]reply, len(calls))
	for i := range replies {
		if i >= len(sent) {
			replies[i].err = fromBus(dbus.ErrClosed, ctx)
			continue
		}
		replies[i] = reply{sent[i].Body, fromBus(sent[i].Err, ctx)}
		if errors.Is(replies[i].err, errLost) && stall.hung() {
			replies[i].err = errHung
		}
	}
	return replies
}

// enter reports whether one more call may be sent by a batch that has some in
// flight. A batch with none waits for its turn; false means then that ctx or the
// link has ended.
func (l *link) enter(ctx context.Context, inFlight int) bool {
	switch {
	case l.slots == nil:
		return inFlight < window
	case inFlight > 0:
		select {
		case l.slots <- struct{}{}:
			return true
		default:
			return false
		}
	}
	select {
	case l.slots <- struct{}{}:
		return true
	case <-ctx.Done():
	case <-l.lost():
	}
	return false
}

// leave ends what enter began.
func (l *link) leave() {
	if l.slots != nil {
		<-l.slots
	}
}

func (l *link) send(ctx context.Context, c call, done chan *dbus.Call) *dbus.Call {
	if l.onCall != nil {
		l.onCall(c.member)
	}
	return l.bus.Object(cmp.Or(l.to, busName), c.path).GoWithContext(ctx, c.iface+"."+c.member, l.flags, done, c.args...)
}

// one is do for a single call.
func (l *link) one(ctx context.Context, c call) reply { return l.do(ctx, []call{c})[0] }

// stallWatch drops its link when a batch makes no progress.
type stallWatch struct {
	l *link

	mu      sync.Mutex
	begun   time.Time
	since   time.Time // when an answer came last
	fired   bool
	stopped bool
	timer   *time.Timer
}

func (l *link) watch() *stallWatch {
	now := time.Now()
	w := &stallWatch{l: l, begun: now, since: now}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(l.timeout, w.check)
	return w
}

func (w *stallWatch) check() {
	limit := w.l.timeout
	if w.l.reloads.Load() > 0 {
		limit = max(limit, w.l.patience)
	}
	w.mu.Lock()
	left := limit - time.Since(w.since)
	if w.l.total > 0 {
		left = min(left, max(limit, w.l.total)-time.Since(w.begun))
	}
	switch {
	case w.stopped:
	case left > 0:
		w.timer.Reset(min(left, w.l.timeout))
	default:
		w.fired = true
	}
	fired := w.fired
	w.mu.Unlock()
	if fired {
		w.l.drop(errHung)
	}
}

func (w *stallWatch) progress() {
	w.mu.Lock()
	w.since = time.Now()
	w.mu.Unlock()
}

func (w *stallWatch) hung() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fired
}

func (w *stallWatch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}
