package mesh

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh/identity"
)

// headroom is what an answer's headers may take of the server's largest message.
const headroom = 4 << 10

// received bounds what one subscription holds that has not been looked at. It is
// looked at without waiting for anything, so it fills up only in a burst.
const (
	receivedMessages = 4 << 10
	receivedBytes    = 32 << 20
)

// endpoint is an Endpoint at work.
type endpoint struct {
	Endpoint
	s *Service

	places chan struct{} // taken from receipt to the handler's return: Together + Waiting
	slots  chan struct{} // taken while a handler runs: Together
	flows  chan struct{} // taken from receipt to the end of a stream: Streams
	life   context.Context
	end    context.CancelCauseFunc

	streaming  context.Context // ends before life does
	endStreams context.CancelCauseFunc

	running atomic.Int64
	waiting atomic.Int64
	counts  counts

	mu     sync.Mutex
	open   map[*job]struct{} // taken and not answered
	named  map[callName]*job // those of them that have a name
	closed bool              // no more is taken
}

// counts are an endpoint's statistics.
type counts struct {
	mu      sync.Mutex
	calls   int // answered by the handler, or in its stead
	failed  int // of them, with an error
	busy    int // of them, because the endpoint was full
	dropped int // not answered: the caller may not call
	last    string
	spent   time.Duration
}

// errStopping ends handlers that take too long while the service ends.
var errStopping = errors.New("the service is stopping; it may have been done")

func newEndpoint(s *Service, e Endpoint) (*endpoint, error) {
	if e.Name == "" || e.Subject == "" || e.Handler == nil || len(e.Accounts) == 0 {
		return nil, fault.New(fault.Internal, "make service", e.Name, errors.New("name, subject, handler and accounts are required"))
	}
	e.Timeout = orElse(e.Timeout, 10*time.Second)
	if e.Together <= 0 {
		e.Together = 16
	}
	if e.Waiting <= 0 {
		e.Waiting = 64
	}
	if e.Streams <= 0 {
		e.Streams = 64
	}
	e.Life = orElse(e.Life, streamLife)
	end := &endpoint{
		Endpoint: e, s: s, places: make(chan struct{}, e.Together+e.Waiting), slots: make(chan struct{}, e.Together),
		flows: make(chan struct{}, e.Streams), open: map[*job]struct{}{}, named: map[callName]*job{},
	}
	// Handlers outlive the context that ends the service, until they are drained.
	end.life, end.end = context.WithCancelCause(context.WithoutCancel(s.c.life))
	end.streaming, end.endStreams = context.WithCancelCause(end.life)
	return end, nil
}

// job is one call that was taken.
type job struct {
	m    *nats.Msg
	r    Request
	once sync.Once

	// Guarded by endpoint.mu:
	stream *Stream   // that it became; nil: none
	last   *nats.Msg // by which it was asked last: who asked that way is answered
	asked  int       // how often
}

// callName is a call across all the times that it is asked. Names are the
// caller's, and reach nobody else's calls.
type callName struct {
	caller identity.Caller
	call   string
}

func (j *job) name() callName { return callName{j.r.Caller, j.r.Call} }

// nameOf is the name of a call and how long ago it was first asked.
func nameOf(m *nats.Msg) (string, time.Duration) {
	name := m.Header.Get(callHeader)
	if name == "" || len(name) > maxCall {
		return "", 0
	}
	ms, ok := number(m, askedHeader)
	if !ok {
		return name, 0
	}
	return name, time.Duration(min(ms, mostAsked.Milliseconds())) * time.Millisecond
}

