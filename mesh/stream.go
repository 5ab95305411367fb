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
	"stead/mesh/subject"
)

// Streamer answers a call of Conn.Follow with a stream. It may go on for as long
// as ctx does: ctx ends within a second of the caller's going, when the
// connection is lost, when the service has to end, and after Endpoint.Life, when
// a caller that is still there asks again behind the last chunk. Nil means that
// the stream is at its end; an error reaches the caller as that of a Handler
// does. A panic costs this one stream.
type Streamer func(ctx context.Context, r Request, s *Stream) error

// Stream is the handler's end of a stream. Its methods are called from one
// goroutine at a time.
type Stream struct {
	e   *endpoint
	j   *job
	ctx context.Context
	end context.CancelCauseFunc

	more chan struct{} // capacity one: credit came

	mu      sync.Mutex
	heard   time.Time // the caller's last word
	said    time.Time // ours
	sent    int64     // chunks
	spent   int64     // of the credit
	granted int64
	closed  bool // the end was said
}

// Why a stream ends before its handler does.
var (
	errCallerGone   = errors.New("the caller is gone")
	errCallerCancel = errors.New("the caller canceled")
	errLifeOver     = errors.New("the stream has lasted as long as one may")
	errStreamsStop  = errors.New("the service is stopping")
)

// Send hands one chunk to the caller, and waits until the caller has room for it:
// until then nothing more should be read of what it is made from. Cursor says
// where to go on behind this chunk, 1 to 1,024 printable characters of ASCII
// without blanks. Chunks arrive whole, in this order, each once.
//
// Errors: canceled when the stream has ended; failed when payload has more bytes
// than Limit; internal when the cursor breaks its rule.
func (s *Stream) Send(payload []byte, cursor string) error {
	if err := checkCursor(cursor); err != nil {
		return fault.New(fault.Internal, "send", s.e.Name, err)
	}
	if limit := s.Limit(); len(payload) > limit {
		return fault.New(fault.Failed, "send", s.e.Name, fmt.Errorf("chunk of %d bytes; at most %d", len(payload), limit))
	}
	if err := s.Ready(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.publish(kindChunk, payload, cursor); err != nil {
		return fault.New(fault.Canceled, "send", s.e.Name, err)
	}
	s.sent++
	s.spent += int64(len(payload)) + chunkCost
	return nil
}

// Ready waits until the caller has room for a chunk. The error is canceled when
// the stream has ended.
func (s *Stream) Ready() error {
	for {
		s.mu.Lock()
		room := s.spent < s.granted
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return fault.New(fault.Canceled, "send", s.e.Name, context.Cause(s.ctx))
		case room:
			return nil
		}
		select {
		case <-s.more:
		case <-s.ctx.Done():
		}
	}
}

// Limit is how many bytes a chunk may have.
func (s *Stream) Limit() int { return s.e.limit() }

// publish says something to the caller. The lock is held: what is said is said
// in order.
func (s *Stream) publish(kind string, payload []byte, cursor string) error {
	if s.closed {
		return context.Cause(s.ctx)
	}
	m := &nats.Msg{Data: payload, Header: s.heading(kind)}
	if cursor != "" {
		m.Header[cursorHeader] = []string{cursor}
	}
	s.said = time.Now()
	return s.j.m.RespondMsg(m)
}

func (s *Stream) heading(kind string) nats.Header {
	return nats.Header{kindHeader: []string{kind}, seqHeader: []string{strconv.FormatInt(s.sent, 10)}}
}

// close makes reply the last word of the stream.
func (s *Stream) close(reply *nats.Msg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := kindEnd
	if cause := context.Cause(s.ctx); s.ctx.Err() != nil && !errors.Is(cause, errCallerCancel) {
		kind = kindAgain
	}
	for key, texts := range s.heading(kind) {
		reply.Header[key] = texts
	}
	s.closed = true
}

// hear takes a control message. Only the caller of this stream, as the server
// states it, is heard.
func (s *Stream) hear(m *nats.Msg) {
	caller, err := s.e.s.c.caller(m, s.e.Accounts)
	if err == nil && caller != s.j.r.Caller {
		err = fault.New(fault.Denied, "control", caller.Name, errors.New("the stream is another's"))
	}
	var c control
	if err == nil {
		c, err = readControl(m.Data)
	}
	if err != nil {
		s.e.drop(m, err)
		return
	}
	if c.Cancel {
		s.end(errCallerCancel)
		return
	}
	s.grant(c.Grant)
}

// grant notes what the caller has granted in all, and that it lives.
func (s *Stream) grant(all int64) {
	s.mu.Lock()
	s.heard = time.Now()
	s.granted = max(s.granted, min(all, s.spent+maxWindow))
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// watch ends the stream when its caller is silent or its life is over, and says
// something when nothing was said for a while.
func (s *Stream) watch() {
	tick := time.NewTicker(callerSilence / 16)
	defer tick.Stop()
	life := time.NewTimer(s.e.Life)
	defer life.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-life.C:
			s.end(errLifeOver)
		case now := <-tick.C:
			s.mu.Lock()
			if now.Sub(s.heard) > callerSilence {
				s.end(errCallerGone)
			} else if now.Sub(s.said) > beatEvery {
				_ = s.publish(kindBeat, nil, "") // a connection that is lost ends the stream
			}
			s.mu.Unlock()
		}
	}
}

// controlOf is the control subject of a stream: of the verb that was called, on
// the node that serves it.
func controlOf(called, token string) (string, error) {
	a, err := subject.Parse(called)
	switch {
	case err != nil:
		return "", err
	case a.Verb == "", a.Node == subject.All:
		return "", fault.New(fault.Invalid, "follow", called, errors.New("only a verb of one node can be followed"))
	}
	return subject.ForControl(a.Node, a.Seat, token)
}
