package host

import (
	"context"
	"errors"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/subject"
)

// link is the way to the controllers, whatever credentials it goes by at the
// moment. Without a connection everything fails at once.
type link struct {
	began time.Time

	mu    sync.Mutex // guards what follows
	conn  *mesh.Conn // nil without credentials
	node  subject.Node
	times uint64 // how often conn was set
	wakes map[chan struct{}]struct{}
}

// firstWait is how long after its start a host waits for its first connection.
const firstWait = time.Second

func newLink() *link { return &link{began: time.Now(), wakes: map[chan struct{}]struct{}{}} }

// use makes calls go by conn, as node; nil for by none. The caller tells of
// changes of its state with changed.
func (l *link) use(conn *mesh.Conn, node subject.Node) {
	l.mu.Lock()
	l.conn, l.node, l.times = conn, node, l.times+1
	l.mu.Unlock()
	l.changed()
}

// changed wakes everybody who waits for a change.
func (l *link) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for wake := range l.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

func (l *link) now() (*mesh.Conn, subject.Node, uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn, l.node, l.times
}

// Ask asks the controllers about a topic of this node.
func (l *link) Ask(ctx context.Context, t subject.Topic, payload []byte) ([]byte, error) {
	l.begin(ctx)
	conn, node, _ := l.now()
	if conn == nil {
		return nil, fault.New(fault.Unavailable, "call", string(t), errors.New("there are no credentials to connect with"))
	}
	return conn.Call(ctx, subject.ForNode(node, t), payload)
}

// begin waits a moment for the first connection of all, so that a host that starts
// does not complain of what is about to come.
func (l *link) begin(ctx context.Context) {
	ctx, cancel := context.WithDeadline(ctx, l.began.Add(firstWait))
	defer cancel()
	news, stop := l.Notify()
	defer stop()
	for l.Session() == 0 && ctx.Err() == nil {
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
}

// Session is another number in each connection, and 0 without one.
func (l *link) Session() uint64 {
	conn, _, times := l.now()
	if conn == nil {
		return 0
	}
	st := conn.State()
	if !st.Connected {
		return 0
	}
	return times<<32 | st.Session
}

// Notify returns a channel that has a token whenever Session may have changed,
// and one at once. The caller calls the function when it is done.
func (l *link) Notify() (<-chan struct{}, func()) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakes[wake] = struct{}{}
	return wake, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.wakes, wake)
	}
}

// state is how the connection stands: since when, and why there is none.
func (l *link) state() (connected bool, since time.Time, why string) {
	conn, _, _ := l.now()
	if conn == nil {
		return false, time.Time{}, ""
	}
	st := conn.State()
	if st.Err != nil {
		why = st.Err.Error()
	}
	return st.Connected, st.Since, why
}
