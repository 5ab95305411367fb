package reconcile

import (
	"slices"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// rivals notes, for units that are down and declared running, which other one
// that runs as declared a start would stop. Two that exclude each other cannot
// both be kept: the one that runs goes on, or they would stop each other for ever.
func (l *Loop) rivals(batch []*managed) {
	var exclusive []*managed // those that name others
	for _, m := range l.units {
		if m.wanted() && len(m.disk.Text.Conflicts) > 0 {
			exclusive = append(exclusive, m)
		}
	}
	for _, m := range batch {
		m.rival = ""
		if !m.wanted() || !m.status.Active.Down() {
			continue
		}
		for _, o := range exclusive {
			for _, name := range m.against(o) {
				if r := l.units[name]; r != nil && r != m && r.wanted() && r.stands() && (m.rival == "" || name < m.rival) {
					m.rival = name
				}
			}
		}
	}
}

// against are the units that m and o exclude of each other, o being one that
// names others: those that m names itself, or o when it names m.
func (m *managed) against(o *managed) []unit.Name {
	var all []unit.Name
	switch {
	case o == m:
		for _, c := range m.disk.Text.Conflicts {
			all = append(all, unit.Name(c))
		}
	case slices.Contains(o.disk.Text.Conflicts, string(m.name)):
		all = append(all, o.name)
	}
	return all
}

// wanted reports whether m is declared running and may be.
func (m *managed) wanted() bool {
	return m.decl != nil && (m.decl.Service.Ensure == shape.Running || m.decl.Service.Ensure == shape.Restarted) && m.owner.Name == ""
}

// stands reports whether m runs, or is about to, as far as is known: a start that
// ended well and was not looked at since counts too.
func (m *managed) stands() bool {
	if m.status.Active.Up() || m.status.Active == unit.Activating {
		return true
	}
	return m.track.Job.Type != "" && m.track.Job.Type != unit.StopJob && (m.track.Job.ID != 0 || m.dirty && m.track.Last == unit.JobDone)
}

// apart sees to it that of two in a batch that exclude each other only the first
// is started.
func (l *Loop) apart(batch []*managed, c plan.Clock) {
	var starting []*managed
	if !slices.ContainsFunc(batch, func(m *managed) bool { return len(m.disk.Text.Conflicts) > 0 }) {
		return // the usual case
	}
	for _, m := range batch {
		if !slices.ContainsFunc(m.plan.Steps, func(s plan.Step) bool { return s.Action == plan.Start }) {
			continue
		}
		for _, o := range starting {
			if m.decl != nil && (slices.Contains(o.disk.Text.Conflicts, string(m.name)) || slices.Contains(m.disk.Text.Conflicts, string(o.name))) {
				m.rival = o.name
				m.plan = plan.Decide(m.input(c))
				break
			}
		}
		if m.rival == "" {
			starting = append(starting, m)
		}
	}
}
