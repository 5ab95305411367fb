package mesh

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"stead/host/fault"
	"stead/mesh/identity"
)

const (
	// dialTimeout bounds one attempt: TCP, TLS and login, each.
	dialTimeout = 3 * time.Second
	// probeTimeout is how long a peer that is in doubt has to answer a ping.
	probeTimeout = 2 * time.Second
	// partTimeout bounds what is still sent when the connection is closed.
	partTimeout = time.Second
)

// Options say to which mesh, as whom, and how.
type Options struct {
	// Credentials reads who connects, to which servers, trusting which
	// authority. It is called before each attempt to connect, so that renewed
	// credentials are taken up; it must not block for long.
	Credentials func() (identity.Credentials, error)
	Name        string // how the server shows this client: "host ws1"
	Logger      *slog.Logger
	Timeout     time.Duration // of a call whose context has no deadline; 0 is 10 s
	Absence     time.Duration // how long Insist asks in vain; 0 is 10 s: longer than a runtime, or a controller with its server, takes to come back
	Ping        time.Duration // after this long a silent peer is asked, and after twice as long it is given up; 0 is 10 s
}

// Conn is a connection to the mesh that comes back by itself.
type Conn struct {
	name    string
	timeout time.Duration
	absence time.Duration
	ping    time.Duration
	read    func() (identity.Credentials, error)
	log     *slog.Logger
	who     atomic.Pointer[identity.Credentials] // as they were last read

	life    context.Context // ends when the connection is closed
	stop    context.CancelFunc
	done    chan struct{}
	doubt   chan struct{}
	board   board
	asks    asks
	follows atomic.Int64 // streams that are followed
}

// Connect starts to connect and goes on for ever, until ctx ends or Close is
// called. It returns at once; an error means that the options or credentials
// cannot be used, never that the mesh is out of reach.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if o.Credentials == nil || o.Logger == nil || o.Name == "" {
		return nil, fault.New(fault.Internal, "connect", o.Name, errors.New("credentials, name and logger are required"))
	}
	c := &Conn{
		name: o.Name, timeout: orElse(o.Timeout, 10*time.Second), absence: orElse(o.Absence, 10*time.Second), ping: orElse(o.Ping, 10*time.Second),
		read: o.Credentials, log: o.Logger,
		done: make(chan struct{}), doubt: make(chan struct{}, 1),
		board: board{wakes: map[chan struct{}]struct{}{}}, asks: asks{open: map[string]map[*ask]struct{}{}},
	}
	if _, err := c.credentials(); err != nil {
		return nil, err
	}
	c.life, c.stop = context.WithCancel(ctx)
	go c.run()
	return c, nil
}

func orElse(d, other time.Duration) time.Duration {
	if d == 0 {
		return other
	}
	return d
}

// credentials reads them anew, and keeps them for those who only compare.
func (c *Conn) credentials() (identity.Credentials, error) {
	who, err := c.read()
	if err == nil {
		c.who.Store(&who)
	}
	return who, err
}

// Close sends what is still to be sent, for a second at most, and ends the
// connection. Services and listeners are ended first by whoever runs them.
func (c *Conn) Close() {
	c.stop()
	<-c.done
}

// run dials, keeps the connection while it stands, and dials again. nats.go could
// come back by itself, but it gives up for good after some answers of the
// server, and does not say why an attempt was turned away.
func (c *Conn) run() {
	defer close(c.done)
	defer c.stop()
	for n := 1; c.life.Err() == nil; n++ {
		s, err := c.dial()
		if err == nil {
			n = 0
			c.begin(s)
			err = c.keep(s)
		}
		c.lose(err)
		if c.life.Err() == nil {
			c.tell(n, err)
			c.pause(delay(n + 1))
		}
	}
	c.lose(errClosed())
}

// tell logs the loss, and the first, second, fourth and so on of the attempts
// after it.
func (c *Conn) tell(n int, err error) {
	switch {
	case n == 0:
		c.log.Warn("connection to the mesh lost", "name", c.name, "error", err)
	case n&(n-1) == 0:
		c.log.Warn("mesh is out of reach", "name", c.name, "error", err, "attempt", n)
	}
}

func (c *Conn) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.life.Done():
	}
}

// delay is how long to wait before the nth attempt in a row. A server that
// restarts is back within a second, and a thousand clients must not come at
// once.
func delay(n int) time.Duration {
	switch {
	case n <= 1:
		return 50*time.Millisecond + rand.N(450*time.Millisecond)
	case n == 2:
		return 250*time.Millisecond + rand.N(time.Second)
	}
	return time.Second + rand.N(time.Second)
}

// keep watches over a connection until it is closed, and says why it was.
func (c *Conn) keep(s *Session) error {
	for {
		select {
		case <-c.life.Done():
			_ = s.nc.FlushTimeout(partTimeout)
			s.nc.Close()
			<-s.closed
			return errClosed()
		case <-s.closed:
			return dialFault(s.nc.LastError())
		case <-c.doubt:
			if err := c.probe(s); err != nil {
				s.nc.Close()
				<-s.closed
				return err
			}
		}
	}
}

// Doubt says that an answer did not come that should have. The peer is asked,
// and the connection is made anew when it does not answer within two seconds. It
// does not block.
func (c *Conn) Doubt() {
	select {
	case c.doubt <- struct{}{}:
	default:
	}
}

func (c *Conn) probe(s *Session) error {
	ctx, cancel := context.WithTimeout(c.life, probeTimeout)
	defer cancel()
	if err := s.nc.FlushWithContext(ctx); errors.Is(err, context.DeadlineExceeded) {
		return fault.New(fault.Unavailable, "", "", errors.New("the server does not answer"))
	}
	return nil
}

func errClosed() error {
	return fault.New(fault.Unavailable, "", "", errors.New("the connection was closed"))
}
