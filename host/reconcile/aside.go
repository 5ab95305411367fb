package reconcile

import (
	"fmt"
	"maps"

	"stead/host/report"
	"stead/host/unit"
)

// aside is a declaration that is in force and that no unit is kept for: it cannot
// be read, or another one has its unit.
type aside struct {
	Left
	unit   unit.Name // that another one has; "" for one that cannot be read
	decl   *Declared // nil for one that cannot be read
	report *report.Report
}

// setAside takes over which declarations cannot be read and which ones have their
// unit taken, and reports whether that changed. A report that says the same
// stays the same one.
func (l *Loop) setAside(unread []Left, taken []aside) bool {
	now := make(map[string]aside, len(unread)+len(taken))
	for _, f := range unread {
		now[f.Name] = aside{Left: f}
	}
	for _, a := range taken {
		now[a.Name] = a
	}
	for name, a := range now {
		if old, known := l.aside[name]; known && old.Left == a.Left && old.unit == a.unit {
			now[name] = old
			continue
		}
		a.report = l.refusal(a)
		now[name] = a
	}
	changed := !maps.Equal(now, l.aside)
	l.aside = now
	return changed
}

// refusal reports a declaration that is set aside; nil when there is nothing to
// report of it.
func (l *Loop) refusal(a aside) *report.Report {
	if a.Why == "" {
		return nil
	}
	r := &report.Report{Name: a.Name, UID: a.UID, Generation: a.Generation, Scope: l.o.Scope, Unit: a.unit, Outcome: report.Refused,
		Reason: report.Unsupported, Text: a.Why, Hint: "upgrade stead on this node", Since: l.now()}
	if a.unit != "" {
		r.Reason, r.Hint = report.OwnedBy, "withdraw one of the two"
		return r
	}
	for _, m := range l.units { // an earlier generation may have been kept
		if m.mem.Name == a.Name && (r.Unit == "" || m.name < r.Unit) {
			r.Unit, r.Steps = m.name, m.steps
		}
	}
	return r
}

// claims decides, among declarations of one unit, which one has it: the one that
// has had it, else the first by name. It returns them by unit, and the others.
func (l *Loop) claims(all []Declared) (map[unit.Name]*Declared, []aside) {
	have := make(map[unit.Name]*Declared, len(all))
	for i := range all {
		d := &all[i]
		if o := have[d.Service.Object()]; o == nil || l.precedes(d, o) {
			have[d.Service.Object()] = d
		}
	}
	if len(have) == len(all) {
		return have, nil
	}
	var taken []aside
	for i := range all {
		d := &all[i]
		if o := have[d.Service.Object()]; o != d {
			why := fmt.Sprintf("conflict with %s: %s is declared by it already", o.Service.Name, d.Service.Object())
			taken = append(taken, aside{Left: Left{d.Service.Name, l.o.Scope, d.UID, d.Generation, why}, unit: d.Service.Object(), decl: d})
		}
	}
	return have, taken
}

// precedes reports whether d rather than o has the unit that both declare.
func (l *Loop) precedes(d, o *Declared) bool {
	if m := l.units[d.Service.Object()]; m != nil && !m.mem.Withdrawn {
		if has := m.mem.Name == d.Service.Name; has != (m.mem.Name == o.Service.Name) {
			return has
		}
	}
	return d.Service.Name < o.Service.Name
}

// leaves reports whether the set in force leaves a unit alone, since it cannot
// read the unit's declaration.
func (l *Loop) leaves(m *managed) bool {
	a, is := l.aside[m.mem.Name]
	return is && a.unit == "" && !m.mem.Withdrawn
}

// letBe takes no more care of a unit whose declaration cannot be read any more:
// a host that starts anew could not either.
func (l *Loop) letBe(m *managed) {
	if m.decl == nil {
		return
	}
	m.decl, m.rep = nil, nil
	l.o.Logger.Warn("its declaration cannot be read, the unit is left as it is", "scope", l.o.Scope, "unit", m.name, "declaration", m.mem.Name)
}

// isLeft reports whether m's unit is neither kept nor given back.
func (m *managed) isLeft() bool { return m.decl == nil && !m.mem.Withdrawn }
