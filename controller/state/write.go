package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/mesh/bucket"
)

const (
	// glimpse is how long it is looked for a commit whose answer did not come, and
	// it goes on beyond the end of the caller's context.
	glimpse = 3 * time.Second
	// again is how long it takes until the next try.
	again = 50 * time.Millisecond
)

// write commits writes when the bucket is exactly at sequence, and returns the
// revision of the last. When it is not known whether they landed it looks, and
// as long as nobody wrote it sends them again: what is still on its way and what
// is sent now expect the same, so only one of them can land, and both say the same.
func (s *Store) write(ctx context.Context, sequence uint64, writes []bucket.Write[[]byte]) (uint64, error) {
	if ctx.Err() != nil {
		return 0, fault.New(fault.Unavailable, "commit", "mesh state", fmt.Errorf("nothing was done: %w", ctx.Err()))
	}
	last := sequence + uint64(len(writes))
	for unknown := false; ; {
		at, err := s.bucket.CommitAt(ctx, sequence, writes)
		class := fault.ClassOf(err)
		switch {
		case err == nil && at != last:
			return 0, fault.New(fault.Failed, "commit", "mesh state", fmt.Errorf("it stands at revision %d, not %d", at, last))
		case err == nil:
			return at, nil
		case class != fault.Timeout && class != fault.Canceled && class != fault.Failed && !unknown:
			return 0, err // it is known that nothing was done
		}
		unknown = true
		fate, lookErr := s.fateOf(ctx, sequence, writes)
		switch {
		case fate == landed:
			return last, nil
		case fate == settled:
			return 0, lookErr
		case fate == open && class == fault.Failed:
			return 0, err
		case !pause(ctx, again):
			return 0, unsure(errors.Join(err, lookErr))
		}
	}
}

// fate is what became of a commit.
type fate int

const (
	unseen  fate = iota // it could not be looked
	open                // nothing was written so far
	landed              // it stands
	settled             // it does not and never will, or nobody can tell: the error says which
)

// fateOf looks what became of writes that were sent for the revisions after
// sequence.
func (s *Store) fateOf(ctx context.Context, sequence uint64, writes []bucket.Write[[]byte]) (fate, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), glimpse)
	defer cancel()
	if err := s.o.Conn.Wait(ctx); err != nil {
		return unseen, err
	}
	f, err := s.bucket.Figures(ctx)
	switch {
	case err != nil:
		return unseen, err
	case f.Revision == sequence:
		return open, nil
	case f.Revision < sequence:
		return settled, fault.New(fault.Failed, "commit", "mesh state", fmt.Errorf("the store went back from revision %d to %d", sequence, f.Revision))
	}
	for i, w := range writes {
		e, err := s.bucket.At(ctx, sequence+1+uint64(i)) //nolint:gosec // an index
		switch {
		case fault.Is(err, fault.NotFound): // written again since
		case err != nil:
			return unseen, err
		case e.Key == w.Key && bytes.Equal(e.Value, w.Value):
			return landed, nil
		default:
			return settled, fault.New(fault.Conflict, "commit", "mesh state", fmt.Errorf("revision %d is somebody else's", e.Revision))
		}
	}
	return settled, unsure(errors.New("all that stood there was written again since"))
}

func unsure(err error) error {
	return fault.New(fault.Timeout, "commit", "mesh state", fmt.Errorf("it may have been done: %w", err))
}
