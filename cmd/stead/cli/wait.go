package cli

import (
	"context"
	"errors"
	"time"

	"stead/host"
	"stead/host/fault"
)

const (
	// held is for how long all must be converged before a wait is over: a file
	// that was just written is noticed well within it.
	held = time.Second
	// between is the time from one question to the next.
	between = 100 * time.Millisecond
)

// await reads until what it reads has been wanted for held, or bound is over; it
// returns the last answer then. A host that is not there yet is waited for.
func await(ctx context.Context, bound time.Duration, read func() (host.Status, error)) (host.Status, error) {
	end := time.Now().Add(bound)
	var since time.Time
	for {
		st, err := read()
		now := time.Now()
		switch good := err == nil && wanted(st); {
		case !good:
			since = time.Time{}
		case since.IsZero():
			since = now
		case now.Sub(since) >= held:
			return st, nil
		}
		if err != nil && !fault.ClassOf(err).Retry() && !fault.Is(err, fault.NotFound) || !now.Before(end) && since.IsZero() {
			return st, err
		}
		timer := time.NewTimer(between)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return st, fault.New(fault.Canceled, "wait", "", errors.New("interrupted before all was converged"))
		}
	}
}
