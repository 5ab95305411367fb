package outbox

import (
	"context"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

const (
	// together is how long news are waited for before events are made of them:
	// from the first, so that the loop's reports, which hold the last few steps,
	// are read in time.
	together = 100 * time.Millisecond
	// most is how many events one message carries.
	most = 500
	// roomOfBatch is what a batch holds besides its events, in bytes.
	roomOfBatch = 1 << 10
	// idle is how long nothing happens before the spool's file is tidied.
	idle = 2 * time.Second
	// maxPending is how many events wait in memory while the spool takes none.
	maxPending = 2000
)

// derive makes events of what the loop published, and puts them into the spool.
func (b *Outbox) derive(ctx context.Context) error {
	n := 0
	id := func() string { n++; return fmt.Sprintf("%s.%s.%d", b.o.Node(), b.run, n) }
	notes, err := b.o.Spool.Told()
	if err != nil {
		b.o.Logger.Error("what was told before is not known, all is told anew", "error", err)
	}
	t := newTeller(id, b.o.Node, notes)
	p := &pending{notes: map[string][]byte{}}
	retry := time.Duration(0)
	for {
		var again <-chan time.Time
		if retry > 0 {
			again = time.After(retry)
		}
		select {
		case <-b.derived:
		case <-again:
		case <-ctx.Done():
			return b.last(t, p)
		}
		if !pause(ctx, together) {
			return b.last(t, p)
		}
		b.collect(t, p)
		retry = b.putAll(p, retry)
	}
}

// last puts what happened up to the end.
func (b *Outbox) last(t *teller, p *pending) error {
	b.collect(t, p)
	b.putAll(p, 0)
	return nil
}

// collect makes events of what is new.
func (b *Outbox) collect(t *teller, p *pending) {
	p.add(t.tell(news{given: b.takeGiven(), notes: b.takeNotes(), reports: b.o.Reports(), trouble: b.o.Source().Trouble, now: time.Now()}))
}

// putAll puts what is pending and returns when to try again; 0: nothing is left.
func (b *Outbox) putAll(p *pending, retry time.Duration) time.Duration {
	events := p.events
	if p.lost > 0 {
		events = append([]wire.Event{p.loss()}, events...)
	}
	err := b.o.Spool.Put(events, p.notes)
	if err == nil {
		if len(events) > 0 {
			wake(b.put)
		}
		*p = pending{notes: map[string][]byte{}}
		return 0
	}
	p.trim()
	if retry == 0 {
		b.o.Logger.Error("events cannot be kept on disk", "error", err, "retry", firstRetry)
	}
	return min(max(2*retry, firstRetry), lastRetry)
}

// pending are events that are not in the spool yet.
type pending struct {
	events []wire.Event
	notes  map[string][]byte
	lost   int
	until  wire.Event // the last one that was lost
}

func (p *pending) add(events []wire.Event, notes map[string][]byte) {
	p.events = append(p.events, events...)
	for key, note := range notes {
		p.notes[key] = note
	}
}

// trim forgets the oldest of what the spool did not take, when they are too many:
// what happens to a thousand units at once is more, and goes to a spool that is
// well.
func (p *pending) trim() {
	if over := len(p.events) - maxPending; over > 0 {
		p.lost, p.until = p.lost+over, p.events[over-1]
		p.events = append([]wire.Event{}, p.events[over:]...)
	}
}

func (p *pending) loss() wire.Event {
	e := p.until
	return wire.Event{ID: e.ID + "+", At: e.At, Source: e.Source, Node: e.Node, Kind: "lost",
		Text: fmt.Sprintf("%d events were lost: the disk took none", p.lost)}
}

// sendEvents sends what waits in the spool, the oldest first.
func (b *Outbox) sendEvents(ctx context.Context) error {
	changed, stop := b.o.Link.Notify()
	defer stop()
	l := &line{topic: subject.Event, link: b.o.Link, log: b.o.Logger}
	for l.connected(ctx, changed) {
		events, err := b.o.Spool.Next(most, wire.MaxPage-roomOfBatch)
		if err != nil {
			b.o.Logger.Error("events cannot be read from disk", "error", err)
			pause(ctx, lastRetry)
			continue
		}
		if len(events) == 0 {
			b.rest(ctx, changed)
			continue
		}
		err = l.ask(ctx, wire.EventBatch{Wire: wire.Version, Events: events}, &wire.EventReply{})
		switch {
		case err == nil:
			b.o.Spool.Done()
		case fault.Is(err, fault.Invalid) && ctx.Err() == nil:
			b.refused(events, err)
		}
	}
	return nil
}

// rest waits for events, and tidies the spool when none come.
func (b *Outbox) rest(ctx context.Context, changed <-chan struct{}) {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case <-b.put:
			return
		case <-changed:
			return
		case <-timer.C:
			if err := b.o.Spool.Sync(); err != nil {
				b.o.Logger.Error("acknowledged events stay on disk", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// refused gives up events that a controller will never take, so that those
// behind them get through, and says so.
func (b *Outbox) refused(events []wire.Event, cause error) {
	last := events[len(events)-1]
	b.o.Logger.Error("events were refused, and are given up", "events", len(events), "error", cause)
	if last.Kind == "lost" && len(events) == 1 {
		b.o.Spool.Done() // that some were lost is no better news
		return
	}
	loss := wire.Event{ID: last.ID + "+", At: last.At, Source: last.Source, Node: last.Node, Kind: "lost",
		Text: short(fmt.Sprintf("%d events were lost: a controller refused them: %v", len(events), cause))}
	if err := b.o.Spool.Put([]wire.Event{loss}, nil); err != nil {
		b.o.Logger.Error("events cannot be kept on disk", "error", err)
	}
	b.o.Spool.Done()
}
