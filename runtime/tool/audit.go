package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

const (
	// together is how long records are waited for after the first, so that a burst
	// is one write to the disk.
	together = 50 * time.Millisecond
	// maxPending is how many records wait in memory while the spool takes none.
	maxPending = 4096
	// maxBatch is how many events one message carries, and roomOfBatch what it holds
	// besides, in bytes.
	maxBatch    = 500
	roomOfBatch = 1 << 10

	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	sendFor    = 10 * time.Second // bounds one attempt to send
	idle       = 2 * time.Second  // after which the spool's file is tidied
)

// keeper is the durable queue: host/spool.Spool.
type keeper interface {
	Put(events []wire.Event, told map[string][]byte) error
	Next(most, bytes int) ([]wire.Event, error)
	Done()
	Sync() error
}

// AuditOptions of an Audit.
type AuditOptions struct {
	Node  subject.Node
	Spool keeper
	// Send asks a controller to store a batch: the payload of node.v1.NODE.event. It
	// returns nil when all of it is stored.
	Send func(ctx context.Context, payload []byte) error
	// Connected has a token whenever there may be a connection again; may be nil.
	Connected <-chan struct{}
	Logger    *slog.Logger
}

// Audit keeps what was called until a controller has it.
type Audit struct {
	o    AuditOptions
	came chan struct{} // capacity one: there are records
	put  chan struct{} // capacity one: there are events in the spool

	mu      sync.Mutex // guards what follows
	pending []wire.Event
	lost    int
	until   wire.Event // the last one that was lost
}

// NewAudit checks the options and starts nothing.
func NewAudit(o AuditOptions) (*Audit, error) {
	if o.Node == "" || o.Spool == nil || o.Send == nil || o.Logger == nil {
		return nil, fault.New(fault.Internal, "new audit", string(o.Node), errors.New("node, spool, send and logger are required"))
	}
	return &Audit{o: o, came: make(chan struct{}, 1), put: make(chan struct{}, 1)}, nil
}

// Record tells the audit of one call, and returns at once. Beyond 4,096 that are
// not on the disk yet, the oldest are lost, and counted.
func (a *Audit) Record(r Record) { a.Tell(r.Event()) }

// Tell is Record for what is no call of now.
func (a *Audit) Tell(e wire.Event) {
	a.mu.Lock()
	if len(a.pending) == maxPending {
		a.lost, a.until = a.lost+1, a.pending[0]
		a.pending = a.pending[1:]
	}
	a.pending = append(a.pending, e)
	a.mu.Unlock()
	wake(a.came)
}

// Run keeps and sends until ctx ends; what was recorded before then is on the
// disk when it returns nil. It may run once.
func (a *Audit) Run(ctx context.Context) error {
	sent := make(chan struct{})
	go func() { defer close(sent); a.send(ctx) }()
	a.keep(ctx)
	<-sent
	return nil
}

// keep puts what is recorded into the spool.
func (a *Audit) keep(ctx context.Context) {
	retry := time.Duration(0)
	for {
		var again <-chan time.Time
		if retry > 0 {
			again = time.After(retry)
		}
		select {
		case <-a.came:
		case <-again:
		case <-ctx.Done():
			a.putAll(0)
			return
		}
		if retry == 0 && !pause(ctx, together) {
			a.putAll(0)
			return
		}
		retry = a.putAll(retry)
	}
}

// putAll puts what is pending and returns when to try again; 0: nothing is left.
func (a *Audit) putAll(retry time.Duration) time.Duration {
	a.mu.Lock()
	events, lost := a.pending, a.lost
	if lost > 0 {
		events = append([]wire.Event{a.loss(a.until, fmt.Sprintf("%d calls were lost: the disk took none", lost))}, events...)
	}
	a.pending, a.lost = nil, 0
	a.mu.Unlock()
	if len(events) == 0 {
		return 0
	}
	err := a.o.Spool.Put(events, nil)
	if err == nil {
		wake(a.put)
		return 0
	}
	if retry == 0 {
		a.o.Logger.Error("calls cannot be kept on disk", "error", err, "retry", firstRetry)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if lost > 0 {
		events = events[1:]
	}
	events = append(events, a.pending...)
	if over := len(events) - maxPending; over > 0 {
		lost, a.until = lost+over, events[over-1]
		events = events[over:]
	}
	a.pending, a.lost = events, a.lost+lost
	return min(max(2*retry, firstRetry), lastRetry)
}

// loss is the event in place of those that are lost up to last.
func (a *Audit) loss(last wire.Event, text string) wire.Event {
	return wire.Event{ID: last.ID + "+", At: last.At, Source: source, Node: string(a.o.Node), Kind: "lost", Text: cut(text, maxWords)}
}

// send sends what waits in the spool, the oldest first.
func (a *Audit) send(ctx context.Context) {
	fails := 0
	for ctx.Err() == nil {
		events, err := a.o.Spool.Next(maxBatch, wire.MaxPage-roomOfBatch)
		switch {
		case err != nil:
			a.o.Logger.Error("calls cannot be read from disk", "error", err)
			pause(ctx, lastRetry)
			continue
		case len(events) == 0:
			a.rest(ctx)
			continue
		}
		if err = a.sendOne(ctx, events); err == nil {
			if fails > 0 {
				a.o.Logger.Info("calls are told again", "failures", fails)
			}
			a.o.Spool.Done()
			fails = 0
			continue
		}
		if fault.Is(err, fault.Invalid) && ctx.Err() == nil {
			a.refused(events, err)
			continue
		}
		if fails++; fails == 1 && ctx.Err() == nil {
			a.o.Logger.Warn("calls are not told yet", "error", err, "retry", firstRetry)
		}
		if a.again(ctx, fails) {
			fails = 1
		}
	}
}

func (a *Audit) sendOne(ctx context.Context, events []wire.Event) error {
	payload, err := json.Marshal(wire.EventBatch{Wire: wire.Version, Events: events})
	if err != nil {
		return fault.New(fault.Invalid, "write events", "", err)
	}
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	return a.o.Send(ctx, payload)
}

// again waits before the next attempt: with growing delay, or until there is a
// new connection, and then it is true: the delay begins anew, since controllers
// may be a moment behind the servers. A thousand nodes must not come at once.
func (a *Audit) again(ctx context.Context, fails int) bool {
	d := min(firstRetry<<min(fails-1, 10), lastRetry)
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.o.Connected:
		return true
	case <-ctx.Done():
	}
	return false
}

// rest waits for events, and tidies the spool when none come.
func (a *Audit) rest(ctx context.Context) {
	t := time.NewTimer(idle)
	defer t.Stop()
	for {
		select {
		case <-a.put:
			return
		case <-t.C:
			if err := a.o.Spool.Sync(); err != nil {
				a.o.Logger.Error("acknowledged calls stay on disk", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// refused gives up events that a controller will never take, so that those
// behind them get through, and says so.
func (a *Audit) refused(events []wire.Event, cause error) {
	last := events[len(events)-1]
	a.o.Logger.Error("calls were refused by the audit, and are given up", "calls", len(events), "error", cause)
	if last.Kind != "lost" || len(events) > 1 {
		loss := a.loss(last, fmt.Sprintf("%d calls were lost: a controller refused them: %v", len(events), cause))
		if err := a.o.Spool.Put([]wire.Event{loss}, nil); err != nil {
			a.o.Logger.Error("calls cannot be kept on disk", "error", err)
		}
	}
	a.o.Spool.Done()
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pause waits, and reports false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
