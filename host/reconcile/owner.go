package reconcile

import (
	"path/filepath"
	"slices"

	"stead/host/plan"
	"stead/host/unit"
)

// own decides, among declarations that meet in one unit by an alias, which one
// has it: the one that is applied already, else the first by name. A unit that
// is being given back is its declaration's until that is done.
func (l *Loop) own(batch []*managed) {
	if slices.ContainsFunc(batch, func(m *managed) bool { return slices.ContainsFunc(m.disk.Wants, l.alias) }) {
		batch = slices.Clone(batch)
		slices.SortFunc(batch, func(a, b *managed) int { // whose aliases come first
			switch {
			case a.before(b):
				return -1
			case b.before(a):
				return 1
			}
			return 0
		})
	}
	for _, m := range batch {
		m.owner = plan.Owner{}
		if m.decl == nil || m.status.ID == "" {
			continue
		}
		if o := l.holder(m); o != m {
			m.owner = plan.Owner{Name: o.mem.Name, Unit: m.status.ID}
		} else if o, p := l.inTheWay(m); o != nil {
			m.owner = plan.Owner{Name: o.mem.Name, Unit: unit.Name(plan.UnitOfPath(p))}
		}
	}
}

// holder is the one of the declared names of m's unit that has it.
func (l *Loop) holder(m *managed) *managed {
	holder := m
	for _, o := range l.ids[m.status.ID] {
		if o.decl != nil && o.before(holder) {
			holder = o
		}
	}
	return holder
}

// inTheWay finds the unit of another declaration whose name, or whose file or
// link, m's own links would take; nil when there is none. It is known only on
// the machine itself, whose specifiers make the names.
func (l *Loop) inTheWay(m *managed) (*managed, string) {
	for _, w := range m.disk.Wants {
		if o := l.owners[w.Path]; o != nil && o != m && o.holds(w.Path) {
			return o, w.Path
		}
		if !l.alias(w) {
			continue
		}
		o := l.units[unit.Name(filepath.Base(w.Path))]
		if o != nil && o != m && o.status.ID == o.name {
			return o, w.Path // who declares a unit comes before who would call his own one so
		}
		if o := l.claimant(m, w.Path); o != nil {
			return o, w.Path
		}
	}
	return nil, ""
}

// alias reports whether w gives a unit another name.
func (l *Loop) alias(w plan.Want) bool {
	return w.Entry.Kind == plan.Link && filepath.Dir(w.Path) == l.o.ConfigDir
}

// claimant finds another declaration that asks for the name that m asks for, and
// has it before m although nobody has made the link yet.
func (l *Loop) claimant(m *managed, path string) *managed {
	if m.holds(path) {
		return nil
	}
	var first *managed
	for _, o := range l.units {
		if o == m || o.decl == nil || o.owner.Name != "" || !o.before(m) || first != nil && first.before(o) {
			continue
		}
		if slices.ContainsFunc(o.disk.Wants, func(w plan.Want) bool { return w.Path == path && l.alias(w) }) {
			first = o
		}
	}
	return first
}

// disowned has the units looked at that another declaration has: it may have
// gone, or want less than before.
func (l *Loop) disowned() {
	for _, m := range l.units {
		m.dirty = m.dirty || m.owner.Name != ""
	}
}

// holds reports whether what stands at path is m's.
func (m *managed) holds(path string) bool {
	e, wrote := m.mem.Wrote[path]
	return wrote && e.Kind != plan.Absent
}

// before reports whether m rather than o has the unit that both name.
func (m *managed) before(o *managed) bool {
	if a, b := m.applied(), o.applied(); a != b {
		return a
	}
	if a, b := m.name == m.status.ID, o.name == o.status.ID; a != b {
		return a
	}
	return m.mem.Name < o.mem.Name
}

func (m *managed) applied() bool { return len(m.mem.Wrote) > 0 || m.mem.Activity != "" }
