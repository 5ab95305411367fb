package reconcile

import (
	"cmp"
	"slices"
	"time"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// report makes the report of m from its decision. A retry that is under way
// leaves the failure standing until it has succeeded.
func (l *Loop) report(m *managed) {
	m.failure()
	p := l.halt(m)
	now := l.now()
	r := &report.Report{
		Name: m.mem.Name, UID: m.mem.UID, Generation: m.mem.Generation, Scope: l.o.Scope, Unit: m.name,
		Outcome: m.plan.Outcome, Reason: m.plan.Reason, Text: m.plan.Text, Hint: m.plan.Hint, Paused: p, Since: now,
		State: state(m), Steps: m.steps, Looked: m.looked, Retry: retry(m, now),
		Warnings: append(m.allWarnings(), l.lacking(m)...), Origin: origin(m.decl),
	}
	old := m.rep
	if old != nil {
		if old.Outcome == report.Failed && old.Generation == r.Generation && r.Outcome == report.Waiting &&
			slices.Contains([]report.Reason{report.Starting, report.Refreshing, report.Settling, report.Busy}, r.Reason) {
			r.Outcome, r.Reason, r.Text, r.Hint = old.Outcome, old.Reason, old.Text, old.Hint
		}
		if old.Outcome == r.Outcome && old.Reason == r.Reason {
			r.Since = old.Since
		}
		if old.Outcome != r.Outcome || old.Reason != r.Reason {
			l.say(r)("outcome", "scope", l.o.Scope, "unit", m.name, "declaration", r.Name,
				"outcome", r.Outcome, "reason", r.Reason, "text", r.Text)
		}
	} else {
		r.Since = since(m, now)
	}
	if r.Outcome == report.Contested {
		r.Undone = slices.Clone(m.track.Undone)
	}
	if r.Reason == report.BadUnit {
		r.Text = m.loadText(r.Text)
	}
	if r.Outcome == report.Failed {
		if !m.ofFile() {
			l.side.wantLines(m, r)
		}
		r.Lines = m.shownLines()
	} else if r.Outcome == report.Converged {
		m.lines, m.linesFor, m.words = nil, "", ""
	}
	if m.rep = r; m.ofFile() && unfit(old) != unfit(r) {
		l.tellCiting(m)
	}
}

// say chooses how loud an outcome is logged: what passes by itself within
// moments is for debugging.
func (l *Loop) say(r *report.Report) func(string, ...any) {
	if r.Outcome == report.Waiting && slices.Contains([]report.Reason{report.Settling, report.Starting, report.Stopping, report.Refreshing}, r.Reason) {
		return l.o.Logger.Debug
	}
	return l.o.Logger.Info
}

// since is, at first sight, how long a unit that is right has been so.
func since(m *managed, now time.Time) time.Time {
	if m.plan.Outcome == report.Converged && m.status.Changed > 0 {
		if t := m.track.Since(); !t.IsZero() {
			return t
		}
	}
	return now
}

func retry(m *managed, now time.Time) time.Time {
	if m.plan.Outcome == report.Converged || !m.track.NotBefore.After(now) {
		return time.Time{}
	}
	return m.track.NotBefore
}

func state(m *managed) report.State {
	st := m.status
	s := report.State{Load: st.Load, Active: st.Active, Sub: st.Sub, MainPID: st.MainPID, Restarts: st.Restarts,
		Result: st.Trouble.Result, Enabled: enabled(m)}
	if st.ID != st.Asked && st.ID != "" {
		s.ID = st.ID
	}
	return s
}

func enabled(m *managed) string {
	k := m.disk
	switch {
	case m.ofFile():
		return ""
	case m.status.Load == unit.NotFound:
		return ""
	case k.Mask != "":
		return "masked"
	case k.Text.Kind != plan.Plain:
		return string(k.Text.Kind)
	case !k.Text.HasInstall:
		return "static"
	case m.decl != nil && m.decl.Service.Enabled != nil && *m.decl.Service.Enabled:
		for _, w := range k.Wants {
			if w.Entry.Kind == plan.Link && k.At[w.Path] != w.Entry {
				return "partly"
			}
		}
		return "enabled"
	case len(k.OwnLinks) > 0:
		return "enabled"
	}
	return "disabled"
}

// publish makes the reports visible.
func (l *Loop) publish() {
	now := l.now()
	all := make([]*report.Report, 0, len(l.units))
	for _, m := range l.units {
		r := m.rep
		if r == nil {
			r = pending(l, m, now)
		}
		if m.isLeft() && l.aside[m.mem.Name].report != nil {
			continue // its declaration has a report of its own
		}
		all = append(all, r)
	}
	for _, a := range l.aside {
		if a.report != nil {
			all = append(all, a.report)
		}
	}
	slices.SortFunc(all, func(a, b *report.Report) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Name, b.Name))
	})
	l.snapshot.Store(&all)
	select {
	case l.told <- struct{}{}:
	default:
	}
}

func pending(l *Loop, m *managed, now time.Time) *report.Report {
	return &report.Report{Name: m.mem.Name, UID: m.mem.UID, Generation: m.mem.Generation, Scope: l.o.Scope, Unit: m.name,
		Outcome: report.Waiting, Reason: report.Pending, Since: now}
}

// definition is the file to verify when a file of the unit's was written.
func (m *managed) definition() (string, bool) {
	if m.decl == nil || m.ofFile() || m.decl.Service.IsMasked() {
		return "", false
	}
	for _, w := range m.disk.Wants {
		if w.Why == "content" {
			return w.Path, true
		}
	}
	return m.disk.Fragment, m.disk.Fragment != ""
}
