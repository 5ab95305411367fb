package assign

import (
	"maps"
	"slices"
)

// Placement is who has what in one state, worked out once: it is made with the
// state and kept beside it. It does not change.
type Placement struct {
	state    *State
	nodes    []string       // those that are known and not removed, sorted
	declared []*Declaration // those that are in force and readable, sorted by name
	all      []int          // positions in declared of those for every node
	selected []*group
	selector map[string]*group // by the key of the address
	named    map[string][]int  // node → positions of those that name it
	modules  []*Module         // those that are not gone, sorted by name
	former   *former
}

// group is the declarations of one selection, by labels or by a capability.
type group struct {
	of      Address
	members []int
	nodes   []string // that it holds, sorted
}

// Place works out who has what in s.
func Place(s *State) *Placement {
	p := &Placement{state: s, selector: map[string]*group{}, named: map[string][]int{}, former: newFormer(s)}
	for _, name := range slices.Sorted(maps.Keys(s.Nodes)) {
		if p.lives(name) {
			p.nodes = append(p.nodes, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Declarations)) {
		d := s.Declarations[name]
		if _, unreadable := s.UnreadableDeclarations[name]; d.Withdrawn || unreadable {
			continue
		}
		p.declared = append(p.declared, d)
		p.file(len(p.declared)-1, d.Address)
	}
	p.match()
	for _, name := range slices.Sorted(maps.Keys(s.Modules)) {
		if m := s.Modules[name]; !m.Gone {
			p.modules = append(p.modules, m)
		}
	}
	return p
}

// State is the state that p is of.
func (p *Placement) State() *State { return p.state }

// lives reports whether the node is known, can be read and is not removed.
func (p *Placement) lives(node string) bool {
	n := p.state.Nodes[node]
	_, unreadable := p.state.UnreadableNodes[node]
	return n != nil && !n.Removed && !unreadable
}

// file puts the declaration at position i where it is found again.
func (p *Placement) file(i int, a Address) {
	switch {
	case a.All:
		p.all = append(p.all, i)
	case len(a.Nodes) > 0:
		for _, node := range a.Nodes {
			if at := p.named[node]; len(at) == 0 || at[len(at)-1] != i {
				p.named[node] = append(at, i)
			}
		}
	case len(a.Labels) > 0 || a.Capability != "":
		key := a.key()
		g := p.selector[key]
		if g == nil {
			g = &group{of: a}
			p.selector[key] = g
			p.selected = append(p.selected, g)
		}
		g.members = append(g.members, i)
	}
}

// match finds the nodes of every selection. One by labels looks only at the nodes
// that carry the rarest of them.
func (p *Placement) match() {
	type label struct{ key, value string }
	carriers := map[label][]string{}
	for _, name := range p.nodes {
		for k, v := range p.state.Nodes[name].Labels {
			carriers[label{k, v}] = append(carriers[label{k, v}], name)
		}
	}
	for _, g := range p.selected {
		var few []string
		if g.of.Capability != "" {
			few = p.nodes
		}
		first := true
		for k, v := range g.of.Labels {
			if c := carriers[label{k, v}]; first || len(c) < len(few) {
				few, first = c, false
			}
		}
		for _, name := range few {
			if g.holds(p.state.Nodes[name]) {
				g.nodes = append(g.nodes, name)
			}
		}
	}
}

func (g *group) holds(n *Node) bool { return g.of.Holds(n) }

// Nodes returns the names of all nodes that are known and not removed, sorted.
// The caller does not change it.
func (p *Placement) Nodes() []string { return p.nodes }

// Declared returns what is declared, sorted by name. The caller does not change
// it.
func (p *Placement) Declared() []*Declaration { return p.declared }

// NodesOf returns the names of the nodes that a addresses, sorted. The caller
// does not change it.
func (p *Placement) NodesOf(a Address) []string {
	switch {
	case a.All:
		return p.nodes
	case len(a.Nodes) > 0:
		var there []string
		for _, name := range a.sorted() {
			if p.lives(name) {
				there = append(there, name)
			}
		}
		return there
	}
	if g := p.selector[a.key()]; g != nil {
		return g.nodes
	}
	var there []string
	for _, name := range p.nodes {
		if a.Holds(p.state.Nodes[name]) {
			there = append(there, name)
		}
	}
	return there
}

// Set returns what is declared for a node, sorted by name; nothing for one that
// is unknown or removed.
func (p *Placement) Set(node string) []*Declaration {
	if !p.lives(node) {
		return nil
	}
	at := slices.Concat(p.all, p.named[node])
	for _, g := range p.selected {
		if g.holds(p.state.Nodes[node]) {
			at = append(at, g.members...)
		}
	}
	slices.Sort(at)
	set := make([]*Declaration, len(at))
	for i, j := range at {
		set[i] = p.declared[j]
	}
	return set
}

// Written returns the last revision that wrote the record of a node, or one of the
// declarations that it has now or had before that; 0 for one that is unknown or
// removed.
func (p *Placement) Written(node string) uint64 {
	if !p.lives(node) {
		return 0
	}
	n := p.state.Nodes[node]
	last := max(n.Revision, p.former.of(n))
	for _, d := range p.Set(node) {
		last = max(last, d.Revision)
	}
	return last
}

// WrittenAfter returns the nodes for which Written is above revision, sorted.
func (p *Placement) WrittenAfter(revision uint64) []string {
	touched := map[string]bool{}
	for name, d := range p.state.Declarations {
		if _, unreadable := p.state.UnreadableDeclarations[name]; unreadable || d.Revision <= revision {
			continue
		}
		for _, a := range append(d.Past(), d.Address) {
			for _, node := range p.NodesOf(a) {
				touched[node] = true
			}
		}
	}
	for _, name := range p.nodes {
		if p.state.Nodes[name].Revision > revision {
			touched[name] = true
		}
	}
	return slices.Sorted(maps.Keys(touched))
}

// Count returns how many declarations Set holds.
func (p *Placement) Count(node string) int {
	if !p.lives(node) {
		return 0
	}
	n := len(p.all) + len(p.named[node])
	for _, g := range p.selected {
		if g.holds(p.state.Nodes[node]) {
			n += len(g.members)
		}
	}
	return n
}
