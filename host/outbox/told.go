package outbox

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"stead/host/report"
	"stead/mesh/wire"
)

// Kinds of events besides those of a step that is named by what was done.
const (
	kindOutcome = "outcome"
	kindBack    = "given-back" // nothing of a withdrawn declaration is left to do
	kindSync    = "sync"       // what controllers tell is refused from now on, or accepted again
)

// done names what a step did.
var done = map[string]string{
	"write": "written", "link": "written", "remove": "removed", "unlink": "removed",
	"start": "started", "stop": "stopped", "restart": "restarted", "reload": "reload",
	"reload-unit": "reloaded", "reload-or-restart": "refreshed",
}

// told is what was last told of one unit, as the spool keeps it.
type told struct {
	Declaration string         `json:"declaration"`
	UID         string         `json:"uid"`
	Generation  uint64         `json:"generation"`
	Outcome     report.Outcome `json:"outcome,omitempty"` // "" before the first that lasted
	Reason      report.Reason  `json:"reason,omitempty"`
	Scope       string         `json:"scope"`
	Unit        string         `json:"unit"`

	// step is the last one that was told. Steps are those of this process, and
	// begin with none.
	step report.Step
	seen *report.Report
}

// teller turns reports into events. It is used by one goroutine.
type teller struct {
	id      func() string
	node    func() string
	told    map[string]told
	trouble string           // of the source
	source  bool             // trouble was told at least once
	early   []*report.Report // given back, and the reports did not show it yet
}

// sourceKey is where the note on the source stands; no unit has that name.
const sourceKey = "source"

// newTeller goes on from what an earlier process told.
func newTeller(id, node func() string, notes map[string][]byte) *teller {
	t := &teller{id: id, node: node, told: make(map[string]told, len(notes))}
	for key, data := range notes {
		if key == sourceKey {
			t.trouble, t.source = string(data), true
			continue
		}
		var one told
		if json.Unmarshal(data, &one) == nil { // another form: it is told once more
			t.told[key] = one
		}
	}
	return t
}

// news is what a teller makes events of.
type news struct {
	given   []*report.Report // back, before reports were so
	notes   []note
	reports []*report.Report
	trouble string    // of the source
	now     time.Time // when what is gone was seen to be
}

// tell returns what happened since it was last called, in the order of time, and
// the notes that go with it.
func (t *teller) tell(n news) ([]wire.Event, map[string][]byte) {
	var events []wire.Event
	notes := map[string][]byte{}
	given := append(t.early, n.given...)
	t.early = nil
	for _, r := range given {
		key := keyOf(r)
		if shown(r, n.reports) {
			t.early = append(t.early, r)
			continue
		}
		_, steps := t.one(t.told[key], r)
		events = append(events, steps...)
		events = append(events, t.back(key, notes, r.Since, told{Declaration: r.Name, Generation: r.Generation, Scope: string(r.Scope), Unit: string(r.Unit)})...)
	}
	there := make(map[string]bool, len(n.reports))
	for _, r := range n.reports {
		key := keyOf(r)
		there[key] = true
		old, known := t.told[key]
		if known && old.seen == r {
			continue
		}
		next, more := t.one(old, r)
		events = append(events, more...)
		t.told[key] = next
		if !known || !next.same(old) {
			notes[key] = next.note()
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.told)) {
		if !there[key] {
			events = append(events, t.back(key, notes, n.now, t.told[key])...)
		}
	}
	for _, note := range n.notes {
		events = append(events, wire.Event{At: note.at, Kind: note.kind, Text: note.text})
	}
	return t.stamp(append(events, t.sync(n, notes)...)), notes
}

// shown reports whether reports are still those of before r was given back.
func shown(r *report.Report, reports []*report.Report) bool {
	return slices.ContainsFunc(reports, func(o *report.Report) bool {
		return o.Unit == r.Unit && o.Scope == r.Scope && o.UID == r.UID && !o.Looked.IsZero() && !o.Looked.After(r.Since)
	})
}

// back tells that a unit was given back, and forgets it.
func (t *teller) back(key string, notes map[string][]byte, at time.Time, whose told) []wire.Event {
	notes[key] = nil
	delete(t.told, key)
	if whose.Unit == "" {
		return nil // a declaration that can be read now has its unit
	}
	return []wire.Event{{At: at, Kind: kindBack, Declaration: whose.Declaration, Unit: whose.Unit, Scope: whose.Scope,
		Generation: whose.Generation, Text: "withdrawn, and given back"}}
}

