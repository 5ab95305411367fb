package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

const (
	// blameFor bounds the search for who undid something, and blameNodes of how many
	// nodes it is searched for one answer: contested units are few, and a report is
	// true without it.
	blameFor     = 2 * time.Second
	blameNodes   = 16
	blameReports = 64 // so that an answer still fits into a message
	// blamePages is how many pages of a node's events are read for it.
	blamePages = 4
	// actFor is how long before it had an effect a call may have begun, and noticeFor
	// how long after its end the host may have noticed that.
	actFor    = 2 * time.Minute
	noticeFor = 2 * time.Second
)

// blame says in contested reports by whose calls that came about: hosts know of
// nobody, and the audit, which is of signed calls alone, knows.
func (d *desk) blame(ctx context.Context, all []wire.NodeReport) {
	ctx, cancel := context.WithTimeout(ctx, blameFor)
	defer cancel()
	acts, told := map[string]*acted{}, 0
	for i := range all {
		r := &all[i]
		if r.Outcome != report.Contested || len(r.Undone) == 0 {
			continue
		}
		if told++; told > blameReports {
			return
		}
		if acts[r.Node] == nil {
			if len(acts) == blameNodes {
				return
			}
			acts[r.Node] = d.acted(ctx, r.Node, earliest(all, r.Node).Add(-actFor))
		}
		if by, known := acts[r.Node].of(r.Report); known {
			r.UndoneBy, r.Text = by, undoneBy(by, len(r.Undone))+"; "+r.Text
		}
	}
}

// earliest is when something of a node was undone first.
func earliest(all []wire.NodeReport, node string) time.Time {
	var first time.Time
	for _, r := range all {
		if r.Node == node && len(r.Undone) > 0 && (first.IsZero() || r.Undone[0].Before(first)) {
			first = r.Undone[0]
		}
	}
	return first
}

// acted are the calls that acted on units of a node, the oldest first.
type acted struct {
	calls []wire.Event
	whole bool // none is missing
}

func (d *desk) acted(ctx context.Context, node string, since time.Time) *acted {
	a := &acted{}
	r := wire.EventsRequest{Node: node, Since: since}
	for range blamePages {
		page, err := d.trail.Page(ctx, r)
		if err != nil {
			return a
		}
		for _, e := range page.Events {
			if e.Call != nil && e.Who != "" && mayUndo(e.Call.Verb) && e.Call.Result == wire.CallDone {
				a.calls = append(a.calls, e)
			}
		}
		if r.After = page.Next; !page.More {
			a.whole = true
			return a
		}
	}
	return a
}

// mayUndo reports whether a verb may undo what is declared.
func mayUndo(verb string) bool {
	return slices.Contains([]subject.Verb{seats.Start, seats.Stop, seats.Restart, seats.Enable, seats.Disable}, subject.Verb(verb))
}

// of says by whose calls what r reports came about; false when that is not known.
func (a *acted) of(r report.Report) (by []wire.Undoing, known bool) {
	for _, at := range r.Undone {
		e := a.before(r, at)
		if e == nil {
			continue
		}
		i := slices.IndexFunc(by, func(u wire.Undoing) bool { return u.Who == e.Who && u.Verb == e.Call.Verb })
		if i < 0 {
			i, by = len(by), append(by, wire.Undoing{Who: e.Who, Verb: e.Call.Verb})
		}
		by[i].Times++
	}
	return by, a.whole
}

// before is the last call that may have had its effect on r's unit at a moment.
func (a *acted) before(r report.Report, at time.Time) *wire.Event {
	for i := len(a.calls) - 1; i >= 0; i-- {
		e := &a.calls[i]
		took := time.Duration(e.Call.Took * float64(time.Second))
		if !e.At.After(at) && !at.After(e.At.Add(took+noticeFor)) && concerns(e, r) {
			return e
		}
	}
	return nil
}

// concerns reports whether a call was of the unit of r: by a name of it, or by a pattern.
func concerns(e *wire.Event, r report.Report) bool {
	scope := e.Scope
	if scope == "" {
		scope = string(unit.System)
	}
	return scope == string(r.Scope) && (unit.Match(e.Unit, string(r.Unit)) || r.State.ID != "" && unit.Match(e.Unit, string(r.State.ID)))
}

// undoneBy tells who undid something, and how often nobody is known to have.
func undoneBy(by []wire.Undoing, times int) string {
	var parts []string
	for _, u := range by {
		parts = append(parts, fmt.Sprintf("%s of %s through the seat, %s", u.Verb, u.Who, often(u.Times)))
		times -= u.Times
	}
	if times > 0 {
		parts = append(parts, "from outside, "+often(times))
	}
	return strings.Join(parts, "; ")
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
