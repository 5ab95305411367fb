package assign

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stead/host/shape"
	"stead/mesh/wire"
)

// markHash is how many bytes of a hash a mark holds of uid and addressing each.
const markHash = 6

// Mark returns the mark of d as it stands: "" of none and of one that is
// withdrawn.
func Mark(d *Declaration) wire.Mark {
	if d == nil || d.Withdrawn {
		return ""
	}
	return wire.Mark(strings.Join([]string{short(d.UID), strconv.FormatUint(d.Generation, 10), short(d.Address.key())}, "."))
}

// Since says how the declaration of mark now came to be from the one of mark
// seen: wire.New, Edited, Moved, Gone, or Unchanged when they are the same. A
// mark that nobody made is of another declaration.
func Since(seen, now wire.Mark) string {
	switch {
	case seen == now:
		return wire.Unchanged
	case now == "":
		return wire.Gone
	}
	was, is := strings.Split(string(seen), "."), strings.Split(string(now), ".")
	switch {
	case len(was) != 3 || len(is) != 3 || was[0] != is[0]:
		return wire.New
	case was[1] != is[1]:
		return wire.Edited
	}
	return wire.Moved
}

func short(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:markHash])
}

// AddressOf returns the addressing of s, in the form in which it is kept.
func AddressOf(s *shape.Service) Address {
	a := Address{Labels: maps.Clone(s.Labels), All: s.All}
	if len(s.Nodes) > 0 {
		a.Nodes = s.Nodes
		a.Nodes = slices.Clone(a.sorted())
	}
	return a
}

// Same reports whether a and b address the same, in whichever order.
func (a Address) Same(b Address) bool { return a.key() == b.key() }

// key is a text that is the same for the same addressing and for no other. No
// name, key or value of a label holds a space.
func (a Address) key() string {
	switch {
	case a.All:
		return "all"
	case len(a.Nodes) > 0:
		return "nodes " + strings.Join(a.sorted(), " ")
	case a.Capability != "":
		return "capability " + a.Capability
	}
	return "labels " + labelsKey(a.Labels)
}

// sorted are the nodes that a names, which mostly are sorted already.
func (a Address) sorted() []string {
	for i := 1; i < len(a.Nodes); i++ {
		if a.Nodes[i-1] >= a.Nodes[i] {
			return slices.Compact(slices.Sorted(slices.Values(a.Nodes)))
		}
	}
	return a.Nodes
}

func labelsKey(labels map[string]string) string {
	parts := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, k+" "+labels[k])
	}
	return strings.Join(parts, " ")
}

// String says whom a addresses, for a person: "all", "labels role=web", "nodes
// web1, web2 and 7 more".
func (a Address) String() string {
	switch {
	case a.All:
		return "all"
	case len(a.Nodes) > 0:
		return "nodes " + List(a.Nodes)
	case a.Capability != "":
		return "capability " + a.Capability
	}
	parts := make([]string, 0, len(a.Labels))
	for _, k := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, k+"="+a.Labels[k])
	}
	return "labels " + strings.Join(parts, ",")
}

// Listed is how many names List spells out before it counts.
const Listed = 3

// List names the first few of names and counts the others: "web1", "web1 and
// web2", "web1, web2, web3 and 37 more".
func List(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n == 1:
		return names[0]
	case n <= Listed:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:Listed], ", "), len(names)-Listed)
}