// sync tells that controllers are refused, or no longer.
func (t *teller) sync(n news, notes map[string][]byte) []wire.Event {
	if t.source && n.trouble == t.trouble {
		return nil
	}
	first := !t.source
	t.trouble, t.source = n.trouble, true
	notes[sourceKey] = append([]byte{}, n.trouble...)
	if first && n.trouble == "" {
		return nil
	}
	return []wire.Event{syncEvent(n.trouble, n.now)}
}

// stamp orders events and says whose they are.
func (t *teller) stamp(events []wire.Event) []wire.Event {
	events = gather(events)
	slices.SortStableFunc(events, func(a, b wire.Event) int { return a.At.Compare(b.At) })
	for i := range events {
		e := &events[i]
		e.ID, e.At, e.Source, e.Node, e.Text = t.id(), e.At.UTC(), "host", t.node(), short(e.Text)
	}
	return events
}

// one returns what is to be told of one unit.
func (t *teller) one(old told, r *report.Report) (told, []wire.Event) {
	var events []wire.Event
	about := wire.Event{Declaration: r.Name, Unit: string(r.Unit), Scope: string(r.Scope), Generation: r.Generation}
	next := told{Declaration: r.Name, UID: r.UID, Generation: r.Generation, Scope: string(r.Scope), Unit: string(r.Unit),
		Outcome: old.Outcome, Reason: old.Reason, step: old.step, seen: r}
	for _, s := range after(old.step, r.Steps) {
		events, next.step = append(events, stepEvent(about, s)), s
	}
	if passing(r) || r.Outcome == "" { // what was given back has none
		// The outcome is still the one before, and so is whose it was.
		next.UID, next.Generation = old.UID, old.Generation
		return next, events
	}
	next.Outcome, next.Reason = r.Outcome, r.Reason
	if next.same(old) {
		return next, events
	}
	e := about
	e.At, e.Kind, e.Outcome, e.Reason, e.Text = r.Since, kindOutcome, string(r.Outcome), string(r.Reason), r.Text
	return next, append(events, e)
}

func (t told) same(o told) bool {
	return t.UID == o.UID && t.Generation == o.Generation && t.Outcome == o.Outcome && t.Reason == o.Reason
}

func (t told) note() []byte {
	data, _ := json.Marshal(t) // texts and numbers always encode
	return data
}

// passing outcomes are on their way to another one and are not told; the steps
// that they come from are.
func passing(r *report.Report) bool {
	switch r.Reason {
	case report.Settling, report.Starting, report.Stopping, report.Pending:
		return r.Outcome == report.Waiting
	}
	return false
}

// after returns the steps behind the last one that was told; all of them when
// that one is no longer among them.
func after(last report.Step, steps []report.Step) []report.Step {
	for i := len(steps) - 1; i >= 0; i-- {
		if s := steps[i]; s.At.Equal(last.At) && s.Action == last.Action && s.Object == last.Object {
			return steps[i+1:]
		}
	}
	return steps
}

func stepEvent(about wire.Event, s report.Step) wire.Event {
	e := about
	e.At, e.Kind, e.Text = s.At, cmp.Or(done[s.Action], s.Action), s.Reason
	if s.Object != about.Unit && s.Object != "" {
		e.Text = s.Object + ": " + s.Reason
	}
	if s.Error != "" {
		e.Outcome, e.Text = string(report.Failed), s.Action+" "+s.Object+": "+s.Error
	}
	return e
}

func syncEvent(trouble string, now time.Time) wire.Event {
	e := wire.Event{At: now, Kind: kindSync, Text: "what controllers tell is accepted again"}
	if trouble != "" {
		e.Outcome, e.Text = string(report.Refused), trouble
	}
	return e
}

// gather makes one event of the reload that many units waited for, and each of
// which has as a step of its own.
func gather(events []wire.Event) []wire.Event {
	first, waited := -1, 0
	kept := events[:0]
	for _, e := range events {
		if e.Kind != "reload" || e.Outcome != "" {
			kept = append(kept, e)
			continue
		}
		waited++
		if first < 0 {
			first = len(kept)
			kept = append(kept, e)
		} else if e.At.Before(kept[first].At) {
			kept[first] = e
		}
	}
	if waited > 1 {
		e := &kept[first]
		e.Declaration, e.Unit, e.Generation = "", "", 0
		e.Text = fmt.Sprintf("%s (%d units)", e.Text, waited)
	}
	return kept
}

// keyOf tells the units of the node apart; a declaration that cannot be read may
// have none.
func keyOf(r *report.Report) string {
	if r.Unit == "" {
		return "declaration/" + r.Name
	}
	return string(r.Scope) + "/" + string(r.Unit)
}
