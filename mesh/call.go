package mesh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
)

// patienceHeader tells the other side for how many milliseconds the caller
// waits; clocks differ, so it is no point in time.
const patienceHeader = "Stead-Patience"

// Call sends payload to whoever serves the subject to and returns the answer. When ctx
// has no deadline it waits for Options.Timeout. What an operator calls to change
// or to act is signed with the operator's own key.
//
// Errors, besides those that the handler answered with: unavailable when there
// is no connection or nobody serves the subject, both at once and with nothing
// done; denied when this user may not publish there; invalid when payload is too
// large; timeout when there was no answer by the deadline or the connection was
// lost, and then it may have been done; canceled when ctx was.
func (c *Conn) Call(ctx context.Context, to string, payload []byte) ([]byte, error) {
	ctx, cancel := c.patience(ctx)
	defer cancel()
	s, err := c.Current()
	if err != nil {
		return nil, err
	}
	ctx, end := c.asks.begin(ctx, to)
	defer end()
	m := &nats.Msg{Subject: to, Data: payload, Header: patienceOf(ctx)}
	if err := c.sign(m); err != nil {
		return nil, err
	}
	reply, err := s.Ask(ctx, m)
	if err != nil {
		return nil, fault.New(fault.ClassOf(err), "call", to, err)
	}
	return reply.Data, faultIn(reply)
}

// sign signs what an operator calls to change or to act. What is only read nobody
// asks the signature of, and one takes a fifth of the time that reading does.
func (c *Conn) sign(m *nats.Msg) error {
	who := c.who.Load()
	if who.Role != identity.Operator {
		return nil
	}
	if a, err := subject.Parse(m.Subject); err == nil && a.Class == subject.Read {
		return nil
	}
	return who.Sign(m, time.Now())
}

func (c *Conn) patience(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, c.timeout)
}

func patienceOf(ctx context.Context) nats.Header {
	end, _ := ctx.Deadline()
	return nats.Header{patienceHeader: []string{strconv.FormatInt(max(1, time.Until(end).Milliseconds()), 10)}}
}

// errDenied is why a call ended that the server does not let through.
type errDenied struct{ cause error }

func (e errDenied) Error() string { return e.cause.Error() }

// callFault gives the error of a call that was sent in ctx, or not sent, its
// class.
func callFault(ctx context.Context, err error) error {
	var denied errDenied
	cause := context.Cause(ctx)
	switch {
	case errors.As(cause, &denied):
		return fault.New(fault.Denied, "", "", denied.cause)
	case errors.Is(cause, errLost), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrConnectionClosed):
		return fault.New(fault.Timeout, "", "", errors.New("the connection was lost before the answer; it may have been done"))
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return fault.New(fault.Timeout, "", "", errors.New("no answer by the deadline; it may have been done"))
	case errors.Is(err, context.Canceled):
		return fault.New(fault.Canceled, "", "", err)
	}
	return sendFault(err)
}

// sendFault is the class of an error of sending, with nothing sent.
func sendFault(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fault.New(fault.Unavailable, "", "", errors.New("nobody serves it"))
	case errors.Is(err, nats.ErrMaxPayload):
		return fault.New(fault.Invalid, "", "", err)
	case errors.Is(err, nats.ErrBadSubject):
		return fault.New(fault.Internal, "", "", err)
	}
	return fault.New(fault.Unavailable, "", "", err)
}

// asks are the calls in flight, by subject: the server names the subject when
// it refuses one, and no more.
type asks struct {
	mu   sync.Mutex
	open map[string]map[*ask]struct{}
}

type ask struct{ end context.CancelCauseFunc }

func (a *asks) begin(ctx context.Context, subject string) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	one := &ask{end}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[subject] == nil {
		a.open[subject] = map[*ask]struct{}{}
	}
	a.open[subject][one] = struct{}{}
	return ctx, func() {
		end(context.Canceled)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.open[subject], one)
		if len(a.open[subject]) == 0 {
			delete(a.open, subject)
		}
	}
}

// deny ends every call to subject.
func (a *asks) deny(subject string, cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for one := range a.open[subject] {
		one.end(errDenied{fmt.Errorf("this user may not: %w", cause)})
	}
}
