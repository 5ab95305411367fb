package assign

import (
	"maps"
	"slices"
	"time"
)

// Changed returns the nodes of after that would be told something else than in
// before: sorted. It is what hints go to.
func Changed(before, after *Placement) []string {
	if before.state.Epoch != after.state.Epoch || !sameKeys(before.state.UnreadableDeclarations, after.state.UnreadableDeclarations) {
		return after.nodes
	}
	c := comparison{before, after, map[string]bool{}}
	for name, d := range after.state.Declarations {
		c.compare(before.state.Declarations[name], d)
	}
	for name, d := range before.state.Declarations {
		if after.state.Declarations[name] == nil {
			c.compare(d, nil)
		}
	}
	touched, catalogue := c.touched, sameCatalogue(before.state, after.state)
	for _, name := range after.nodes {
		moved := after.state.Nodes[name] != before.state.Nodes[name]
		if moved && !(sameAccount(before.state.Nodes[name], after.state.Nodes[name]) && samePauses(before.state.Nodes[name], after.state.Nodes[name])) ||
			moved && !slices.EqualFunc(before.Set(name), after.Set(name), sameEntry) || (moved || !catalogue) && !sameTools(before, after, name) {
			touched[name] = true
		}
	}
	var changed []string
	for _, name := range after.nodes {
		if touched[name] {
			changed = append(changed, name)
		}
	}
	return changed
}

// comparison is of two placements; touched are the nodes for which they differ.
type comparison struct {
	before, after *Placement
	touched       map[string]bool
}

// compare notes the nodes for which is is another entry than was.
func (c comparison) compare(was, is *Declaration) {
	if was == is {
		return
	}
	var old, now []string
	if was != nil && !was.Withdrawn {
		old = c.before.NodesOf(was.Address)
	}
	if is != nil && !is.Withdrawn {
		now = c.after.NodesOf(is.Address)
	}
	names := [][]string{nil, nil, nil}
	names[0], names[1] = Diff(old, now)
	if old != nil && now != nil && !sameEntry(was, is) {
		names[2] = now
	}
	for _, name := range slices.Concat(names...) {
		c.touched[name] = true
	}
}

// sameAccount reports whether an index of b says of the account what one of a says; a
// node that is not there is told of none.
func sameAccount(a, b *Node) bool {
	if a == nil || a.Removed {
		a = &Node{}
	}
	return a.Account == b.Account && linger(a) == linger(b)
}

func sameEntry(a, b *Declaration) bool {
	return a.Name == b.Name && a.UID == b.UID && a.Generation == b.Generation && a.Digest == b.Digest
}

func sameKeys(a, b map[string]string) bool {
	return maps.EqualFunc(a, b, func(string, string) bool { return true })
}

// Diff returns the names of after that are not in before, and those of before
// that are not in after. Both are sorted, and so are the results, which the caller
// does not change.
func Diff(before, after []string) (gained, lost []string) {
	switch {
	case len(before) == 0 || len(after) == 0:
		return after, before
	case len(before) == len(after) && &before[0] == &after[0]:
		return nil, nil
	}
	for len(before) > 0 && len(after) > 0 {
		switch {
		case before[0] == after[0]:
			before, after = before[1:], after[1:]
		case before[0] < after[0]:
			lost, before = append(lost, before[0]), before[1:]
		default:
			gained, after = append(gained, after[0]), after[1:]
		}
	}
	return append(gained, after...), append(lost, before...)
}

// NewNode returns the record of a node that was not known: no labels, no account.
func NewNode(name, by string, at time.Time) *Node {
	return &Node{Name: name, Linger: "auto", By: by, At: at}
}

// ByAt says who did what when, for a person: "removed by operator alice on
// 2026-11-30 at 04:12 UTC".
func ByAt(did, by string, at time.Time) string {
	if by != "" {
		did += " by " + by
	}
	if !at.IsZero() {
		did += at.UTC().Format(" on 2006-01-02 at 15:04 UTC")
	}
	return did
}
