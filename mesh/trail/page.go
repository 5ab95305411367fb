package trail

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/wire"
)

const (
	// MaxLast is how many of the newest events may be asked for at once.
	MaxLast = 1000
	// maxWait is how long a page waits for its first event.
	maxWait = 20 * time.Second
	// glance is how often a page that waits looks for what others appended.
	glance = 250 * time.Millisecond
	// maxScan bounds how many events are looked at for one page.
	maxScan = 20000
	// chunk is how many events are read at one time.
	chunk = 500
)

// Page answers a request for events; it waits for r.Wait at most when there is
// none. Next is the place behind everything that was looked at, also of what
// does not fit the request. A page ends at wire.MaxPage, or after so many events
// that it would take long: then More is set, and it may be empty.
//
// Since is held against what an event says of itself; what was stored before it is
// not looked at, so the clocks of nodes should be right.
func (t *Trail) Page(ctx context.Context, r wire.EventsRequest) (wire.EventsReply, error) {
	if _, err := subjectOf(r.Node); err != nil {
		return wire.EventsReply{}, err
	}
	until := time.Now().Add(min(time.Duration(max(0, r.Wait))*time.Second, maxWait))
	for {
		t.mu.Lock()
		moved := t.moved
		t.mu.Unlock()
		reply, err := t.look(ctx, r)
		if err != nil {
			return wire.EventsReply{}, fault.New(fault.ClassOf(err), "read events", stream, err)
		}
		left := time.Until(until)
		if len(reply.Events) > 0 || reply.More || left <= 0 || ctx.Err() != nil {
			return reply, nil //nolint:nilerr // what is there now is the answer
		}
		// What was looked at now is not looked at again.
		if r.After = max(r.After, reply.Next); r.After > 0 {
			r.Last = 0
		}
		await(ctx, moved, min(left, glance/2+rand.N(glance)))
	}
}

func await(ctx context.Context, moved <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-moved:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// look makes a page of what is there now.
func (t *Trail) look(ctx context.Context, r wire.EventsRequest) (wire.EventsReply, error) {
	s, err := t.conn.Current()
	if err != nil {
		return wire.EventsReply{}, err
	}
	var info jetstream.StreamInfo
	if err := api(ctx, s, "STREAM.INFO."+stream, struct{}{}, &info); err != nil {
		return wire.EventsReply{}, err
	}
	first, last := info.State.FirstSeq, info.State.LastSeq
	if r.After > last { // the stream is another one, or lost its end
		r.After = last
	}
	if r.After == 0 && r.Last > 0 {
		return newest(ctx, s, r, first, last)
	}
	return forwards(ctx, s, r, max(first, r.After+1), last)
}

// forwards reads what fits r from the event at from to the one at last.
func forwards(ctx context.Context, s *mesh.Session, r wire.EventsRequest, from, last uint64) (wire.EventsReply, error) {
	p := page{reply: wire.EventsReply{Next: max(r.After, from-1)}}
	var start time.Time
	if r.After == 0 { // what was stored before cannot have happened since
		start = r.Since
	}
	for looked := 0; from <= last; {
		some, err := read(ctx, s, ask{from: from, node: r.Node, since: start, count: chunk})
		if err != nil {
			return wire.EventsReply{}, err
		}
		for _, e := range some {
			if e.sequence > last {
				break
			}
			if fits(r, e.event) && !p.add(e.event, e.size) {
				p.reply.More = true
				return p.reply, nil
			}
			p.reply.Next, from, start = e.sequence, e.sequence+1, time.Time{}
		}
		if looked += len(some); len(some) == 0 || some[len(some)-1].sequence > last {
			break // there is no other one of that node
		}
		if looked >= maxScan && from <= last {
			p.reply.More = true
			return p.reply, nil
		}
	}
	p.reply.Next = max(p.reply.Next, last)
	return p.reply, nil
}

// newest reads the last r.Last events that fit r, the oldest of them first.
func newest(ctx context.Context, s *mesh.Session, r wire.EventsRequest, first, last uint64) (wire.EventsReply, error) {
	var found []stored // the newest first
	wanted := min(r.Last, MaxLast)
	for end, looked := last, 0; end >= first && end > 0 && len(found) < wanted && looked < maxScan; {
		from := max(first, end-min(end, chunk)+1)
		some, err := between(ctx, s, from, end)
		if err != nil {
			return wire.EventsReply{}, err
		}
		slices.Reverse(some)
		for _, e := range some {
			if fits(r, e.event) && len(found) < wanted {
				found = append(found, e)
			}
		}
		looked += int(end - from + 1) //nolint:gosec // at most chunk
		end = from - 1
	}
	var p page
	for _, e := range found {
		if !p.add(e.event, e.size) {
			break
		}
	}
	slices.Reverse(p.reply.Events)
	p.reply.Next = last
	return p.reply, nil
}

// between reads the events from one place to another, both included.
func between(ctx context.Context, s *mesh.Session, from, to uint64) ([]stored, error) {
	var all []stored
	for from <= to {
		some, err := read(ctx, s, ask{from: from, count: chunk})
		if err != nil || len(some) == 0 {
			return all, err
		}
		for _, e := range some {
			if e.sequence <= to {
				all = append(all, e)
			}
		}
		from = some[len(some)-1].sequence + 1
	}
	return all, nil
}

// page is a page that is being filled.
type page struct {
	reply wire.EventsReply
	size  int
	ids   map[string]struct{}
}

// add puts an event on the page, unless it is there already, and returns false
// when it is full.
func (p *page) add(e wire.Event, size int) bool {
	id := e.Node + "/" + e.ID
	if _, ok := p.ids[id]; ok {
		return true
	}
	if p.size += size + 1; p.size > wire.MaxPage {
		return false
	}
	if p.ids == nil {
		p.ids = map[string]struct{}{}
	}
	p.ids[id] = struct{}{}
	p.reply.Events = append(p.reply.Events, e)
	return true
}

func fits(r wire.EventsRequest, e wire.Event) bool {
	return (r.Node == "" || r.Node == e.Node) && (r.Declaration == "" || r.Declaration == e.Declaration) &&
		(r.Unit == "" || r.Unit == e.Unit) && !e.At.Before(r.Since)
}

// stored is an event at its place.
type stored struct {
	event    wire.Event
	sequence uint64
	size     int // of its JSON
}

// parse reads one; false when it is none.
func parse(data []byte, sequence uint64) stored {
	e := stored{sequence: sequence, size: len(data)}
	if json.Unmarshal(data, &e.event) != nil {
		e.event = wire.Event{ID: "unreadable", Kind: "lost", Text: "this event cannot be read"}
	}
	return e
}
