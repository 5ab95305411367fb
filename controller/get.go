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
	"stead/host/shape"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

// maxFilter is how many names one question may have.
const maxFilter = 1000

// get reads one page.
func (d *desk) get(ctx context.Context, caller identity.Caller, r wire.GetRequest) (wire.GetReply, error) {
	if len(r.Names) > maxFilter || len(r.Nodes) > maxFilter {
		return wire.GetReply{}, fault.New(fault.Invalid, "get", r.Kind, fmt.Errorf("more than %d names", maxFilter))
	}
	if caller.Role != identity.Operator {
		r.Content = false
	}
	p := d.current()
	st := p.State()
	reply := wire.GetReply{Mesh: st.Mesh, Epoch: st.Epoch, Revision: st.Revision, Trouble: trouble(st)}
	d.missing(p, r, &reply)
	switch r.Kind {
	case wire.Declarations:
		d.getDeclarations(p, r, &reply)
	case wire.Nodes:
		d.getNodes(p, r, &reply)
	case wire.Reports:
		d.getReports(ctx, p, caller, r, &reply)
	case wire.Seats:
		d.getSeats(p, r, &reply)
	case wire.Modules:
		d.getModules(p, r, &reply)
	case wire.Holders:
		d.getHolders(p, r, &reply)
	default:
		return reply, fault.New(fault.Invalid, "get", fmt.Sprintf("%q", r.Kind), fmt.Errorf("there is no such kind")).
			WithHint("the kinds are declarations, nodes, reports, seats, modules and holders")
	}
	return reply, nil
}

// trouble says what of mesh state cannot be trusted.
func trouble(st *assign.State) string {
	if st.Unsound != nil {
		text := st.Unsound.Error()
		if hint := fault.HintOf(st.Unsound); hint != "" {
			text += " (" + hint + ")"
		}
		return text
	}
	var parts []string
	for _, all := range []struct {
		what string
		of   map[string]string
	}{{"declaration", st.UnreadableDeclarations}, {"node", st.UnreadableNodes}, {"seat", st.UnreadableSeats}, {"module", st.UnreadableModules}} {
		names := sortedKeys(all.of)
		if len(names) > 0 {
			parts = append(parts, fmt.Sprintf("%s %s cannot be read: %s", all.what, assign.List(names), all.of[names[0]]))
		}
	}
	return strings.Join(parts, "; ")
}

// missing names, on the first page, what was asked for and is not known.
func (d *desk) missing(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	if r.After != "" {
		return
	}
	st := p.State()
	note := func(name string, near []string) {
		reply.Missing = append(reply.Missing, name)
		if close := shape.Nearest(name, near); close != "" {
			if reply.Closest == nil {
				reply.Closest = map[string]string{}
			}
			reply.Closest[name] = close
		}
	}
	for _, name := range r.Names {
		near, known := named(p, r.Kind, name)
		if !known {
			note(name, near())
		}
	}
	for _, name := range r.Nodes {
		if st.Nodes[name] == nil {
			note(name, p.Nodes())
		}
	}
}

// named reports whether something of a kind is called name, and has the names of
// all that is.
func named(p *assign.Placement, kind, name string) (near func() []string, known bool) {
	switch kind {
	case wire.Seats, wire.Holders:
		near = func() []string { return namesOf(p.State().Seats, func(s *assign.Seat) bool { return !s.Gone }) }
		return near, slices.Contains(near(), name)
	case wire.Modules:
		near = func() []string { return namesOf(p.State().Modules, func(m *assign.Module) bool { return !m.Gone }) }
		return near, slices.Contains(near(), name)
	}
	one := p.State().Declarations[name]
	return func() []string { return declared(p) }, one != nil && !(one.Withdrawn && kind == wire.Declarations)
}

// namesOf are the names of those that are there, sorted.
func namesOf[V any](all map[string]V, there func(V) bool) []string {
	var names []string
	for _, name := range sortedKeys(all) {
		if there(all[name]) {
			names = append(names, name)
		}
	}
	return names
}

func declared(p *assign.Placement) []string {
	var names []string
	for _, d := range p.Declared() {
		names = append(names, d.Name)
	}
	return names
}

// chosen are the nodes that a question is about, sorted: those that it names, and
// carry the labels; all without either.
func chosen(p *assign.Placement, r wire.GetRequest) []string {
	all := p.Nodes()
	if len(r.Nodes) > 0 {
		// One that was removed is shown to whoever names it.
		all = slices.Compact(slices.Sorted(slices.Values(r.Nodes)))
	}
	var names []string
	for _, name := range all {
		n := p.State().Nodes[name]
		if n != nil && carries(n, r.Labels) {
			names = append(names, name)
		}
	}
	return names
}

