package admit

import (
	"fmt"
	"maps"
	"slices"

	"stead/controller/assign"
	"stead/host/shape"
)

// cites judges what triggers cite. Who comes to be, or is edited, must find the
// declared files that it cites on each of its nodes. A file that goes from under
// somebody who cites it goes all the same, with a warning: its host goes on with what
// stands at its path.
func (j *judge) cites() {
	fresh := map[string]*change{}
	left := map[string][]string{} // by file → nodes that lose it
	for _, c := range j.changes {
		is := alive(c.is)
		switch {
		case is != nil && is.Service != nil && is.Service.File == nil:
			fresh[is.Name] = c
		case len(c.lose) > 0:
			left[c.is.Name] = c.lose
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		c := fresh[name]
		nodes := c.gain
		if c.writes() {
			nodes = j.after.NodesOf(c.is.Address)
		}
		for _, t := range c.is.Service.Triggers {
			j.cite(c, t, nodes)
		}
	}
	for _, file := range slices.Sorted(maps.Keys(left)) {
		j.uncited(file, left[file], fresh)
	}
}

// cite judges one trigger on nodes.
func (j *judge) cite(c *change, t string, nodes []string) {
	name, is := shape.Cited(t)
	if !is {
		return
	}
	f := alive(j.after.State().Declarations[name])
	switch {
	case f == nil || f.Service == nil:
		if _, unreadable := j.after.State().UnreadableDeclarations[name]; unreadable {
			return
		}
		cure := "declare a file of that name (stead explain file), or cite its path"
		var names []string
		for _, d := range j.after.Declared() {
			if d.Service.File != nil {
				names = append(names, d.Name)
			}
		}
		if near := j.nearest(name, names); near != "" {
			cure = "did you mean " + near + "?"
		}
		j.problem(c, "triggers", fmt.Sprintf("it cites %s, which is not declared", name), cure)
		return
	}
	if rule, cure := shape.CiteProblem(map[string]*shape.Declaration{name: f.Service}, c.is.Service, t); rule != "" {
		j.problem(c, "triggers", rule, cure)
		return
	}
	if without, _ := assign.Diff(j.after.NodesOf(f.Address), nodes); len(without) > 0 {
		j.problem(c, "triggers", fmt.Sprintf("it cites %s, which is not declared on %s", name, assign.List(without)), "address "+name+" to the same nodes, or cite its path")
	}
}

// uncited warns of those that go on citing a file on nodes that lose it.
func (j *judge) uncited(file string, nodes []string, fresh map[string]*change) {
	for _, d := range j.after.Declared() {
		if fresh[d.Name] != nil || !slices.Contains(d.Service.Triggers, file) {
			continue
		}
		if both := common(j.after.NodesOf(d.Address), nodes); len(both) > 0 {
			j.warn("%s cites %s, which goes from %s: it takes no change in there any more", d.Name, file, assign.List(both))
		}
	}
}

// common are the names that two sorted lists have in common.
func common(a, b []string) (both []string) {
	for _, name := range a {
		if _, in := slices.BinarySearch(b, name); in {
			both = append(both, name)
		}
	}
	return both
}