// take looks at one message and never waits: nats.go delivers the next one when
// it returns.
func (e *endpoint) take(session *Session, m *nats.Msg) {
	caller, err := e.s.c.caller(m, e.Accounts)
	if err != nil {
		e.drop(m, err)
		return
	}
	j := &job{m: m, last: m, asked: 1, r: Request{Subject: m.Subject, Caller: caller, Payload: m.Data}}
	j.r.Call, j.r.Asked = nameOf(m)
	if e.MaxRequest > 0 && len(m.Data) > e.MaxRequest {
		e.turn(j, fault.New(fault.Invalid, "call", e.Name, fmt.Errorf("request of %d bytes; at most %d", len(m.Data), e.MaxRequest)))
		return
	}
	switch joined, closed := e.begin(j); {
	case closed:
		e.turn(j, fault.New(fault.Unavailable, "call", e.Name, errors.New("the service is stopping")))
		return
	case joined:
		return
	}
	if m.Header.Get(streamHeader) != "" {
		e.takeStream(session, j)
		return
	}
	select {
	case e.places <- struct{}{}:
		go e.work(j)
	default:
		e.count(func(c *counts) { c.busy++ })
		e.turn(j, e.busy())
	}
}

// turn answers a call that reaches no handler.
func (e *endpoint) turn(j *job, err error) {
	e.answer(j, nil, err)
	if e.Turned != nil {
		e.Turned(j.r, j.m.Header.Get(streamHeader) != "", err)
	}
}

// drop counts a call that is not answered: whoever may not call learns nothing.
// The log has the first, the second, the fourth and so on, so it is not filled
// from outside.
func (e *endpoint) drop(m *nats.Msg, err error) {
	n := 0
	e.count(func(c *counts) { c.dropped++; n = c.dropped })
	if n&(n-1) == 0 {
		e.s.o.Logger.Warn("call dropped", "endpoint", e.Name, "subject", m.Subject, "error", err, "dropped", n)
	}
}

// begin notes an unanswered call, unless no more is taken. One that is under way
// is joined: it has one answer, for whoever asked last.
func (e *endpoint) begin(j *job) (joined, closed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false, true
	}
	if old := e.named[j.name()]; old != nil {
		old.last = j.m
		old.asked++
		return true, false
	}
	e.open[j] = struct{}{}
	if j.r.Call != "" {
		e.named[j.name()] = j
	}
	return false, false
}

func (e *endpoint) busy() error {
	return fault.New(fault.Unavailable, "call", e.Name, fmt.Errorf("busy: %d calls run and %d wait", e.running.Load(), e.waiting.Load()))
}

// work waits for a slot and runs the handler in it.
func (e *endpoint) work(j *job) {
	defer func() { <-e.places }()
	ctx, cancel := context.WithTimeout(e.life, e.patience(j.m))
	defer cancel()
	e.waiting.Add(1)
	select {
	case e.slots <- struct{}{}:
		e.waiting.Add(-1)
	case <-ctx.Done():
		e.waiting.Add(-1)
		e.turn(j, e.busy())
		return
	}
	e.running.Add(1)
	defer func() { e.running.Add(-1); <-e.slots }()
	// A handler that does not heed its context keeps its slot, so that hung ones
	// cannot pile up; its caller is answered all the same.
	stop := context.AfterFunc(ctx, func() { e.answer(j, nil, e.late(ctx)) })
	defer stop()
	start := time.Now()
	payload, err := e.call(ctx, j)
	e.count(func(c *counts) { c.spent += time.Since(start) })
	var known *fault.Error
	switch {
	case err == nil || ctx.Err() == nil:
	case errors.Is(context.Cause(ctx), errStopping) && !errors.Is(err, errStopping), !errors.As(err, &known):
		err = e.late(ctx)
	}
	e.answer(j, payload, err)
}

func (e *endpoint) late(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		cause = errors.New("the handler was not done by the deadline; it may still be")
	}
	return fault.New(fault.Timeout, "call", e.Name, cause)
}

// patience is how long the caller waits, and never longer than the endpoint
// allows.
func (e *endpoint) patience(m *nats.Msg) time.Duration {
	if ms, err := strconv.ParseInt(m.Header.Get(patienceHeader), 10, 32); err == nil && ms > 0 {
		return min(e.Timeout, time.Duration(ms)*time.Millisecond)
	}
	return e.Timeout
}

// call runs the handler.
func (e *endpoint) call(ctx context.Context, j *job) (payload []byte, err error) {
	err = e.guard(j.r, func() (err error) {
		if err := e.signedBy(j); err != nil {
			return err
		}
		payload, err = e.Handler(ctx, j.r)
		return err
	})
	return payload, err
}

