package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

// getSeats reads seats by name.
func (d *desk) getSeats(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	on, held := map[subject.Seat]int{}, map[subject.Seat]int{}
	for _, h := range d.holders(p, p.Nodes()) {
		on[h.Seat]++
		if h.Module != "" {
			held[h.Seat]++
		}
	}
	full := newPage()
	for _, name := range sortedKeys(p.State().Seats) {
		s := p.State().Seats[name]
		if s.Gone || name <= r.After || len(r.Names) > 0 && !slices.Contains(r.Names, name) {
			continue
		}
		w := wire.Seat{Seat: s.Seat, Nodes: on[s.Name], Held: held[s.Name], Revision: s.Revision, By: s.By, At: s.At}
		if !full.takes(w) {
			reply.Next = string(reply.Seats[len(reply.Seats)-1].Name)
			return
		}
		reply.Seats = append(reply.Seats, w)
	}
}

// getModules reads modules by name; with nodes or labels, those that are assigned
// to one of these nodes.
func (d *desk) getModules(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	nodes := chosen(p, r)
	narrow := len(r.Nodes) > 0 || len(r.Labels) > 0
	full := newPage()
	for _, name := range sortedKeys(p.State().Modules) {
		m := p.State().Modules[name]
		if m.Gone || name <= r.After || len(r.Names) > 0 && !slices.Contains(r.Names, name) {
			continue
		}
		on := p.NodesOf(m.Address())
		if narrow && !meet(on, nodes) {
			continue
		}
		w := wire.Module{Manifest: m.Manifest, On: len(on), Revision: m.Revision, By: m.By, At: m.At}
		if !full.takes(w) {
			reply.Next = reply.Modules[len(reply.Modules)-1].Name
			return
		}
		reply.Modules = append(reply.Modules, w)
	}
}

// getHolders reads who holds what by node and seat. What comes after NODE/SEAT is
// the next page.
func (d *desk) getHolders(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	afterNode, afterSeat, _ := strings.Cut(r.After, "/")
	full := newPage()
	for _, h := range d.holders(p, chosen(p, r)) {
		node, seat := string(h.Node), string(h.Seat)
		if node < afterNode || node == afterNode && seat <= afterSeat || len(r.Names) > 0 && !slices.Contains(r.Names, seat) {
			continue
		}
		if !full.takes(h) {
			last := reply.Holders[len(reply.Holders)-1]
			reply.Next = fmt.Sprintf("%s/%s", last.Node, last.Seat)
			return
		}
		reply.Holders = append(reply.Holders, h)
	}
}

// holders are who holds the seats of nodes, as this controller's copy has it: by
// node and seat, and those among them that nobody holds.
func (d *desk) holders(p *assign.Placement, nodes []string) []wire.Holder {
	claims := map[string][]state.Claim{}
	for _, c := range d.store.Claims() {
		claims[c.Node] = append(claims[c.Node], c)
	}
	var all []wire.Holder
	for _, node := range nodes {
		claimed, since := map[subject.Seat]string{}, map[subject.Seat]time.Time{}
		for _, c := range claims[node] {
			claimed[c.Seat], since[c.Seat] = c.Module, c.At
		}
		modules := map[subject.Seat]string{}
		for _, h := range p.Holders(node, claimed) {
			modules[h.Seat] = h.Module
		}
		for _, s := range p.Seats(node) {
			h := wire.Holder{Holder: seats.Holder{Seat: s.Name, Node: subject.Node(node), Module: modules[s.Name]}}
			if h.Module != "" {
				h.Since = since[s.Name]
			}
			all = append(all, h)
		}
	}
	return all
}
