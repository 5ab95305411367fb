package reconcile

import (
	"cmp"
	"maps"
	"slices"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// A declared file is kept as a unit is: it is known by its path, as it is declared,
// where a unit is known by its name, and by where that leads, where a unit has a
// primary name. It has no manager.

// ofFile reports whether m is a declared file.
func (m *managed) ofFile() bool { return plan.OfFile(m.name) }

// unitsIn are the names of the units of a batch.
func unitsIn(batch []*managed) []unit.Name {
	names := make([]unit.Name, 0, len(batch))
	for _, m := range batch {
		if !m.ofFile() {
			names = append(names, m.name)
		}
	}
	return names
}

// statusesOf gives each of a batch its status: those of the units, in order, and of a
// file what it is called.
func statusesOf(batch []*managed, units []unit.Status) []unit.Status {
	if len(units) == len(batch) {
		return units
	}
	all := make([]unit.Status, len(batch))
	for i, m := range batch {
		if m.ofFile() {
			all[i] = unit.Status{Asked: m.name, ID: m.name}
		} else {
			all[i], units = units[0], units[1:]
		}
	}
	return all
}

// identify gives a file the path to which the declared one leads.
func (m *managed) identify(st *unit.Status, k plan.Disk) {
	switch {
	case !m.ofFile():
	case k.Real != "":
		st.ID = unit.Name(k.Real)
	case m.status.ID != "":
		st.ID = m.status.ID // what is given back, or not known, is where it was
	}
}

// files are the paths of the declared files that s cites, by citation; nil where it
// cites none.
func (l *Loop) files(s *shape.Service) map[string]string {
	var all map[string]string
	for _, t := range s.Triggers {
		name, is := shape.Cited(t)
		if p, known := l.places[name]; is && known {
			if all == nil {
				all = make(map[string]string)
			}
			all[t] = p
		}
	}
	return all
}

// cite takes over where declared files stand: those of the set, and those of other
// scopes, which its units may cite too. Units whose citations lead elsewhere now
// are looked at.
func (l *Loop) cite(set Set) {
	l.others = set.Files
	now := maps.Clone(set.Files)
	if now == nil {
		now = make(map[string]string)
	}
	for _, d := range set.Declared {
		if f := d.Service.File; f != nil {
			now[d.Service.Name] = f.Path
		}
	}
	if maps.Equal(now, l.places) {
		return
	}
	was := l.places
	l.places = now
	for _, m := range l.units {
		if m.decl == nil {
			continue
		}
		for _, t := range m.decl.Service.Triggers {
			if name, is := shape.Cited(t); is && was[name] != now[name] {
				m.dirty = true
			}
		}
	}
}

// Files are the paths of the files of a set, by name: what a loop is told of the
// files of other scopes.
func Files(declared []Declared) map[string]string {
	all := make(map[string]string)
	for _, d := range declared {
		if f := d.Service.File; f != nil {
			all[d.Service.Name] = f.Path
		}
	}
	return all
}

// touched are those that a pass must look at once more before it queues jobs,
// besides those that waited for a reload: files that were written, units that cite
// them, and units that were written and for which nobody reloads. What waits for
// a reload is looked at after that.
func (l *Loop) touched(done map[*managed]bool, again []*managed) []*managed {
	written := make(map[string]bool)
	for m := range done {
		if m.ofFile() {
			for p := range m.mem.Wrote {
				written[p] = true
			}
		}
	}
	waits := func(m *managed) bool {
		return slices.ContainsFunc(m.plan.Steps, func(s plan.Step) bool { return s.Action == plan.Reload })
	}
	var more []*managed
	for _, m := range l.units {
		if m.isLeft() || slices.Contains(again, m) {
			continue
		}
		if done[m] && (m.ofFile() || !waits(m)) || len(written) > 0 && !m.ofFile() && m.disk.Cites(written) && !waits(m) {
			more = append(more, m)
		}
	}
	slices.SortFunc(more, byName)
	return more
}

func byName(a, b *managed) int { return cmp.Compare(a.name, b.name) }
