package mesh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"stead/host/fault"
)

const (
	callHeader    = "Stead-Call"    // of a call: its name, the same for all the times that it is asked
	askedHeader   = "Stead-Asked"   // of a call: how many milliseconds ago it was first asked, when that may have arrived
	answersHeader = "Stead-Answers" // of an answer: to how many askings it is the one answer; 1 when it is not there
)

const (
	maxCall   = 64 // bytes of a call's name
	mostAsked = 24 * time.Hour
	// askAgain is after how long without an answer a call is asked again, and
	// firstAgain after how long when nothing was done; that doubles up to the other.
	askAgain   = 500 * time.Millisecond
	firstAgain = 50 * time.Millisecond
	// doubtAfter is how many times nothing is heard until the peer is asked for a
	// sign of life.
	doubtAfter = 4
)

// insistence is one call, across all the times that it is asked.
type insistence struct {
	c       *Conn
	subject string
	payload []byte
	id      string

	first time.Time // when it was first asked of those that are open
	open  int       // how often it was asked without an answer: it may have been done
	since time.Time // since when it is asked in vain
	why   error     // that nothing was done, the last time that this was said
}

// Insist is Call for as long as it takes: the call has a name, and is asked again
// under it after every loss of the connection and of whoever serves it, each half
// second without an answer, and when nothing was done. A service that still has
// it in hand answers once, and Request.Call and Request.Asked let a handler do it
// once across restarts of its process.
//
// Errors, besides those that the handler answered with: unavailable when for
// Options.Absence, or until the deadline, nothing that was sent can have arrived, and so
// nothing was done; a handler's own unavailable likewise. Timeout when there was
// no answer by the deadline and it may have been done. Denied, invalid and
// canceled as of Call.
func (c *Conn) Insist(ctx context.Context, subject string, payload []byte) ([]byte, error) {
	ctx, cancel := c.patience(ctx)
	defer cancel()
	i := &insistence{c: c, subject: subject, payload: payload, id: rand.Text(), since: time.Now()}
	for {
		s, err := i.session(ctx)
		if err != nil {
			return nil, i.end(ctx, err)
		}
		reply, err := i.on(ctx, s)
		if err == nil {
			return reply.Data, faultIn(reply)
		}
		if !errors.Is(err, errLost) {
			return nil, i.end(ctx, err)
		}
		select {
		case <-s.lost.Done():
		case <-ctx.Done():
		}
		i.since = time.Now()
	}
}

// session waits for a connection. A server that turns the credentials away is not
// waited for: it goes on doing so.
func (i *insistence) session(ctx context.Context) (*Session, error) {
	s, err := i.c.Current()
	if err == nil || fault.Is(err, fault.Denied) {
		return s, err
	}
	if i.open == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, i.since.Add(i.c.absence))
		defer cancel()
	}
	return i.c.Session(ctx)
}

// on asks over one connection until there is an answer that counts. ErrLost says
// that the connection was lost.
func (i *insistence) on(ctx context.Context, s *Session) (*nats.Msg, error) {
	ctx, end := s.Within(ctx)
	defer end()
	ctx, end = i.c.asks.begin(ctx, i.subject)
	defer end()
	inbox, came, leave, err := s.inbox()
	if err != nil {
		return nil, lostOr(err)
	}
	defer leave()
	next := time.NewTimer(0)
	defer next.Stop()
	pause, silent := firstAgain, 0
	for {
		select {
		case <-next.C:
			if err := i.ask(ctx, s, inbox); err != nil {
				return nil, err
			}
			if silent++; silent%doubtAfter == 0 {
				i.c.Doubt()
			}
			next.Reset(askAgain)
		case m := <-came:
			if !i.undone(m) {
				return m, nil
			}
			if i.open == 0 && time.Since(i.since) > i.c.absence {
				return nil, i.why
			}
			silent = 0
			next.Reset(pause)
			pause = min(2*pause, askAgain)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errLost) {
				return nil, errLost
			}
			return nil, callFault(ctx, ctx.Err())
		}
	}
}

// ask sends the call once more.
func (i *insistence) ask(ctx context.Context, s *Session, inbox string) error {
	header := patienceOf(ctx)
	header.Set(callHeader, i.id)
	if i.open > 0 {
		header.Set(askedHeader, strconv.FormatInt(max(1, time.Since(i.first).Milliseconds()), 10))
	}
	m := &nats.Msg{Subject: i.subject, Reply: inbox, Data: i.payload, Header: header}
	if err := i.c.sign(m); err != nil {
		return err
	}
	now := time.Now()
	if err := s.nc.PublishMsg(m); err != nil {
		return lostOr(err)
	}
	if i.open++; i.open == 1 {
		i.first = now
	}
	return nil
}

// undone reports whether an answer says that nothing was done, or that the
// service had to end, and so that the call is to be asked again.
func (i *insistence) undone(m *nats.Msg) bool {
	if m.Header.Get(kindHeader) == kindAgain {
		return true // it stays open
	}
	err := faultIn(m)
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		err = sendFault(nats.ErrNoResponders)
	}
	if !fault.Is(err, fault.Unavailable) {
		return false
	}
	i.why = err
	answers, ok := number(m, answersHeader)
	if !ok {
		answers = 1
	}
	i.open = max(0, i.open-int(min(answers, int64(i.open))))
	return true
}

// lostOr is an error of sending, errLost when there is no connection any more.
func lostOr(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) {
		return errLost
	}
	return sendFault(err)
}

// end is the error of a call that got no answer. Whatever kept it from being asked
// once more, it may have been done when it is open.
func (i *insistence) end(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		err = fault.New(fault.Canceled, "", "", ctx.Err())
	case fault.Is(err, fault.Invalid):
	case i.open > 0 && ctx.Err() != nil:
		err = fault.New(fault.Timeout, "", "", errors.New("no answer by the deadline; it may have been done"))
	case i.open > 0 && !fault.Is(err, fault.Denied):
		err = fault.New(fault.Timeout, "", "", fmt.Errorf("%w; it may have been done", err))
	case ctx.Err() != nil && i.why != nil:
		err = i.why
	case ctx.Err() != nil:
		err = i.c.absent()
	}
	var known *fault.Error
	if errors.As(err, &known) && known.Op != "" {
		return err // the handler's, or that of connecting
	}
	return fault.New(fault.ClassOf(err), "call", i.subject, err)
}
