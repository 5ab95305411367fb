package reconcile

import (
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// A look at a unit that is right mostly finds what the last one found. The
// decision was made then and is the same now: but for the clock, which a
// decision that is not to be made again by some time does not depend on, all
// that it is made of is compared. That is what keeps a full look at a thousand
// units cheap.

// calm reports whether a look that finds the same would be decided the same, and
// nothing is under way.
func (m *managed) calm() bool {
	return m.decl != nil && m.decided == m.decl && m.plan.Outcome == report.Converged && len(m.plan.Steps) == 0 && m.plan.Again.IsZero() &&
		m.track.Settled && m.track.Fought == 0 && m.track.Job.ID == 0 && len(m.trials) == 0 && !m.unsaved && !m.stale && m.owes == ""
}

// seen takes a look in, and reports whether it found the same of a calm unit.
func (m *managed) seen(st unit.Status, k plan.Disk) bool {
	same := m.calm() && m.status.Equal(st) && m.disk.Equal(k)
	m.status, m.disk, m.stale = st, k, false
	return same
}

// news leaves out those of a batch of which the look found nothing new; their
// reports stand, with the time of the look.
func (l *Loop) news(batch []*managed) []*managed {
	rest := batch[:0:0]
	for _, m := range batch {
		if !m.same {
			rest = append(rest, m)
			continue
		}
		r := *m.rep
		r.Looked = m.looked
		m.rep = &r
	}
	return rest
}
