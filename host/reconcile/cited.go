package reconcile

import (
	"maps"
	"path/filepath"

	"stead/host/plan"
	"stead/host/shape"
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
