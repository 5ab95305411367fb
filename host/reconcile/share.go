package reconcile

import (
	"path/filepath"
	"slices"

	"stead/host/plan"
	"stead/host/unit"
)

// share leaves each link that more than one declaration asks for, by Also=, to
// one of them. The unit that it enables has it when its own enablement is
// declared; else it stays with the one that made it, or goes to the first.
// Nobody asks for a link of a unit that is declared enabled: false.
func (l *Loop) share(batch []*managed, disks []plan.Disk) {
	claimed := make(map[string]*managed)
	for i, m := range batch {
		if m.decl == nil {
			continue
		}
		others := func(w plan.Want) bool { return w.Why == "enabled" && l.linker(m, w, claimed) != m }
		if slices.ContainsFunc(disks[i].Wants, others) {
			disks[i].Wants = slices.DeleteFunc(slices.Clone(disks[i].Wants), others) // the disk may keep its answer
		}
	}
}

// linker is the one that makes a link which m asks for; nil for nobody.
func (l *Loop) linker(m *managed, w plan.Want, claimed map[string]*managed) *managed {
	own := l.units[enables(w)]
	switch {
	case own == nil || own.decl == nil || own.decl.Service.Enabled == nil:
		own = nil
	case !*own.decl.Service.Enabled:
		return own
	}
	if h := l.owners[w.Path]; h != nil && h.links(w) {
		return h
	}
	if own != nil {
		return own
	}
	if claimed[w.Path] == nil {
		claimed[w.Path] = m
	}
	return claimed[w.Path]
}

// links reports whether m made the link, and still asks for links.
func (m *managed) links(w plan.Want) bool {
	return m.decl != nil && m.decl.Service.Enabled != nil && *m.decl.Service.Enabled && m.mem.Wrote[w.Path] == w.Entry
}

// enables is the unit that a link is there for.
func enables(w plan.Want) unit.Name {
	switch filepath.Ext(filepath.Dir(w.Path)) {
	case ".wants", ".requires", ".upholds":
		return unit.Name(filepath.Base(w.Path))
	}
	return unit.Name(filepath.Base(w.Entry.Target))
}
