package bucket

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh"
)

// WatchOptions say how often a watcher doubts. Zero values are the defaults.
type WatchOptions struct {
	// Check is how often the bucket's own figures are held against the copy: its
	// last revision, how many keys it has, when it was made. 0 is 30 s.
	Check time.Duration
	// Reread is how often everything is read anew without a reason. 0 is 1 h.
	Reread time.Duration
}

// Watcher keeps a copy of a whole bucket and says what changed in it. It reads
// everything anew after each connect, when the bucket was made anew or its
// sequence went back, when its figures do not fit the copy, and from time to
// time; then what differs counts as changed, and what vanished as gone. So a
// restart of the server, a restore, or a purge by hand may delay a change and
// never hides it. A commit becomes visible whole.
type Watcher[T any] struct {
	b     *Bucket[T]
	o     WatchOptions
	view  *view[T]
	again chan struct{} // capacity one
}

// NewWatcher makes a watcher, which knows nothing until Run runs.
func NewWatcher[T any](b *Bucket[T], o WatchOptions) *Watcher[T] {
	for d, other := range map[*time.Duration]time.Duration{&o.Check: 30 * time.Second, &o.Reread: time.Hour} {
		if *d == 0 {
			*d = other
		}
	}
	return &Watcher[T]{b: b, o: o, view: newView[T](), again: make(chan struct{}, 1)}
}

// Reread asks for a whole new reading, for a doubt that only the caller can have.
// It does not block; Status().Readings rises when it was done.
func (w *Watcher[T]) Reread() {
	select {
	case w.again <- struct{}{}:
	default:
	}
}

// errReread ends a reading of the bucket in favour of a new one.
type errReread struct{ why string }

func (e errReread) Error() string { return e.why }

// These bring no doubt of the connection about: the copy stays current.
var (
	errTime  = errReread{"it is time"}
	errAsked = errReread{"its contents are doubted"}
)

// Run follows the bucket until ctx ends, and returns nil then. Whatever goes
// wrong is in Status and in the log, and is tried again. An error means that the
// connection was closed for good.
func (w *Watcher[T]) Run(ctx context.Context) error {
	for n := 0; ctx.Err() == nil; n++ {
		s, err := w.b.conn.Session(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is what ended
		case err != nil:
			w.view.lost(err)
			return err
		}
		before := w.Status().Readings
		err = w.follow(ctx, s)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it is what ended
		}
		var reread errReread
		if !errors.Is(err, errTime) && !errors.Is(err, errAsked) {
			w.view.lost(err)
		}
		switch {
		case errors.As(err, &reread):
			w.b.o.Logger.Info("bucket is read anew", "bucket", w.b.o.Name, "reason", reread.why)
		case n&(n-1) == 0: // the first, the second, the fourth and so on
			w.b.o.Logger.Warn("bucket is not followed", "bucket", w.b.o.Name, "error", err, "attempt", n+1)
		}
		if w.Status().Readings > before {
			n = 0
		}
		pause(ctx, min(20*time.Millisecond<<min(n, 10), 2*time.Second))
	}
	return nil
}

// follow reads everything and goes on with what comes, until the connection or
// the trust in the copy is lost.
func (w *Watcher[T]) follow(ctx context.Context, s *mesh.Session) error {
	ctx, cancel := s.Within(ctx)
	defer cancel()
	ctx, end := w.interrupted(ctx)
	defer end()
	err := w.read(ctx, s)
	if errors.Is(context.Cause(ctx), errAsked) {
		return errAsked
	}
	return err
}

func (w *Watcher[T]) read(ctx context.Context, s *mesh.Session) error {
	r, err := w.open(ctx, s)
	if err != nil {
		return err
	}
	defer r.close()
	check, reread := time.Now().Add(around(w.o.Check)), time.Now().Add(around(w.o.Reread))
	for {
		if err := r.next(ctx, check); err != nil {
			return err
		}
		now := time.Now()
		if now.After(reread) && r.whole {
			return errTime
		}
		if now.After(check) {
			if err := r.check(ctx); err != nil {
				return err
			}
			check = now.Add(around(w.o.Check))
		}
	}
}

// interrupted returns a context that ends with errAsked when a new reading is
// asked for. What was asked before is done by the reading that begins. The caller
// calls the function when it is done.
func (w *Watcher[T]) interrupted(ctx context.Context) (context.Context, func()) {
	select {
	case <-w.again:
	default:
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case <-w.again:
			cancel(errAsked)
		case <-ctx.Done():
		}
	})
	return ctx, func() { cancel(context.Canceled); wait.Wait() }
}

// around is d, a fifth more or less, so that many do not come at once.
func around(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5+1) }

// lostSession is the error of a follow whose connection went.
func lostSession(ctx context.Context) error {
	return fault.New(fault.Unavailable, "", "", context.Cause(ctx))
}
