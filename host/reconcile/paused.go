package reconcile

import (
	"fmt"
	"strings"
	"time"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// A unit that is paused is looked at and decided about like every other one, and
// nothing of what is decided is done: neither what puts it right, nor a new
// generation, nor its withdrawal. The report says what that would be. When the pause
// is over the unit is looked at with fresh eyes, and the next pass does all of it.

// rest is a pause that was taken in.
type rest struct {
	report.Pause
	// latest is when it ends by CLOCK_MONOTONIC at the latest: a pause that was taken
	// in is not longer than it was asked for, however wrong the wall clock is.
	latest time.Duration
}

// over reports whether r has ended: by this machine's clock, which needs nobody.
func (r rest) over(c plan.Clock) bool { return r.Over(c.Wall) || c.Monotonic >= r.latest }

// end is when r ends, as far as that can be told.
func (r rest) end(c plan.Clock) time.Time {
	if at := c.Wall.Add(r.latest - c.Monotonic); at.Before(r.Until) {
		return at
	}
	return r.Until
}

// pause takes over which units are paused. Those of which that is news are looked at.
func (l *Loop) pause(all []report.Pause) {
	if l.asked != nil {
		return // they stay as they are for a dry run
	}
	c := l.o.Clock()
	next := make(map[unit.Name]rest, len(all))
	for _, p := range all {
		if p.Scope != l.o.Scope {
			continue
		}
		r, known := l.rests[p.Unit]
		if !known || !r.Same(p) {
			r = rest{p, c.Monotonic + min(p.Length(), report.MaxPause)}
			l.wakeUp(p.Unit)
		}
		next[p.Unit] = r
	}
	before := l.rests
	l.rests = next
	for name := range before {
		if _, stays := next[name]; !stays {
			l.wakeUp(name)
		}
	}
}

// wakeUp has a unit looked at.
func (l *Loop) wakeUp(name unit.Name) {
	if m := l.units[name]; m != nil {
		m.dirty = true
	}
}

// rest is the pause that m is held by now. Of what a dry run asks about it is told,
// and nothing is held.
func (l *Loop) rest(m *managed, c plan.Clock) (rest, bool) {
	r, is := l.rests[m.name]
	return r, is && !r.over(c) && !l.asked[m.mem.Name]
}

// untilRest is how long no pause ends, at most that long.
func (l *Loop) untilRest(most time.Duration) time.Duration {
	c := l.o.Clock()
	for _, r := range l.rests {
		if !r.over(c) {
			most = min(most, r.end(c).Sub(c.Wall))
		}
	}
	return max(0, most)
}

// resume ends what the pauses held that are over: what happened meanwhile was
// nobody's fight with stead, and no try of stead's has failed.
func (l *Loop) resume() {
	c := l.o.Clock()
	for _, m := range l.units {
		if !m.resting {
			continue
		}
		if _, holds := l.rest(m, c); !holds {
			m.resting, m.barred, m.dirty, m.track = false, false, true, plan.Track{}
			l.o.Logger.Info("pause is over", "scope", l.o.Scope, "unit", m.name, "declaration", m.mem.Name)
		}
	}
}

// hold takes out of the decisions what is not to be done before a pause is over.
func (l *Loop) hold(batch []*managed, c plan.Clock) {
	for _, m := range batch {
		r, holds := l.rest(m, c)
		if !holds {
			continue
		}
		if !m.resting {
			m.resting = true
			l.o.Logger.Info("paused", "scope", l.o.Scope, "unit", m.name, "declaration", m.mem.Name, "until", r.Until, "by", r.By)
		}
		m.plan = plan.Decision{Outcome: report.Paused, Text: r.String() + heldBack(m.plan, m.decl == nil), Warnings: m.plan.Warnings, Again: r.end(c)}
	}
}

// halt makes what is about to be reported of m that it is paused, and returns the
// pause; nil for none. What stands in the way besides is not what holds m up.
func (l *Loop) halt(m *managed) *report.Pause {
	r, holds := l.rest(m, l.o.Clock())
	if !holds {
		return nil
	}
	m.resting = true
	if m.plan.Outcome != report.Paused {
		m.plan.Outcome, m.plan.Reason, m.plan.Text, m.plan.Hint = report.Paused, "", r.String()+"; besides: "+m.plan.Text, ""
	}
	return &r.Pause
}

// heldShown is how many steps a report names that are held back.
const heldShown = 4

// heldBack says what would be done without the pause, or how it would stand. What
// comes behind the first writes is decided when they are made.
func heldBack(d plan.Decision, withdrawn bool) string {
	var steps []string
	for _, s := range d.Steps {
		if s.Action == plan.Reload {
			continue
		}
		object := s.Path
		if object == "" {
			object = string(s.Unit)
		}
		steps = append(steps, fmt.Sprintf("%s %s", s.Action, object))
	}
	if more := len(steps) - heldShown; more > 0 {
		steps = append(steps[:heldShown], fmt.Sprintf("%d more", more))
	}
	switch {
	case len(steps) > 0 && withdrawn:
		return "; it is withdrawn, and not given back before: " + strings.Join(steps, ", ")
	case withdrawn:
		return "; it is withdrawn, and not given back before"
	case len(steps) > 0:
		return "; not done before: " + strings.Join(steps, ", ")
	case d.Outcome == report.Converged:
		return "; it is as declared"
	case d.Text != "":
		return fmt.Sprintf("; it would be %s: %s", d.Outcome, d.Text)
	}
	return fmt.Sprintf("; it would be %s", d.Outcome)
}

// adjourn says of a preview that its steps are not taken before a pause is over.
func (d *dry) adjourn(p *plan.Preview) {
	r, is := d.rests[p.Unit]
	if !is || r.over(d.o.Clock()) {
		return
	}
	text := r.String()
	if p.Outcome != "" {
		text += fmt.Sprintf("; then %s: %s", p.Outcome, p.Text)
	}
	p.Outcome, p.Reason, p.Text = report.Paused, "", text
}
