package mesh

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh/identity"
)

// Request is one call as a handler gets it. Caller is who sent it, as the server
// states it, and lives in an account that may call.
type Request struct {
	Subject string
	Caller  identity.Caller
	Payload []byte
	// Call names the call, for all the times that its caller asks it: no two of one
	// caller's have one name. "" when the caller asks once (Conn.Call). Asked is how
	// long ago it was first asked, when that may have arrived somewhere and nothing is
	// under way here: it may have been done. 0 when it is new.
	Call  string
	Asked time.Duration
}

// Handler answers one call. Ctx ends at the deadline of the call, and when the
// service has to end before the handler has; what comes back later than that is
// thrown away. The error reaches the caller with its class, operation, object,
// cause and hint. A panic costs this one call.
type Handler func(ctx context.Context, r Request) ([]byte, error)

// Endpoint is one subject that a service answers on.
type Endpoint struct {
	Name    string // as service discovery shows it
	Subject string // may be a pattern
	// Queue shares the calls among all who serve the subject with the same
	// queue; without one each of them gets every call.
	Queue    string
	Accounts []identity.Account // whose calls are answered; all others are dropped
	Metadata map[string]string  // that service discovery shows
	Handler  Handler
	// Stream answers the calls of Conn.Follow, which Handler never sees; nil: they
	// are refused. The subject is then a verb of one node.
	Stream Streamer
	// Turned is told of every call that is answered without Handler or Stream, and with
	// what; it must return at once. Nil: nobody is told. Calls that are dropped, since
	// their caller may not call, are none.
	Turned func(r Request, streamed bool, err error)
	// Signed answers only calls that the caller signed, which operators do. Without
	// it who calls is the word of whoever owns the NATS servers.
	Signed bool

	Timeout    time.Duration // of one call, waiting included; 0 is 10 s. A caller with less patience has less
	Together   int           // calls that run at one time; 0 is 16
	Waiting    int           // calls that wait besides; further ones are answered "busy" at once; 0 is 64
	MaxRequest int           // bytes; larger ones are refused; 0 is what the server carries
	MaxReply   int           // bytes; a larger answer is an error; 0 is what the server carries

	Streams int           // that run at one time, besides Together; further ones are answered "busy" at once; 0 is 64
	Life    time.Duration // of one stream, after which its caller asks again; 0 is 50 minutes, less than the server lets a call be answered
}

// ServiceOptions say what a service is.
type ServiceOptions struct {
	Name        string // letters, digits, "-" and "_": "controller", "runtime"
	Description string // that service discovery shows
	// Node stands in every answer as Reply.From, and is the service's id in service
	// discovery; empty: none does, and the id is a random text.
	Node      string
	Version   string // semantic
	Endpoints []Endpoint
	// Discover makes the service answer PING, INFO and STATS of NATS service
	// discovery to these accounts; none: it does not listen there.
	Discover []identity.Account
	// Drain bounds how long a service that ends waits for handlers; 0 is 5 s.
	Drain  time.Duration
	Logger *slog.Logger
}

// Service answers calls. Make one with NewService and run it once.
type Service struct {
	c       *Conn
	o       ServiceOptions
	id      string
	started time.Time
	ends    []*endpoint
	ready   chan struct{}
	once    sync.Once
	nonces  nonces
}

// NewService checks the options and starts nothing.
func NewService(c *Conn, o ServiceOptions) (*Service, error) {
	o.Drain = orElse(o.Drain, 5*time.Second)
	if o.Name == "" || o.Logger == nil || len(o.Endpoints) == 0 {
		return nil, fault.New(fault.Internal, "make service", o.Name, errors.New("name, logger and endpoints are required"))
	}
	s := &Service{c: c, o: o, id: cmp.Or(o.Node, rand.Text()), started: time.Now().UTC(), ready: make(chan struct{})}
	for _, e := range o.Endpoints {
		end, err := newEndpoint(s, e)
		if err != nil {
			return nil, err
		}
		s.ends = append(s.ends, end)
	}
	return s, nil
}

// Ready is closed when the server has taken the subscriptions for the first
// time: from then on a call finds the service.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Run answers calls until ctx ends, across every loss of the connection. Then it
// takes no more, waits for the handlers of what it took, for Drain at most, and
// returns nil. Calls whose handler is not done by then are answered with an
// error of class timeout, and Run returns one of class failed that counts the
// handlers left behind.
func (s *Service) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		session, err := s.c.Session(ctx)
		if err != nil {
			if ctx.Err() == nil { // the connection was closed for good
				return errors.Join(err, s.finish())
			}
			break
		}
		subs, err := s.subscribe(session)
		if err != nil {
			s.o.Logger.Warn("cannot serve", "service", s.o.Name, "error", err)
			unsubscribe(subs)
			s.c.pause(delay(1))
			continue
		}
		select {
		case <-ctx.Done():
			drain(session.nc, subs, s.o.Drain)
		case <-session.lost.Done():
		}
	}
	return s.finish()
}

func (s *Service) subscribe(session *Session) ([]*nats.Subscription, error) {
	nc := session.nc
	var subs []*nats.Subscription
	for _, e := range s.ends {
		sub, err := nc.QueueSubscribe(e.Subject, e.Queue, func(m *nats.Msg) { e.take(session, m) })
		if err != nil {
			return subs, fault.New(fault.Unavailable, "serve", e.Subject, err)
		}
		subs = append(subs, sub)
		if err := sub.SetPendingLimits(receivedMessages, receivedBytes); err != nil {
			return subs, fault.New(fault.Unavailable, "serve", e.Subject, err)
		}
	}
	more, err := s.discover(nc)
	subs = append(subs, more...)
	if err == nil {
		err = nc.FlushTimeout(dialTimeout)
	}
	if err != nil {
		return subs, fault.New(fault.Unavailable, "serve", s.o.Name, err)
	}
	s.once.Do(func() { close(s.ready) })
	return subs, nil
}

func unsubscribe(subs []*nats.Subscription) {
	for _, sub := range subs {
		_ = sub.Unsubscribe()
	}
}

// drain ends subscriptions after what was received has been handed over. Without
// a connection nothing of it could be answered.
func drain(nc *nats.Conn, subs []*nats.Subscription, limit time.Duration) {
	if !nc.IsConnected() {
		unsubscribe(subs)
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var ended []<-chan nats.SubStatus
	for _, sub := range subs {
		end := sub.StatusChanged(nats.SubscriptionClosed)
		if err := sub.Drain(); err == nil {
			ended = append(ended, end)
		}
	}
	for _, end := range ended {
		select {
		case <-end:
		case <-timer.C:
			unsubscribe(subs)
			return
		}
	}
}

// finish waits for the handlers, and answers for those that take too long.
func (s *Service) finish() error {
	timer := time.NewTimer(s.o.Drain)
	defer timer.Stop()
	var left int64
	for _, e := range s.ends {
		e.endStreams(errStreamsStop)
	}
	for _, e := range s.ends {
		if !e.idle(timer.C) {
			timer.Reset(0)
		}
	}
	for _, e := range s.ends {
		e.abandon()
		left += e.running.Load() + int64(len(e.flows))
	}
	if session := s.c.session(); session != nil {
		_ = session.nc.FlushTimeout(partTimeout)
	}
	if left > 0 {
		return fault.New(fault.Failed, "stop service", s.o.Name, fmt.Errorf("%d handlers do not end", left))
	}
	return nil
}
