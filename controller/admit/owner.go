package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/host/unit"
)

// claim is a unit in its scope, or the path of a file, which has one declaration on a
// node.
type claim struct {
	scope unit.Scope
	unit  unit.Name
}

// claims are the units that d takes: its own, and what its files name as aliases
// of it; or the path of its file.
func claims(d *assign.Declaration) []claim {
	all := []claim{{d.Service.Scope, d.Service.Object()}}
	for _, alias := range d.Service.Aliases() {
		all = append(all, claim{d.Service.Scope, alias})
	}
	return all
}

// claimant is a declaration that takes a unit which another one takes too.
type claimant struct {
	*change
	took bool     // it took the unit before
	on   []string // the nodes on which it did, sorted
}

// owners finds the changes by which two declarations of one unit meet on a node.
// Those that met before are the host's to tell apart: they hold nothing up.
func (j *judge) owners() {
	by := map[claim][]claimant{}
	changed := map[string]*change{}
	for _, c := range j.changes {
		changed[c.is.Name] = c
	}
	for _, d := range j.after.Declared() {
		c := changed[d.Name]
		if c == nil {
			c = &change{was: d, is: d}
		}
		for _, u := range claims(d) {
			by[u] = append(by[u], claimant{change: c, took: c.took(u)})
		}
	}
	order := func(a, b claim) int {
		return strings.Compare(string(a.scope)+string(a.unit), string(b.scope)+string(b.unit))
	}
	for _, u := range slices.SortedFunc(maps.Keys(by), order) {
		if len(by[u]) > 1 && slices.ContainsFunc(by[u], func(c claimant) bool { return !c.took || len(c.gain) > 0 }) {
			j.contest(u, by[u])
		}
	}
}

// took reports whether the declaration stood before and took u.
func (c *change) took(u claim) bool {
	was := alive(c.was)
	return was != nil && was.Service != nil && (!c.writes() || slices.Contains(claims(was), u))
}

// contest judges the claimants of one unit. Who had it comes first, then the
// order of the request.
func (j *judge) contest(u claim, all []claimant) {
	rank := map[*change]int{}
	for i, c := range j.changes {
		rank[c] = i + 1
	}
	slices.SortStableFunc(all, func(a, b claimant) int {
		if a.took != b.took {
			if a.took {
				return -1
			}
			return 1
		}
		return rank[a.change] - rank[b.change]
	})
	holder := map[string]int{} // node → who has it there
	for i := range all {
		c := &all[i]
		if c.took {
			c.on = j.before.NodesOf(c.was.Address)
		}
		meet := map[int][]string{}
		for _, node := range j.after.NodesOf(c.is.Address) {
			first, taken := holder[node]
			switch {
			case !taken:
				holder[node] = i
			case !all[first].had(node) || !c.had(node):
				meet[first] = append(meet[first], node)
			}
		}
		if len(meet) == 0 {
			j.overlap(u, *c, all[:i])
		}
		for _, first := range slices.Sorted(maps.Keys(meet)) {
			j.two(u, all[first], *c, "on "+assign.List(meet[first]))
		}
	}
}

// had reports whether the declaration took the unit on that node before.
func (c *claimant) had(node string) bool {
	_, on := slices.BinarySearch(c.on, node)
	return on
}

// overlap judges those that meet on no node now, and will on every one that
// comes: where one of them is for all nodes that the other is for.
func (j *judge) overlap(u claim, c claimant, earlier []claimant) {
	for _, e := range earlier {
		wide, narrow := e.is.Address, c.is.Address
		if !covers(wide, narrow) {
			wide, narrow = narrow, wide
		}
		if !covers(wide, narrow) || e.stood() && c.stood() {
			continue
		}
		where := "on every node"
		if !narrow.All {
			where += " with " + strings.TrimPrefix(narrow.String(), "labels ")
		}
		j.two(u, e, c, where)
		return
	}
}

// stood reports whether the declaration took the unit before, by the same
// addressing.
func (c claimant) stood() bool { return c.took && c.was.Address.Same(c.is.Address) }

// covers reports whether whatever b holds is held by a, whichever nodes there
// are.
func covers(a, b assign.Address) bool {
	if a.All {
		return len(b.Nodes) == 0 // what is named is there, or was warned of
	}
	if len(a.Labels) == 0 || len(b.Labels) == 0 {
		return a.Capability != "" && a.Capability == b.Capability
	}
	for k, v := range a.Labels {
		if got, ok := b.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// two notes that first and c both take u.
func (j *judge) two(u claim, first, c claimant, where string) {
	by := fmt.Sprintf("%q (%s)", first.is.Name, first.is.By)
	cure := "withdraw " + first.is.Name
	if first.doc != nil && first.writes() {
		by = fmt.Sprintf("%q (%s)", first.is.Name, first.doc.Origin)
		cure = "write both as one"
	} else if first.is.By == "" {
		by = fmt.Sprintf("%q", first.is.Name)
	}
	others := "them to different nodes"
	if module := shape.OfModule(first.is.Name); module != "" {
		cure, others = "leave it to module "+module, "this one to other nodes"
	}
	as, what := "", "unit"
	if c.is.Service.File != nil {
		what = "path"
	} else if u.unit != first.is.Service.Unit {
		as = ", as an alias of " + string(first.is.Service.Unit)
	}
	cure = "a " + what + " has one declaration on a node: " + cure + ", or address " + others
	if u.unit == c.is.Service.Object() {
		j.problem(c.change, what, fmt.Sprintf("%s is declared by %s %s too%s", u.unit, by, where, as), cure)
		return
	}
	path, text := aliasIn(c.is.Service)
	line := 0
	if c.doc != nil {
		line = c.doc.LineOf(path, text, "Alias")
	}
	j.problemAt(c.change, shape.Problem{Line: line, Path: path, Rule: fmt.Sprintf("Alias=%s is a unit that %s declares %s%s", u.unit, by, where, as), Cure: cure})
}

// aliasIn returns the first of the files of s that names an alias: where it
// stands, and its text.
func aliasIn(s *shape.Service) (path, text string) {
	if s.Content != nil && strings.Contains(*s.Content, "Alias") {
		return "content", *s.Content
	}
	for _, name := range slices.Sorted(maps.Keys(s.DropIns)) {
		if text := s.DropIns[name]; strings.Contains(text, "Alias") {
			return "dropins." + name, text
		}
	}
	return "unit", ""
}