// signedBy returns an error unless the call was signed, where that is wanted.
func (e *endpoint) signedBy(j *job) error {
	if !e.Signed {
		return nil
	}
	return e.s.signed(j.m, j.r.Caller)
}

// guard runs a handler. A panic is an error of class internal.
func (e *endpoint) guard(r Request, handler func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e.s.o.Logger.Error("handler panicked", "endpoint", e.Name, "subject", r.Subject, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "call", e.Name, errors.New("the handler panicked"))
		}
	}()
	return handler()
}

// answer sends the first answer to a call; there is no second.
func (e *endpoint) answer(j *job, payload []byte, err error) {
	j.once.Do(func() {
		e.mu.Lock()
		delete(e.open, j)
		if e.named[j.name()] == j {
			delete(e.named, j.name())
		}
		stream, last, asked := j.stream, j.last, j.asked
		e.mu.Unlock()
		limit := e.limit()
		if err == nil && len(payload) > limit {
			err = fault.New(fault.Failed, "call", e.Name, fmt.Errorf("answer of %d bytes; at most %d", len(payload), limit))
		}
		e.count(func(c *counts) {
			c.calls++
			if err != nil {
				c.failed++
				c.last = cut(err.Error(), maxWords)
			}
		})
		reply := &nats.Msg{Data: payload, Header: nats.Header{}}
		if e.s.o.Node != "" {
			reply.Header.Set(nameHeader, e.s.o.Node)
		}
		if err != nil {
			answerFault(reply, err)
		}
		if j.r.Call != "" {
			reply.Header.Set(answersHeader, strconv.Itoa(asked))
			if errors.Is(err, errStopping) {
				reply.Header.Set(kindHeader, kindAgain)
			}
		}
		if stream != nil {
			stream.close(reply)
		}
		if err := last.RespondMsg(reply); err != nil && !errors.Is(err, nats.ErrMsgNoReply) {
			e.s.o.Logger.Warn("answer was not sent", "endpoint", e.Name, "error", err)
		}
	})
}

// limit is how many bytes an answer may have.
func (e *endpoint) limit() int {
	limit := e.MaxReply
	if s := e.s.c.session(); s != nil {
		if most := int(s.nc.MaxPayload()) - headroom; limit == 0 || limit > most {
			limit = most
		}
	}
	if limit == 0 {
		return identity.MaxPayload - headroom
	}
	return limit
}

func (e *endpoint) count(add func(c *counts)) {
	e.counts.mu.Lock()
	defer e.counts.mu.Unlock()
	add(&e.counts)
}

// idle waits until no call runs or waits, and returns false when the time is up.
func (e *endpoint) idle(up <-chan time.Time) bool {
	return empty(e.flows, up) && empty(e.places, up)
}

// empty waits until nothing is taken of places.
func empty(places chan struct{}, up <-chan time.Time) bool {
	taken := 0
	defer func() {
		for range taken {
			<-places
		}
	}()
	for ; taken < cap(places); taken++ {
		select {
		case places <- struct{}{}:
		case <-up:
			return false
		}
	}
	return true
}

// abandon ends every handler that still runs, and answers for it.
func (e *endpoint) abandon() {
	e.mu.Lock()
	e.closed = true
	left := slices.Collect(maps.Keys(e.open))
	e.mu.Unlock()
	e.end(errStopping)
	for _, j := range left {
		e.answer(j, nil, fault.New(fault.Timeout, "call", e.Name, errStopping))
	}
}

// caller reads who sent m, and holds it against the accounts that may.
func (c *Conn) caller(m *nats.Msg, accounts []identity.Account) (identity.Caller, error) {
	caller, err := c.who.Load().Caller(m)
	if err != nil {
		return identity.Caller{}, err
	}
	if !slices.Contains(accounts, caller.Account) {
		return identity.Caller{}, fault.New(fault.Denied, "caller", caller.Name, fmt.Errorf("account %s may not call", caller.Account))
	}
	return caller, nil
}