func carries(n *assign.Node, labels map[string]string) bool {
	for key, value := range labels {
		if got, ok := n.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// page collects items until a message is full.
type page struct {
	left int
	n    int
}

func newPage() *page { return &page{left: wire.MaxPage} }

// takes reports whether another item fits; the first always does.
func (p *page) takes(item any) bool {
	p.left -= size(item) + 1
	p.n++
	return p.left >= 0 || p.n == 1
}

func (d *desk) getDeclarations(p *assign.Placement, r wire.GetRequest, reply *wire.GetReply) {
	nodes := chosen(p, r)
	narrow := len(r.Nodes) > 0 || len(r.Labels) > 0
	counts := d.count(p)
	full := newPage()
	for _, one := range p.Declared() {
		if one.Name <= r.After || len(r.Names) > 0 && !slices.Contains(r.Names, one.Name) {
			continue
		}
		on := p.NodesOf(one.Address)
		if narrow && !meet(on, nodes) {
			continue
		}
		w := declarationOf(one, r.Content)
		w.On, w.Outcomes = len(on), counts[one.Name]
		if !full.takes(w) {
			reply.Next = reply.Declarations[len(reply.Declarations)-1].Name
			return
		}
		reply.Declarations = append(reply.Declarations, w)
	}
}

// meet reports whether two sorted lists have a name in common.
func meet(a, b []string) bool {
	for i, k := 0, 0; i < len(a) && k < len(b); {
		switch strings.Compare(a[i], b[k]) {
		case 0:
			return true
		case -1:
			i++
		default:
			k++
		}
	}
	return false
}

func declarationOf(d *assign.Declaration, content bool) wire.Declaration {
	w := wire.Declaration{
		Name: d.Name, UID: d.UID, Generation: d.Generation, Revision: d.Revision, Mark: assign.Mark(d),
		Nodes: d.Address.Nodes, Labels: d.Address.Labels, All: d.Address.All, Capability: d.Address.Capability, Module: shape.OfModule(d.Name),
		Digest: d.Digest, Size: len(d.Canonical), By: d.By, At: d.At,
	}
	if d.Service != nil {
		w.Unit, w.Scope = string(d.Service.Object()), string(d.Service.Scope)
	}
	if content {
		w.Canonical = d.Canonical
		if d.Service != nil && d.Service.Sensitive {
			w.Canonical = d.Service.Redacted().Canonical()
		}
	}
	return w
}

// count says how each declaration stands on its nodes: what they report of the
// generation of now.
func (d *desk) count(p *assign.Placement) map[string]map[report.Outcome]int {
	counts := make(map[string]map[report.Outcome]int)
	for _, node := range p.Nodes() {
		for _, line := range matching(p, node, d.store.Summary(node)) {
			if counts[line.Name] == nil {
				counts[line.Name] = make(map[report.Outcome]int)
			}
			counts[line.Name][line.Outcome]++
		}
	}
	return counts
}

// matching are the lines that a node reports of what is declared for it now.
func matching(p *assign.Placement, node string, s *state.Summary) []state.Line {
	if s == nil {
		return nil
	}
	set := p.Set(node) // sorted by name, as the lines are
	var lines []state.Line
	i := 0
	for _, line := range s.Lines {
		for i < len(set) && set[i].Name < line.Name {
			i++
		}
		if i < len(set) && speaks(p, node, s, line, set[i]) {
			lines = append(lines, line)
		}
	}
	return lines
}

// speaks reports whether a line of a node's summary is of a declaration as it
// stands for that node: of its generation, and told when the node had heard of the
// last change of it or of the node's record. Before that it may have been taken
// away meanwhile, and given back.
func speaks(p *assign.Placement, node string, s *state.Summary, l state.Line, d *assign.Declaration) bool {
	st := p.State()
	n := st.Nodes[node]
	return l.Name == d.Name && l.UID == d.UID && l.Generation == d.Generation &&
		n != nil && current(st, s.Source, max(d.Revision, n.Revision))
}

// current reports whether what travels with s speaks of st as it is since a
// revision. What speaks of a revision that is yet to come is of a state that was
// lost, in which the same was something else.
func current(st *assign.State, s wire.Source, since uint64) bool {
	return s.Mesh == st.Mesh && s.Epoch == st.Epoch && s.Current() >= since && s.Current() <= st.Revision
}
