package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

const (
	maxSilent  = 20  // nodes that are named for one declaration
	maxNotable = 5   // reports that are shown of one declaration
	allNotable = 100 // and in one answer
)

// progress says how far declarations have come.
func (d *desk) progress(ctx context.Context, caller identity.Caller, r wire.ProgressRequest) (wire.ProgressReply, error) {
	if len(r.Names) > maxFilter {
		return wire.ProgressReply{}, fault.New(fault.Invalid, "progress", "", fmt.Errorf("%d names; at most %d", len(r.Names), maxFilter))
	}
	if r.Least > d.store.Now().Revision {
		bound, cancel := context.WithTimeout(ctx, reachFor)
		defer cancel()
		if err := d.store.Reach(bound, r.Least); err != nil {
			return wire.ProgressReply{}, err
		}
	}
	p := d.current()
	g := &gauge{d: d, p: p, caller: caller, summaries: d.summaries(p.Nodes()), left: allNotable, room: wire.MaxPage}
	reply := wire.ProgressReply{Revision: p.State().Revision}
	for _, name := range r.Names {
		reply.Names = append(reply.Names, g.measure(name))
	}
	return reply, nil
}

// gauge measures how far declarations have come, at one moment.
type gauge struct {
	d         *desk
	p         *assign.Placement
	caller    identity.Caller
	summaries map[string]*state.Summary
	left      int // reports that may still be shown
	room      int // bytes of them
}

func (g *gauge) measure(name string) wire.ProgressOfName {
	w := wire.ProgressOfName{Name: name}
	one := g.p.State().Declarations[name]
	var on []string
	if one != nil && !one.Withdrawn {
		w.Generation = one.Generation
		on = g.p.NodesOf(one.Address)
		w.Nodes = len(on)
	}
	var notable []state.Line
	var where []string
	for _, node := range on {
		line, ok := lineOf(g.summaries[node], name)
		// Of a node of which nothing is heard nobody knows how it stands now.
		if g.silent(&w, node) || !ok || !speaks(g.p, node, g.summaries[node], line, one) {
			continue
		}
		if w.Outcomes == nil {
			w.Outcomes = make(map[report.Outcome]int)
		}
		w.Outcomes[line.Outcome]++
		if line.Outcome != report.Converged {
			notable, where = append(notable, line), append(where, node)
		}
	}
	g.leaving(&w, one, on)
	w.Notable = g.show(name, notable, where)
	if g.room -= size(w); g.room < 0 { // the numbers always fit
		w.Silent, w.Notable = nil, nil
	}
	return w
}

// leaving counts the nodes that are to give up what is not addressed to them. They
// report it still: what they keep of an epoch before only when it was withdrawn.
// Or they had it, or were about to, and did not say yet that they heard of its end.
func (g *gauge) leaving(w *wire.ProgressOfName, one *assign.Declaration, on []string) {
	var former []string
	if one != nil {
		former = g.p.Formerly(one)
	}
	for _, node := range g.p.Nodes() {
		if _, addressed := slices.BinarySearch(on, node); addressed {
			continue
		}
		_, had := slices.BinarySearch(former, node)
		if !g.reports(node, w.Name, one) && (!had || g.heard(node, one)) {
			continue
		}
		w.Leaving++
		g.silent(w, node)
	}
}

// reports reports whether a node has something under a name that it is to give up.
func (g *gauge) reports(node, name string, one *assign.Declaration) bool {
	s, st := g.summaries[node], g.p.State()
	line, ok := lineOf(s, name)
	if !ok {
		return false
	}
	ours := s.Source.Mesh == st.Mesh && s.Source.Epoch == st.Epoch
	return !slices.Contains(s.Source.Kept, name) || g.p.Ends(one, line.UID, ours, s.Source.Revision)
}

// heard reports whether what a node reports is of the last change of one, or of
// later. One that was never heard of has nothing to give up.
func (g *gauge) heard(node string, one *assign.Declaration) bool {
	s := g.summaries[node]
	if s == nil {
		return g.d.store.Seen(node).IsZero()
	}
	return current(g.p.State(), s.Source, one.Revision)
}

// silent reports whether nothing is heard of a node, and names it then.
func (g *gauge) silent(w *wire.ProgressOfName, node string) bool {
	silent := g.d.silent(g.d.store.Seen(node))
	if silent && len(w.Silent) < maxSilent {
		w.Silent = append(w.Silent, node)
	}
	return silent
}

// rank orders outcomes by how much they want a person.
func rank(o report.Outcome) int {
	switch o {
	case report.Failed:
		return 0
	case report.Refused:
		return 1
	case report.Waiting:
		return 2
	case report.Contested:
		return 3
	}
	return 4
}

// show reads the reports that want a person most.
func (g *gauge) show(name string, lines []state.Line, nodes []string) []wire.NodeReport {
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(lines[a].Outcome) - rank(lines[b].Outcome) })
	var shownReports []wire.NodeReport
	for _, i := range order[:min(len(order), maxNotable, g.left)] {
		w := wire.NodeReport{Node: nodes[i]}
		w.Name, w.UID, w.Generation, w.Outcome, w.Reason = name, lines[i].UID, lines[i].Generation, lines[i].Outcome, lines[i].Reason
		if all, err := g.d.store.Reports(nodes[i], name); err == nil && len(all) == 1 {
			w.Report = shown(all[0], g.caller)
		}
		g.left--
		shownReports = append(shownReports, w)
	}
	return shownReports
}

func lineOf(s *state.Summary, name string) (state.Line, bool) {
	if s == nil {
		return state.Line{}, false
	}
	i, ok := slices.BinarySearchFunc(s.Lines, name, func(l state.Line, name string) int {
		return strings.Compare(l.Name, name)
	})
	if !ok {
		return state.Line{}, false
	}
	return s.Lines[i], true
}
