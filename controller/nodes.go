package controller

import (
	"context"
	"fmt"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/report"
	"stead/mesh/wire"
)

func (d *desk) getNodes(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	full := newPage()
	for _, name := range chosen(p, r) {
		if name <= r.After {
			continue
		}
		w := d.node(p, p.State().Nodes[name])
		if !full.takes(w) {
			reply.Next = reply.Nodes[len(reply.Nodes)-1].Name
			return
		}
		reply.Nodes = append(reply.Nodes, w)
	}
}

// doubled says of two machines that go by one node's credentials what to do.
func doubled(node string, two *state.Double) string {
	return fmt.Sprintf("two machines use its credentials, and undo each other's reports: %s and %s; "+
		"make others for one of them, stead credentials node NAME, and put them there in place of those of %s", two.One, two.Other, node)
}

// double tells of two machines once, when they are noticed.
func (d *desk) double(ctx context.Context, node string, before *state.Double) {
	two := d.store.Double(node)
	if two == nil || before != nil && before.Since.Equal(two.Since) {
		return
	}
	d.log.Warn("two machines use the credentials of one node", "node", node, "one", two.One.String(), "other", two.Other.String())
	d.audit.add(ctx, wire.Event{
		ID: fmt.Sprintf("double.%s.%d", node, two.Since.UnixNano()), At: two.Since, Source: source, Kind: "double", Node: node, Text: doubled(node, two),
	})
}

// node is a node as people see it.
func (d *desk) node(p *assign.Placement, n *assign.Node) wire.Node {
	s := d.store.Summary(n.Name)
	w := wire.Node{
		Name: n.Name, State: d.standing(n, s), Labels: n.Labels, Account: n.Account, Linger: n.Linger,
		Seen: d.store.Seen(n.Name), Profile: d.profile(n.Name), Revision: n.Revision, By: n.By, At: n.At,
	}
	if two := d.store.Double(n.Name); two != nil && !n.Removed {
		w.Trouble = doubled(n.Name, two)
	}
	w.Declared, w.Pauses = p.Count(n.Name), n.Pausing(d.now())
	if s == nil {
		return w
	}
	source := s.Source
	w.Source = &source
	for _, line := range matching(p, n.Name, s) {
		if w.Outcomes == nil {
			w.Outcomes = make(map[report.Outcome]int)
		}
		w.Outcomes[line.Outcome]++
	}
	return w
}
