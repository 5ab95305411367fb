package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
)

// From where on taking is asked about.
const (
	manyTaken = 10 // placements in all: more than so many
	allOfTwo  = 2  // all there are in the mesh: from so many on
	allOfNode = 3  // all that a node has: from so many on
	fifthOf   = 5  // more than a fifth of what a node has: from so many on
)

// maxRows is how many declarations, and how many nodes, sure lists.
const maxRows = 10

// sure says what would be taken from whom, when that is much: the declarations,
// the largest loss first, and below them the nodes that lose most. It is "" when
// it is not much.
func (j *judge) sure() string {
	var taken []*change
	from := map[string]int{}
	total := 0
	for _, c := range j.changes {
		if len(c.lose) > 0 {
			taken = append(taken, c)
		}
		total += len(c.lose)
		for _, node := range c.lose {
			from[node]++
		}
	}
	hard := j.hardHit(from)
	everything := total >= allOfTwo && total >= j.placements()
	if total <= manyTaken && !everything && len(hard) == 0 {
		return ""
	}
	if len(from) == 1 {
		return strings.Join(slices.Concat([]string{takenHead(taken, from, everything) + ": " + takenNames(taken)}, hard), "\n")
	}
	slices.SortStableFunc(taken, func(a, b *change) int { return len(b.lose) - len(a.lose) })
	return strings.Join(slices.Concat([]string{takenHead(taken, from, everything)}, takenRows(taken), hard), "\n")
}

// placements counts all that is in force, once for each node that has it.
func (j *judge) placements() int {
	n := 0
	for _, nodes := range j.Kept {
		n += len(nodes)
	}
	for _, d := range j.before.Declared() {
		n += len(j.before.NodesOf(d.Address))
	}
	return n
}

// hardHit says which nodes lose all of many, or much of what they have.
func (j *judge) hardHit(from map[string]int) []string {
	keeps := map[string]int{}
	for _, nodes := range j.Kept {
		for _, node := range nodes {
			keeps[node]++
		}
	}
	var rows []string
	more := 0
	for _, node := range slices.Sorted(maps.Keys(from)) {
		lost, had := from[node], j.before.Count(node)+keeps[node]
		row := ""
		switch {
		case lost >= had && lost >= allOfNode:
			row = fmt.Sprintf("  %s would be left with none of its %d", node, had)
		case lost >= fifthOf && lost*5 > had:
			row = fmt.Sprintf("  %s would lose %d of its %d", node, lost, had)
		default:
			continue
		}
		if len(rows) == maxRows {
			more++
			continue
		}
		rows = append(rows, row)
	}
	if more > 0 {
		rows = append(rows, fmt.Sprintf("  and %d further nodes would lose as much", more))
	}
	return rows
}

func takenHead(taken []*change, from map[string]int, everything bool) string {
	what := fmt.Sprintf("%d declarations", len(taken))
	if len(taken) == 1 {
		what = "1 declaration"
	}
	nodes := fmt.Sprintf("%d nodes", len(from))
	if len(from) == 1 {
		for node := range from {
			nodes = fmt.Sprintf("node %q", node)
		}
	}
	head := fmt.Sprintf("%s would be taken from %s", what, nodes)
	if everything {
		head += ", and that is all there is"
	}
	return head
}

func takenNames(taken []*change) string {
	var names []string
	for _, c := range taken[:min(len(taken), maxRows)] {
		names = append(names, c.is.Name)
	}
	if more := len(taken) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func takenRows(taken []*change) []string {
	shown := taken[:min(len(taken), maxRows)]
	wide, count := 0, 0
	for _, c := range shown {
		wide, count = max(wide, len(c.is.Name)), max(count, len(fmt.Sprint(len(c.lose))))
	}
	var rows []string
	for _, c := range shown {
		noun := "nodes"
		if len(c.lose) == 1 {
			noun = "node"
		}
		rows = append(rows, fmt.Sprintf("  %-*s  %*d %-5s  %s", wide, c.is.Name, count, len(c.lose), noun, assign.List(c.lose)))
	}
	if more := len(taken) - len(shown); more > 0 {
		rows = append(rows, fmt.Sprintf("  and %d further declarations", more))
	}
	return rows
}
