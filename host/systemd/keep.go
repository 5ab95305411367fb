package systemd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
)

const (
	backoffFirst = 50 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// owner is told what becomes of the connection that a keeper keeps.
type owner interface {
	opening(*link) // before anybody can use it
	opened()
	closing(*link) // while somebody may still use it
	closed()
}

// keeper keeps one connection and lends it out.
type keeper struct {
	what    string // for logs and errors: "the service manager"
	address string
	wait    time.Duration // how long a call waits for a connection
	log     *slog.Logger
	dial    func(context.Context) (*link, error)
	owner   owner
	told    func(error)     // Options.Dialed; may be nil
	redial  <-chan struct{} // Options.Redial; may be nil

	mu        sync.Mutex
	link      *link         // nil while there is no connection
	connected chan struct{} // closed when link is set; replaced when it is lost
	dialErr   error         // why the last dial did not succeed
	said      []string      // why dials since the last connection did not
}

// run keeps the connection until ctx ends. It redials for ever, from
// backoffFirst doubling to backoffMost; a connection that answered and lived for
// a second starts the delay anew.
func (k *keeper) run(ctx context.Context) {
	delay := time.Duration(0)
	for ctx.Err() == nil {
		l, err := k.dial(ctx)
		if err == nil {
			born := time.Now()
			k.serve(ctx, l)
			if time.Since(born) > time.Second {
				delay = 0
			}
		} else if ctx.Err() == nil {
			k.refused(err, delay)
		}
		if delay > 0 || err != nil {
			delay = min(max(2*delay, backoffFirst), backoffMost)
			if k.pause(ctx, delay) {
				delay = 0
			}
		} else {
			delay = backoffFirst / 2 // the first redial after a loss is at once
		}
	}
}

// serve makes l the connection until it is lost or ctx ends.
func (k *keeper) serve(ctx context.Context, l *link) {
	k.owner.opening(l)
	k.mu.Lock()
	k.link, k.dialErr, k.said = l, nil, nil
	close(k.connected)
	k.mu.Unlock()
	k.owner.opened()
	k.tell(nil)
	k.log.Info("connected to "+k.what, "address", k.address)
	select {
	case <-l.lost():
	case <-ctx.Done():
	}
	why := errLost
	if l.ended != nil {
		why = l.ended(errLost)
	}
	l.drop(why)
	k.owner.closing(l)
	k.mu.Lock()
	k.link = nil
	k.connected = make(chan struct{})
	k.mu.Unlock()
	k.owner.closed()
	if ctx.Err() == nil {
		k.tell(l.cause)
		k.log.Warn("lost "+k.what, "reason", l.cause)
	}
}

// tell says how a dial or a connection ended.
func (k *keeper) tell(err error) {
	if k.told != nil {
		k.told(err)
	}
}

// pause waits before the next dial, and reports whether it was cut short because
// that is worth while at once.
func (k *keeper) pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-k.redial:
		return true
	}
	return false
}

// mostSaid is how many reasons for not being connected are logged. One who is hung
// may fail at another step each time.
const mostSaid = 8

// refused logs each reason once.
func (k *keeper) refused(err error, delay time.Duration) {
	k.tell(err)
	k.mu.Lock()
	text := err.Error()
	first := len(k.said) < mostSaid && !slices.Contains(k.said, text)
	if k.dialErr = err; first {
		k.said = append(k.said, text)
	}
	k.mu.Unlock()
	if first {
		k.log.Warn("cannot reach "+k.what, "address", k.address, "err", err, "retry", delay)
	}
}

func (k *keeper) up() bool { return k.current() != nil }

// current is the connection, nil while there is none.
func (k *keeper) current() *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link
}

// using returns the connection, waiting for one for at most k.wait.
func (k *keeper) using(ctx context.Context, op string) (*link, error) {
	if err := ctx.Err(); err != nil {
		return nil, looking(op, "", err)
	}
	var timeout <-chan time.Time
	for {
		k.mu.Lock()
		l, connected := k.link, k.connected
		k.mu.Unlock()
		if l != nil {
			return l, nil
		}
		if timeout == nil {
			t := time.NewTimer(k.wait)
			defer t.Stop()
			timeout = t.C
		}
		select {
		case <-connected:
		case <-ctx.Done():
			return nil, looking(op, "", ctx.Err())
		case <-timeout:
			return nil, fault.New(fault.Unavailable, op, k.address, k.whyNot())
		}
	}
}

// whyNot says why there is no connection.
func (k *keeper) whyNot() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dialErr != nil {
		return k.dialErr
	}
	return errors.New("no connection to " + k.what + " yet")
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
