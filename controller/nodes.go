package controller

import (
	"stead/controller/assign"
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

// node is a node as people see it.
func (d *desk) node(p *assign.Placement, n *assign.Node) wire.Node {
	s := d.store.Summary(n.Name)
	w := wire.Node{
		Name: n.Name, State: d.standing(n, s), Labels: n.Labels, Account: n.Account, Linger: n.Linger,
		Seen: d.store.Seen(n.Name), Profile: d.profile(n.Name), Revision: n.Revision, By: n.By, At: n.At,
	}
	w.Declared = p.Count(n.Name)
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
