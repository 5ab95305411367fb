package controller

import (
	"context"
	"slices"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

// maxCapabilities is how many capabilities of a node are kept.
const maxCapabilities = 64

// capable is what a node with a profile can, when it could had before. As long as
// its service manager does not answer, its host does not know all of it, and
// nothing is taken from the node for that.
func capable(p *wire.Profile, had []string) []string {
	if p == nil {
		return had
	}
	var all []string
	for _, c := range p.Capabilities {
		if shape.LabelWord(c) {
			all = append(all, c)
		}
	}
	if p.Systemd == "" {
		all = append(all, had...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), maxCapabilities)]
}

// unlike reports whether the record of a node is missing, or another than this
// controller's copy of its profile asks for.
func (d *desk) unlike(st *assign.State, node string) bool {
	n := st.Nodes[node]
	if n == nil {
		return st.UnreadableNodes[node] == ""
	}
	p, ok := d.store.Profiles()[node]
	return ok && !n.Removed && !slices.Equal(capable(&p, n.Capabilities), n.Capabilities)
}

// record is what the record of a node is to be, nil when it is right. What a node
// can is read from the store, behind st: a commit on st then holds what was told
// last, whichever controller it was told to.
func (d *desk) record(ctx context.Context, st *assign.State, node string) (*assign.Node, error) {
	was := st.Nodes[node]
	switch {
	case was == nil && st.UnreadableNodes[node] != "", was != nil && was.Removed:
		return nil, nil
	case was == nil:
		n := assign.NewNode(node, "host "+node, d.now())
		if p, ok := d.store.Profiles()[node]; ok {
			n.Capabilities = capable(&p, nil)
		}
		return n, nil
	}
	p, err := d.store.Profile(ctx, node)
	if err != nil {
		return nil, err
	}
	can := capable(p, was.Capabilities)
	if slices.Equal(can, was.Capabilities) {
		return nil, nil
	}
	n := *was
	n.Capabilities, n.By, n.At = can, "host "+node, d.now()
	return &n, nil
}
