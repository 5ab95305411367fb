// Package follow keeps a host's declarations those that the mesh declares for its
// node: it asks controllers, judges their answers by host/accept, makes what it
// accepts durable, and hands it on.
//
// A Follower asks at its start, on every hint, whenever the connection comes or
// goes, and every half minute; after an error sooner, with growing delay. An
// index is taken over whole, in one transaction of the ledger, once every body
// that it names is at hand, or not at all: whatever controllers answer, or do not
// answer, what was accepted before stays in force. The set in force is handed on
// before anything is asked.
//
// Use, in the assembly of a host:
//
//	f, err := follow.New(follow.Options{
//		Trust:   func() accept.Trust { … },       // of the credentials
//		Mesh:    asker,                           // Ask: conn.Call(ctx, subject.ForNode(node, topic), payload)
//		Ledger:  book,                            // *ledger.Ledger
//		Held:    state.Held, Declarations: state.Declarations,
//		Declare: func(ctx, set) error { return loop.Declare(ctx, …) },
//		Reconnected: notify,                      // of conn.Notify
//	})
//	group.Go(func() error { return f.Run(ctx) })
//	conn.Listen(…, func(h) { …; f.Hint(changed.Revision) })
//	f.Source()    // for status and for report batches, at any moment
//	f.Changed()   // has a token when Source says something new
//
// The goroutine of Run owns all state. Hint, Source and Changed may be called
// from any goroutine and do not block. Errors end in Source and, once, in the log.
package follow

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"stead/host/accept"
	"stead/host/fault"
	"stead/mesh/subject"
)

// asker asks controllers about this node. Errors are those of a call over the
// mesh: unavailable and timeout when none answered, anything else as it was
// answered.
type asker interface {
	Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error)
}

// ledger makes an acceptance durable, whole or not at all.
type ledger interface {
	Accept(c accept.Change) error
}

// Options are what a Follower is made of. Trust, Mesh, Ledger, Declare and Logger
// are required.
type Options struct {
	// Trust is called for every turn, so that credentials that were replaced are
	// believed from then on.
	Trust  func() accept.Trust
	Mesh   asker
	Ledger ledger
	// Declare takes the set in force over. It is called in the goroutine of Run, at
	// the start and whenever the set changed; an error ends Run.
	Declare func(ctx context.Context, set Set) error
	// Introduce is called when controllers ask for the node's profile; nil for
	// nobody.
	Introduce func()
	// Machine says which machine this is, and which boot of it, as profiles do; nil
	// for nothing.
	Machine func() (id, boot string)
	// Reconnected has a token whenever the connection may have come or gone; nil
	// for never.
	Reconnected <-chan struct{}
	Logger      *slog.Logger

	// What the ledger holds at the start.
	Held         *accept.Held
	Declarations map[string]accept.Identity

	Interval time.Duration // between questions when all is well; default 30 s, a fifth more or less
	Patience time.Duration // with one question; default 15 s
}

const (
	// gap is how far apart turns begin at least, so that a storm of hints asks ten
	// times a second.
	gap = 100 * time.Millisecond
	// retry is the first delay after an error; it doubles up to the interval.
	retry = time.Second
)

// Follower follows the mesh for one node. Make it with New.
type Follower struct {
	o        Options
	log      *slog.Logger
	holding  accept.Holding
	readings map[string]reading // of what is in force, by name
	bodies   map[string][]byte  // fetched and not accepted yet, by digest
	fails    int                // turns in a row
	ended    time.Time          // of the last turn

	wake    chan struct{}
	changed chan struct{}

	mu       sync.Mutex // guards what follows
	source   Source
	hinted   uint64 // the highest revision that was told since a controller answered
	anyhow   bool   // a hint without a revision was given since the last turn began
	answered uint64 // the revision of the controller that answered last
}

// New reads what the ledger holds, and starts nothing.
func New(o Options) (*Follower, error) {
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 15 * time.Second
	}
	if o.Introduce == nil {
		o.Introduce = func() {}
	}
	holding, err := accept.Open(o.Held, o.Declarations)
	if err != nil {
		return nil, err
	}
	f := &Follower{o: o, log: o.Logger, holding: holding, bodies: make(map[string][]byte),
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	f.stand(o.Trust())
	f.source.Accepted = holding.At
	return f, nil
}

// Hint says that the node's set may have changed with a revision of mesh state;
// 0 is any. It is a reason to ask and nothing else.
func (f *Follower) Hint(revision uint64) {
	f.mu.Lock()
	f.hinted, f.anyhow = max(f.hinted, revision), f.anyhow || revision == 0
	f.mu.Unlock()
	token(f.wake)
}

// Run follows the mesh until ctx ends, and returns nil then. An error is that of
// Options.Declare.
func (f *Follower) Run(ctx context.Context) error {
	if err := f.declare(ctx); err != nil {
		return ended(ctx, err)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
			if f.news() {
				timer.Reset(f.soon())
			}
			continue
		case <-f.o.Reconnected:
			f.fails = 0
			timer.Reset(f.soon())
			continue
		case <-timer.C:
		}
		next, err := f.turn(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		f.ended = time.Now()
		timer.Reset(next)
	}
}

// news reports whether what was told is a reason to ask: a controller that
// answered since knew it already.
func (f *Follower) news() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hinted <= f.answered {
		f.hinted = 0
	}
	return f.anyhow || f.hinted > 0 || f.source.Trouble != "" || f.source.Silence != ""
}

// soon is how long to wait for the next turn when there is a reason for one.
func (f *Follower) soon() time.Duration { return max(0, gap-time.Since(f.ended)) }

// delay is how long to wait after a turn that went wrong.
func (f *Follower) delay() time.Duration {
	d := f.o.Interval
	if f.fails < 16 {
		d = min(d, retry<<f.fails)
	}
	f.fails++
	return jitter(d)
}

// jitter returns d, a fifth more or less, so that nodes that were cut off together
// do not ask together for ever.
func jitter(d time.Duration) time.Duration { return d*4/5 + rand.N(d*2/5+1) }

func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it is what ended
	}
	return fault.New(fault.ClassOf(err), "hand on declarations", "", err)
}
