package plan

import (
	"stead/host/report"
	"stead/host/unit"
)

// Preview is what would be done for one declaration, and how it would stand
// then. It supposes that systemd can load what is declared, and that jobs end as
// they are asked to.
type Preview struct {
	Name       string
	UID        string
	Generation uint64
	Scope      unit.Scope
	Unit       unit.Name // "" where it is not known
	Withdrawn  bool      // the unit is given back
	Besides    bool      // nobody asked about it: what was asked about has this effect

	Steps []Foreseen // in their order
	// Outcome, Reason, Text and Hint say what forbids it, or what it would wait
	// for; empty when nothing does.
	Outcome  report.Outcome
	Reason   report.Reason
	Text     string
	Hint     string
	Warnings []string
}

// Foreseen is a step that would be taken.
type Foreseen struct {
	Action Action
	Object string // the path or unit, as in a report
	Reason string
	// Diff is what would change at the path, unified; see Diff. Empty for a step
	// that changes no file.
	Diff []string
}

// Conclude takes over how the declaration would stand: what comes by itself when
// the steps have done their work is not told.
func (p *Preview) Conclude(d Decision) {
	p.Warnings = d.Warnings
	if d.Outcome == report.Converged || d.Outcome == report.Waiting && d.Reason == report.Settling {
		return
	}
	p.Outcome, p.Reason, p.Text, p.Hint = d.Outcome, d.Reason, d.Text, d.Hint
}
