package mesh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
)

// maxFollows is how many streams one connection follows at one time: each has a
// subscription of its own, of which the server allows a connection so many.
const maxFollows = 256

// Chunk is one message of a stream. Cursor says where the stream goes on behind
// it.
type Chunk struct {
	Payload []byte
	Cursor  string
}

// FollowOptions say what is followed and who takes it.
type FollowOptions struct {
	// Cursor is behind what the caller has already, "" to begin as the request
	// says.
	Cursor string
	// Request makes the payload of the call, for the stream behind cursor. It is
	// called once for each time that the call is made.
	Request func(cursor string) []byte
	// Take is given each chunk, one after the other, in the goroutine of Follow.
	// While it is busy nothing beyond Window is sent. An error of it ends the
	// stream and is returned as it is.
	Take func(Chunk) error

	Window   int           // bytes on the way and not taken, one message more at most; 0 is 256 KiB
	Patience time.Duration // how long a stream that was lost is asked for again; 0 is a minute, below 0 for ever
	// Lost is told why the stream was lost and is being asked for again, before
	// each attempt but the first; nil: nobody is. A stream that is only renewed
	// is not lost.
	Lost func(error)
}

// Follow calls the verb of one node at subject for a stream, hands each of its
// chunks to Take, and returns nil when the handler says that it is at its end.
// When the stream is lost, by a server that restarts or a node that is gone for a
// while, it is asked for again behind the last chunk that Take was given:
// nothing is lost, and nothing comes twice.
//
// Errors: what Take returned; canceled or timeout when ctx ends, which ends the
// handler too, within a second; those of Call for the first attempt, at once;
// later ones only when Patience is over. Any other error of the handler ends
// it: what Take was given before stands. Refused: the connection follows 256
// streams.
func (c *Conn) Follow(ctx context.Context, subject string, o FollowOptions) error {
	if o.Request == nil || o.Take == nil {
		return fault.New(fault.Internal, "follow", subject, errors.New("a request and a taker are required"))
	}
	if o.Window <= 0 {
		o.Window = firstWindow
	}
	o.Patience = orElse(o.Patience, time.Minute)
	if n := c.follows.Add(1); n > maxFollows {
		c.follows.Add(-1)
		return fault.New(fault.Refused, "follow", subject, fmt.Errorf("this connection follows %d streams, and may not more", maxFollows))
	}
	defer c.follows.Add(-1)
	f := &follower{c: c, subject: subject, o: o, cursor: o.Cursor}
	return f.run(ctx)
}

// follower follows one stream across attempts.
type follower struct {
	c       *Conn
	subject string
	o       FollowOptions
	cursor  string    // behind the last chunk that was taken
	good    time.Time // when a handler was last heard; zero: never
}

// errAgain is why an attempt ended that the handler wants to be made anew.
var errAgain = errors.New("the handler had to end")

// takerError is an error of Take.
type takerError struct{ error }

func (f *follower) run(ctx context.Context) error {
	for n := 1; ; n++ {
		before, start := f.good, time.Now()
		err := f.attempt(ctx)
		var taker takerError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &taker):
			return taker.error
		case ctx.Err() != nil:
			return fault.New(endClass(ctx), "follow", f.subject, ctx.Err())
		case f.c.life.Err() != nil, !f.resumes(err):
			return f.last(err)
		}
		if f.good.After(before) {
			n = 0
		}
		if errors.Is(err, errAgain) && time.Since(start) > time.Second {
			continue // renewed
		}
		if fault.Is(err, fault.Timeout) {
			f.c.Doubt()
		}
		if f.o.Lost != nil {
			f.o.Lost(err)
		}
		wait(ctx, delay(n))
	}
}

// last is the error that ends a stream: the handler's own as it is.
func (f *follower) last(err error) error {
	var known *fault.Error
	if errors.As(err, &known) && known.Op != "" {
		return err
	}
	return fault.New(fault.ClassOf(err), "follow", f.subject, err).WithHint(fault.HintOf(err))
}

// resumes reports whether the stream is asked for again after err.
func (f *follower) resumes(err error) bool {
	switch {
	case f.good.IsZero():
		return errors.Is(err, errAgain)
	case !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Timeout):
		return false
	}
	return f.o.Patience < 0 || time.Since(f.good) < f.o.Patience
}

// endClass is the class of what a ctx that has ended stops.
func endClass(ctx context.Context) fault.Class {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Timeout
	}
	return fault.Canceled
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// session is the connection of an attempt: the first is made at once or not at
// all, later ones wait for a connection while there is patience.
func (f *follower) session(ctx context.Context) (*Session, error) {
	if f.good.IsZero() {
		return f.c.Current()
	}
	if f.o.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, f.good.Add(f.o.Patience))
		defer cancel()
	}
	return f.c.Session(ctx)
}
