package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/mesh/wire"
)

// address judges whom the declaration of c is for. An addressing that stands as
// it is was judged when it came: nodes and labels that left since are warned of.
func (j *judge) address(c *change) {
	a := c.doc.Declaration
	if len(a.Nodes) == 0 && len(a.Labels) == 0 && !a.All {
		j.problem(c, "", "it is addressed to no node", "add nodes: [web1], labels: {role: web} or all: true")
		return
	}
	was := alive(c.was)
	say := func(path, rule, cure string) {
		if was != nil && was.Address.Same(c.is.Address) {
			j.warn("%s.%s: %s", c.doc.Name, path, rule)
			return
		}
		j.problem(c, path, rule, cure)
	}
	for i, name := range a.Nodes {
		if rule, cure := j.unknownNode(name); rule != "" {
			say(fmt.Sprintf("nodes[%d]", i), rule, cure)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		if keys := j.labelKeys(); keys[key] == nil {
			cure := fmt.Sprintf("label a node first: stead node label NODE %s=%s", key, a.Labels[key])
			if near := j.nearest(key, slices.Sorted(maps.Keys(keys))); near != "" {
				cure = "did you mean " + near + "? if not, l" + cure[1:]
			}
			say("labels."+key, fmt.Sprintf("no node carries a label %q", key), cure)
		}
	}
}

// unknownNode says why name is no node that something can be addressed to; "" for
// one that is.
func (j *judge) unknownNode(name string) (rule, cure string) {
	n := j.State.Nodes[name]
	if why, unreadable := j.State.UnreadableNodes[name]; unreadable {
		return fmt.Sprintf("the record of node %q in mesh state cannot be read: %.200s", name, why), "write it anew with its labels: stead node add " + name
	}
	switch {
	case n == nil:
		cure = "stead node add " + name + ", or start its host"
		if near := j.nearest(name, j.before.Nodes()); near != "" {
			cure = fmt.Sprintf("did you mean %s? if not: %s", near, cure)
		}
		return fmt.Sprintf("%q is no node of this mesh", name), cure
	case n.Removed:
		return fmt.Sprintf("node %q was %s", name, assign.ByAt("removed", n.By, n.At)), "leave it out, or bring it back: stead node add " + name
	}
	return "", ""
}

// labelKeys are the labels that nodes carry, each with its values.
func (j *judge) labelKeys() map[string][]string {
	if j.labels != nil {
		return j.labels
	}
	seen := map[[2]string]bool{}
	j.labels = map[string][]string{}
	for _, name := range j.before.Nodes() {
		for k, v := range j.State.Nodes[name].Labels {
			if !seen[[2]string{k, v}] {
				seen[[2]string{k, v}] = true
				j.labels[k] = append(j.labels[k], v)
			}
		}
	}
	for _, values := range j.labels {
		slices.Sort(values)
	}
	return j.labels
}

// nowhere warns of a declaration that is on no node. It lands all the same: its
// nodes may come.
func (j *judge) nowhere(c *change) {
	is := alive(c.is)
	if is == nil || len(j.after.NodesOf(is.Address)) > 0 {
		return
	}
	a := is.Address
	if a.All {
		j.warn("%s is on no node: this mesh has none yet", is.Name)
		return
	}
	if len(a.Labels) == 0 {
		return // each of its nodes was warned of
	}
	keys := j.labelKeys()
	for _, key := range slices.Sorted(maps.Keys(a.Labels)) {
		value := a.Labels[key]
		if len(keys[key]) == 0 || slices.Contains(keys[key], value) {
			continue
		}
		near := j.nearest(value, keys[key])
		if near == "" {
			j.warn("%s is on no node: no node carries %s=%s; %s is carried with %s", is.Name, key, value, key, assign.List(keys[key]))
		} else {
			j.warn("%s is on no node: no node carries %s=%s; did you mean %s?", is.Name, key, value, near)
		}
		return
	}
	j.warn("%s is on no node: none carries %s", is.Name, strings.TrimPrefix(a.String(), "labels "))
}

// full judges that no node gets more declarations than one may have.
func (j *judge) full() {
	over := map[string]int{}
	for _, name := range j.after.Nodes() {
		if n := j.after.Count(name); n > wire.MaxEntries {
			over[name] = n
		}
	}
	if len(over) == 0 {
		return
	}
	for _, c := range j.changes {
		most, nodes := 0, []string(nil)
		for _, name := range c.gain {
			if n := over[name]; n > 0 {
				most, nodes = max(most, n), append(nodes, name)
				delete(over, name) // once is enough
			}
		}
		if len(nodes) > 0 {
			j.problem(c, addressing(c.is.Address), fmt.Sprintf("%s would have %d declarations; a node has at most %d", assign.List(nodes), most, wire.MaxEntries), "address fewer of them to it")
		}
	}
}

// addressing is the field that a is declared by.
func addressing(a assign.Address) string {
	switch {
	case a.All:
		return "all"
	case len(a.Nodes) > 0:
		return "nodes"
	}
	return "labels"
}
