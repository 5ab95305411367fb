package reconcile

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// citations are the units that cite a path as a trigger, several maybe.
type citations struct {
	at    map[string][]*managed // by the path, and by where it really is
	in    map[string][]*managed // by a folder whose files are the trigger
	above map[string][]*managed // by the folders on the way to it
}

// cites reports whether the triggers of a look are watched in another way than those
// of the one before.
func cites(k plan.Disk, before map[string]plan.Cited) bool {
	return !maps.EqualFunc(k.Triggers, before, func(a, b plan.Cited) bool { return a.Path == b.Path && a.Real == b.Real && a.Folder == b.Folder })
}

// citations gathers what all units cite, and adds the folders to be watched.
func (l *Loop) citations(dirs map[string]bool) citations {
	c := citations{make(map[string][]*managed), make(map[string][]*managed), make(map[string][]*managed)}
	for _, m := range l.units {
		for p, is := range m.citing {
			if _, file := shape.Cited(p); file {
				p = is.Path
			}
			for _, p := range []string{p, is.Real} {
				if p == "" {
					continue
				}
				c.at[p] = append(c.at[p], m)
				dirs[filepath.Dir(p)] = true
				if is.Folder {
					c.in[p] = append(c.in[p], m)
					dirs[p] = true
				}
				for up := filepath.Dir(p); up != "/" && up != "."; up = filepath.Dir(up) {
					c.above[up] = append(c.above[up], m)
				}
			}
		}
	}
	return c
}

// changed has those looked at that a change of p may concern.
func (c citations) changed(p string) {
	for _, all := range [][]*managed{c.at[p], c.in[filepath.Dir(p)], c.above[p]} {
		for _, m := range all {
			m.dirty = true
		}
	}
}

// unfit reports whether what was reported of a declared file leaves those who cite it
// without what they ask for.
func unfit(r *report.Report) bool {
	return r != nil && (r.Outcome == report.Refused || r.Outcome == report.Failed)
}

// lacking says which of the declared files that m cites are not as they are declared.
// m runs all the same: its file may be good enough as it was, and nobody asked for less.
func (l *Loop) lacking(m *managed) (all []string) {
	if m.decl == nil {
		return nil
	}
	for _, t := range m.decl.Service.Triggers {
		name, is := shape.Cited(t)
		if f := l.units[unit.Name(l.places[name])]; is && f != nil && unfit(f.rep) {
			all = append(all, fmt.Sprintf("it cites %s, which is %s (%s)", t, f.rep.Outcome, f.rep.Reason))
		}
	}
	return all
}

// tellCiting has those looked at that cite the declared file m.
func (l *Loop) tellCiting(m *managed) {
	for _, u := range l.units {
		if u.decl == nil {
			continue
		}
		u.dirty = u.dirty || slices.ContainsFunc(u.decl.Service.Triggers, func(t string) bool {
			name, is := shape.Cited(t)
			return is && l.places[name] == string(m.name)
		})
	}
}
