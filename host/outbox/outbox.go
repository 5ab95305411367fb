// Package outbox tells controllers how a node stands: reports, the events that
// follow from them, and the node's profile.
//
// Reports are the state of now: only those that changed are sent, in numbered
// batches that a controller puts one on another (wire.ReportBatch), and after a
// time without a connection only what differs from what was acknowledged.
// Events are what happened: each step that was taken and each outcome that came
// about, once, with the time when it did. They wait in a spool on disk until a
// controller has acknowledged them. The profile goes out at the start, in each
// new connection, when it changed, and every hour.
//
// The package owns none of that: it reads the loop's reports, the spool and the
// connection through what Options hand it, decides nothing about units, and
// never holds up who publishes reports.
//
// New starts nothing; Run blocks until its context ends. Source and Profile are
// called from goroutines of Run and must not block. Errors end in the log, once
// for each time that sending begins to fail, and are tried again with growing
// delay, at once in a new connection.
package outbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/report"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// link is the way to the controllers.
type link interface {
	// Ask asks a topic of this node, and returns the answer.
	Ask(ctx context.Context, t subject.Topic, payload []byte) ([]byte, error)
	// Session is another number in each connection, and 0 without one.
	Session() uint64
	// Notify has a token whenever Session may have changed, and one at once.
	Notify() (wake <-chan struct{}, stop func())
}

// memory is the durable note of what was told, and where events are put.
type memory interface {
	Put(events []wire.Event, told map[string][]byte) error
	Told() (map[string][]byte, error)
}

// queue is where events wait.
type queue interface {
	Next(most, bytes int) ([]wire.Event, error)
	Done()
	Sync() error
	Len() int
}

// store is both: a spool.
type store interface {
	memory
	queue
}

// Options are what an Outbox is made of. All but Removed are required.
type Options struct {
	Node      func() string // the name of this node
	Link      link
	Spool     store
	Reports   func() []*report.Report // how everything stands; shared, not changed
	Published <-chan struct{}         // a token when Reports are others; none before the first
	Source    func() wire.Source
	Profile   func() wire.Profile
	// Removed is told, after each profile that was sent, whether the node was
	// removed from the mesh, by whom and when; "" when it was not.
	Removed func(string)
	Logger  *slog.Logger
}

// Outbox sends. Make it with New.
type Outbox struct {
	o       Options
	run     string        // tells this process's reports and events from those of others
	looked  chan struct{} // token: reports or source changed
	derived chan struct{} // token: reports were published
	put     chan struct{} // token: events were put
	profile chan struct{} // token: the profile changed

	mu    sync.Mutex // guards what follows
	given []*report.Report
	notes []note
}

// note is something that happened to no declaration.
type note struct {
	at         time.Time
	kind, text string
}

// New returns an outbox that has sent nothing.
func New(o Options) *Outbox {
	if o.Removed == nil {
		o.Removed = func(string) {}
	}
	var b [8]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	token := func() chan struct{} { return make(chan struct{}, 1) }
	return &Outbox{o: o, run: hex.EncodeToString(b[:]), looked: token(), derived: token(), put: token(), profile: token()}
}

// SourceChanged says that what Source returns is other than before.
func (b *Outbox) SourceChanged() {
	wake(b.looked)
	wake(b.derived)
}

// GivenBack takes in that nothing is left to do of a withdrawn declaration: a
// report that holds whose it was, its last steps and, as Since, when. It blocks
// nobody. It is called before the reports without it are published.
func (b *Outbox) GivenBack(r *report.Report) {
	b.mu.Lock()
	b.given = append(b.given, r)
	b.mu.Unlock()
	wake(b.derived)
}

// Note tells of something that happened to no one declaration: an event of a kind,
// and one sentence. It blocks nobody.
func (b *Outbox) Note(kind, text string) {
	b.mu.Lock()
	b.notes = append(b.notes, note{time.Now(), kind, text})
	b.mu.Unlock()
	wake(b.derived)
}

// takeNotes returns what was noted since it was last called.
func (b *Outbox) takeNotes() []note {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.notes
	b.notes = nil
	return all
}

// takeGiven returns what was given back since it was last called.
func (b *Outbox) takeGiven() []*report.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.given
	b.given = nil
	return all
}

// ProfileChanged says that what Profile returns is other than before.
func (b *Outbox) ProfileChanged() { wake(b.profile) }

// Run sends until ctx ends, and returns nil then. It sends nothing before the
// first token of Published, but the profile.
func (b *Outbox) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return b.sendProfile(ctx) })
	group.Go(func() error {
		select {
		case <-b.o.Published:
		case <-ctx.Done():
			return nil
		}
		group.Go(func() error { return b.derive(ctx) })
		group.Go(func() error { return b.sendEvents(ctx) })
		group.Go(func() error { return b.sendReports(ctx) })
		for {
			b.SourceChanged()
			select {
			case <-b.o.Published:
			case <-ctx.Done():
				return nil
			}
		}
	})
	return group.Wait()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits until ctx ends, which it reports as false, or one of the others.
func pause(ctx context.Context, d time.Duration, wakes ...<-chan struct{}) bool {
	var first, second <-chan struct{}
	if len(wakes) > 0 {
		first = wakes[0]
	}
	if len(wakes) > 1 {
		second = wakes[1]
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-first:
	case <-second:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
