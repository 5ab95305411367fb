package assign

import (
	"fmt"
	"maps"
	"testing"

	"stead/mesh/wire"
)

// large is a mesh of 1,000 nodes and 1,000 declarations: a third for all nodes, a
// third for labels, a third for every second node by its name.
func large() *State {
	var nodes []*Node
	var half []string
	for i := range 1000 {
		name := fmt.Sprintf("node%03d", i)
		nodes = append(nodes, &Node{Name: name, Labels: labels("role", fmt.Sprintf("r%d", i%10), "zone", fmt.Sprintf("z%d", i%3))})
		if i%2 == 0 {
			half = append(half, name)
		}
	}
	s := stateOf(nodes)
	for i := range 1000 {
		a := Address{All: true}
		switch i % 3 {
		case 1:
			a = Address{Labels: labels("role", fmt.Sprintf("r%d", i%10))}
		case 2:
			a = Address{Nodes: half}
		}
		d := declared(fmt.Sprintf("d%03d", i), a)
		s.Declarations[d.Name] = d
	}
	return s
}

// BenchmarkPlace works out who has what among 1,000 nodes and 1,000 declarations.
func BenchmarkPlace(b *testing.B) {
	s := large()
	for b.Loop() {
		Place(s)
	}
}

// BenchmarkIndexes makes the indexes of all 1,000 nodes.
func BenchmarkIndexes(b *testing.B) {
	p := Place(large())
	for b.Loop() {
		for _, node := range p.Nodes() {
			if _, err := p.Index(node, wire.SyncRequest{}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkChanged finds the nodes that hear of an apply of all 1,000
// declarations.
func BenchmarkChanged(b *testing.B) {
	before := large()
	after := *before
	after.Declarations = maps.Clone(before.Declarations)
	for name, d := range before.Declarations {
		edited := *d
		edited.Generation++
		after.Declarations[name] = &edited
	}
	was, is := Place(before), Place(&after)
	for b.Loop() {
		if len(Changed(was, is)) != 1000 {
			b.Fatal("not every node")
		}
	}
}
