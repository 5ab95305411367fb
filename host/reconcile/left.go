package reconcile

import (
	"maps"

	"stead/host/report"
)

// left is a declaration that is in force and cannot be read.
type left struct {
	Left
	rep *report.Report // nil when there is nothing to report
}

// leave takes over which declarations cannot be read, and reports whether that
// changed. A report that says the same stays the same one.
func (l *Loop) leave(all []Left) bool {
	now := make(map[string]left, len(all))
	for _, f := range all {
		if old, known := l.left[f.Name]; known && old.Left == f {
			now[f.Name] = old
			continue
		}
		now[f.Name] = left{f, l.unread(f)}
	}
	changed := !maps.Equal(now, l.left)
	l.left = now
	return changed
}

// unread reports a declaration that cannot be read; its unit is known when an
// earlier generation of it was kept.
func (l *Loop) unread(f Left) *report.Report {
	if f.Why == "" {
		return nil
	}
	r := &report.Report{Name: f.Name, UID: f.UID, Generation: f.Generation, Scope: l.o.Scope, Outcome: report.Refused,
		Reason: report.Unsupported, Text: f.Why, Hint: "upgrade stead on this node", Since: l.now()}
	for _, m := range l.units {
		if m.mem.Name == f.Name && (r.Unit == "" || m.name < r.Unit) {
			r.Unit, r.Steps = m.name, m.steps
		}
	}
	return r
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
