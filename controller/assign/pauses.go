package assign

import (
	"cmp"
	"slices"
	"time"

	"stead/host/unit"
	"stead/mesh/wire"
)

// Pause returns the pause of a unit of n, also one that has ended; nil for none.
func (n *Node) Pause(scope unit.Scope, name unit.Name) *wire.Pause {
	for i := range n.Pauses {
		if p := &n.Pauses[i]; p.Scope == scope && p.Unit == name {
			return p
		}
	}
	return nil
}

// Pausing returns the pauses of n that have not ended at now.
func (n *Node) Pausing(now time.Time) []wire.Pause {
	var all []wire.Pause
	for _, p := range n.Pauses {
		if !p.Over(now) {
			all = append(all, p)
		}
	}
	return all
}

// WithPause returns the pauses of n that have not ended at now, with p in the place
// of any of its unit.
func (n *Node) WithPause(p wire.Pause, now time.Time) []wire.Pause {
	all := append(n.WithoutPause(p.Scope, p.Unit, now), p)
	slices.SortFunc(all, func(a, b wire.Pause) int { return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit)) })
	return all
}

// WithoutPause returns the pauses of n that have not ended at now, but for that of a
// unit.
func (n *Node) WithoutPause(scope unit.Scope, name unit.Name, now time.Time) []wire.Pause {
	return slices.DeleteFunc(n.Pausing(now), func(p wire.Pause) bool { return p.Scope == scope && p.Unit == name })
}

// samePauses reports whether an index of b has the pauses of one of a; a node that is
// not there has none.
func samePauses(a, b *Node) bool {
	if a == nil || a.Removed {
		a = &Node{}
	}
	return slices.EqualFunc(a.Pauses, b.Pauses, wire.Pause.Same)
}
