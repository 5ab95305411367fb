package reconcile

import (
	"path/filepath"
	"strings"

	"stead/host/unit"
)

// dropInFolders are the names of the folders from which a unit takes drop-ins:
// its own, its template's, those for its type and for what stands before each
// dash of its name. They are watched also where there are none yet, or no file
// is in them: that is how a drop-in begins.
func dropInFolders(n unit.Name) []string {
	all := []string{n.Type() + ".d"}
	add := func(n unit.Name) {
		all = append(all, string(n)+".d")
		if n.IsInstance() {
			all = append(all, string(n.Template())+".d")
		}
	}
	add(n)
	prefix := n.Prefix()
	for i, c := range prefix {
		if c == '-' && i > 0 && i < len(prefix)-1 {
			add(unit.Name(prefix[:i+1] + strings.TrimPrefix(string(n), prefix)))
		}
	}
	return all
}

// dropInPath marks the units that may take a drop-in from what changed at p.
func (l *Loop) dropInPath(p string) {
	folder := filepath.Base(p)
	if !strings.HasSuffix(folder, ".d") {
		if folder = filepath.Base(filepath.Dir(p)); !strings.HasSuffix(folder, ".d") {
			return
		}
	}
	for _, m := range l.folders[folder] {
		if !m.dirty && !l.asWritten(m, p) {
			m.dirty = true
		}
	}
}
