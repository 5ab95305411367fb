package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/host/unit"
)

// accounts warns of nodes without an operator account for which something of scope
// user is declared: by what is asked for, and by anything on the nodes of all, whose
// records are. It lands all the same, and those hosts refuse it until they have one.
func (j *judge) accounts(all []string) {
	declared := map[string][]string{} // node → names
	for _, node := range all {
		for _, d := range j.after.Set(node) {
			if d.Service.Scope == unit.User {
				declared[node] = append(declared[node], d.Name)
			}
		}
	}
	for _, c := range j.changes {
		is := alive(c.is)
		if is == nil || is.Service == nil || is.Service.Scope != unit.User {
			continue
		}
		for _, node := range j.after.NodesOf(is.Address) {
			if !slices.Contains(all, node) {
				declared[node] = append(declared[node], is.Name)
			}
		}
	}
	alike := map[string][]string{} // the names that a node has, as one text → nodes
	for _, node := range slices.Sorted(maps.Keys(declared)) {
		if n := j.after.State().Nodes[node]; n != nil && n.Account == "" {
			slices.Sort(declared[node])
			what := strings.Join(declared[node], "\n")
			alike[what] = append(alike[what], node)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(alike)) {
		j.homeless(alike[what], declared[alike[what][0]])
	}
}

// homeless warns of nodes that will refuse the declarations of names.
func (j *judge) homeless(nodes, names []string) {
	who, there := fmt.Sprintf("node %q has", nodes[0]), "there"
	if len(nodes) > 1 {
		who, there = "nodes "+assign.List(nodes)+" have", "on each"
	}
	j.warn("%s no operator account: scope user is refused %s (%s); name one: stead node account %s LOGIN", who, there, assign.List(names), nodes[0])
}
