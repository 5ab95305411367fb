package assign

import "slices"

// former is, for whoever had something and has it no more, the revision at which
// it was taken away, worked out once: the last one of all that was for every node,
// of all that named a node, and of each selection by labels.
type former struct {
	all      uint64
	named    map[string]uint64
	labelled []taken
	selector map[string]int // by labelsKey: its place in labelled
}

type taken struct {
	labels   map[string]string
	revision uint64
}

// Past are the addressings that d may still be found at besides its own: those of
// a tombstone, and the one before the last change.
func (d *Declaration) Past() []Address {
	var past []Address
	if d.Withdrawn && !d.Address.None() {
		past = append(past, d.Address)
	}
	if !d.Former.None() {
		past = append(past, d.Former)
	}
	return past
}

// Formerly returns the nodes that had d before its last change, or were about to,
// and do not have it now. Sorted.
func (p *Placement) Formerly(d *Declaration) []string {
	var had, has []string
	for _, a := range d.Past() {
		had = append(had, p.NodesOf(a)...)
	}
	if !d.Withdrawn {
		has = p.NodesOf(d.Address)
	}
	slices.Sort(had)
	gone, _ := Diff(has, slices.Compact(had))
	return gone
}

func newFormer(s *State) *former {
	f := &former{named: map[string]uint64{}, selector: map[string]int{}}
	for name, d := range s.Declarations {
		if _, unreadable := s.UnreadableDeclarations[name]; unreadable {
			continue
		}
		for _, a := range d.Past() {
			f.note(a, d.Revision)
		}
	}
	return f
}

func (f *former) note(a Address, revision uint64) {
	switch {
	case a.All:
		f.all = max(f.all, revision)
	case len(a.Nodes) > 0:
		for _, node := range a.Nodes {
			f.named[node] = max(f.named[node], revision)
		}
	case len(a.Labels) > 0:
		key := labelsKey(a.Labels)
		i, ok := f.selector[key]
		if !ok {
			i = len(f.labelled)
			f.selector[key], f.labelled = i, append(f.labelled, taken{labels: a.Labels})
		}
		f.labelled[i].revision = max(f.labelled[i].revision, revision)
	}
}

// of is the last revision at which something was taken from n; 0 for none.
func (f *former) of(n *Node) uint64 {
	last := max(f.all, f.named[n.Name])
	for _, t := range f.labelled {
		if t.revision > last && (Address{Labels: t.labels}).Holds(n) {
			last = t.revision
		}
	}
	return last
}
