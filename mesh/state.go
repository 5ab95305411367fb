package mesh

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
)

// State is what is known of the connection at one moment.
type State struct {
	Connected bool
	Session   uint64    // how often a connection came about; it rises with each
	Since     time.Time // when the connection came or went; zero before the first
	Err       error     // why there is none; nil while there is one
}

// Session is one connection from dial to loss. It is never reused: after a loss
// the next one has a higher ID.
type Session struct {
	ID uint64

	c      *Conn
	nc     *nats.Conn
	closed chan struct{} // after the last of nc's callbacks
	lost   context.Context
	end    context.CancelCauseFunc

	inboxes inboxes
}

// NATS is the connection itself. It is for the packages below mesh: no other
// one may import NATS.
func (s *Session) NATS() *nats.Conn { return s.nc }

// Within returns a context that also ends when the session does. The caller
// calls the function when it is done.
func (s *Session) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.lost, func() { cancel(context.Cause(s.lost)) })
	return both, func() { stop(); cancel(context.Canceled) }
}

// Ask sends m and waits for the answer, Options.Timeout when ctx has no deadline.
// It is Call without what calls between stead's own processes have, for what
// speaks to the NATS server itself.
func (s *Session) Ask(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
	ctx, cancel := s.c.patience(ctx)
	defer cancel()
	ctx, end := s.Within(ctx)
	defer end()
	reply, err := s.nc.RequestMsgWithContext(ctx, m)
	if err != nil {
		err = callFault(ctx, err)
		if fault.Is(err, fault.Timeout) {
			s.c.Doubt()
		}
		return nil, err
	}
	return reply, nil
}

// errLost is why a session's context ended.
var errLost = errors.New("the connection was lost")

// board holds the state of a connection and wakes who waits for a change.
type board struct {
	mu      sync.Mutex
	state   State
	session *Session
	wakes   map[chan struct{}]struct{}
}

// State returns how the connection stands.
func (c *Conn) State() State {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	return c.board.state
}

// Notify returns a channel of capacity one that holds a token whenever the
// state may have changed since the last one was taken, and a first one at once.
// It is never closed. The caller calls the function when it is done.
func (c *Conn) Notify() (<-chan struct{}, func()) {
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	c.board.wakes[wake] = struct{}{}
	return wake, func() {
		c.board.mu.Lock()
		defer c.board.mu.Unlock()
		delete(c.board.wakes, wake)
	}
}

// Session returns the connection that stands now, and waits for one until ctx
// ends. The error is of class unavailable and says why there is none.
func (c *Conn) Session(ctx context.Context) (*Session, error) {
	wake, stop := c.Notify()
	defer stop()
	for {
		if s := c.session(); s != nil {
			return s, nil
		}
		select {
		case <-wake:
		case <-c.done:
			return nil, fault.New(fault.Unavailable, "connect", c.name, errClosed())
		case <-ctx.Done():
			return nil, c.absent()
		}
	}
}

// Wait waits for a connection until ctx ends. The error is of class unavailable,
// or denied when the server turned the credentials away, and says why.
func (c *Conn) Wait(ctx context.Context) error {
	_, err := c.Session(ctx)
	return err
}

// Current returns the connection that stands now, and at once. The error is that
// of Wait.
func (c *Conn) Current() (*Session, error) {
	if s := c.session(); s != nil {
		return s, nil
	}
	return nil, c.absent()
}

func (c *Conn) session() *Session {
	c.board.mu.Lock()
	defer c.board.mu.Unlock()
	return c.board.session
}

// absent is the error of a call while there is no connection.
func (c *Conn) absent() error {
	err := c.State().Err
	if err == nil {
		err = fault.New(fault.Unavailable, "", "", errors.New("no connection yet"))
	}
	return fault.New(fault.ClassOf(err), "connect", c.name, err)
}

// change sets the state by set and wakes everybody who waits. The lock is held
// while set runs.
func (c *Conn) change(set func(b *board)) {
	b := &c.board
	b.mu.Lock()
	defer b.mu.Unlock()
	set(b)
	for wake := range b.wakes {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// begin notes that a connection stands.
func (c *Conn) begin(s *Session) {
	c.change(func(b *board) {
		b.state = State{Connected: true, Session: b.state.Session + 1, Since: time.Now()}
		s.ID = b.state.Session
		s.lost, s.end = context.WithCancelCause(c.life)
		b.session = s
	})
	c.log.Info("connected to the mesh", "name", c.name, "server", s.nc.ConnectedAddr(), "session", s.ID)
}

// lose notes that there is no connection, for err.
func (c *Conn) lose(err error) {
	c.change(func(b *board) {
		if b.session != nil {
			b.session.end(errLost)
			b.session = nil
		}
		if b.state.Connected {
			b.state.Since = time.Now()
		}
		b.state.Connected, b.state.Err = false, err
	})
}
