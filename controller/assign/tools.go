package assign

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// Modules returns the modules that are assigned to a node, sorted by name.
func (p *Placement) Modules(node string) []*Module {
	if !p.lives(node) {
		return nil
	}
	var all []*Module
	for _, m := range p.modules {
		if p.state.Nodes[node].Has(m.Requires) {
			all = append(all, m)
		}
	}
	return all
}

// assigned returns the module of that name when it is assigned to the node, nil
// otherwise.
func (p *Placement) assigned(node, module string) *Module {
	if m := p.state.Modules[module]; m != nil && !m.Gone && p.lives(node) && p.state.Nodes[node].Has(m.Requires) {
		return m
	}
	return nil
}

// Seats returns the seats that the modules of a node claim, sorted by name.
func (p *Placement) Seats(node string) []*Seat {
	var all []*Seat
	for _, m := range p.Modules(node) {
		for _, name := range m.Claims {
			if s := p.seat(name); s != nil && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Seat) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// seat returns the seat of that name, nil when there is none.
func (p *Placement) seat(name subject.Seat) *Seat {
	if s := p.state.Seats[string(name)]; s != nil && !s.Gone {
		return s
	}
	return nil
}

// Holders returns who holds the seats of a node, sorted by seat. Claimed are the
// modules whose claims were accepted; one counts only while it is assigned and
// claims the seat.
func (p *Placement) Holders(node string, claimed map[subject.Seat]string) []seats.Holder {
	var all []seats.Holder
	for _, s := range p.Seats(node) {
		if module := claimed[s.Name]; p.counts(node, s, module) {
			all = append(all, seats.Holder{Seat: s.Name, Node: subject.Node(node), Module: module})
		}
	}
	return all
}

func (p *Placement) counts(node string, s *Seat, module string) bool {
	m := p.assigned(node, module)
	return m != nil && slices.Contains(m.Claims, s.Name) && p.state.Nodes[node].Has(s.Requires)
}

// Judge returns nil when c is to be accepted: its seat is there, every verb is
// served, nobody else holds it, and the module is assigned and claims it. Claimed
// is the module whose claim was accepted before, "" for none. Errors are refused
// or conflict, as those of seats.Judge.
//
// No seat comes to be by being claimed: seats are what controllers put into mesh
// state, which opens for nobody else.
func (p *Placement) Judge(c seats.Claim, claimed string) error {
	node := string(c.Node)
	s := p.seat(c.Seat)
	if s == nil {
		return p.noSeat(c)
	}
	if !p.counts(node, s, claimed) {
		claimed = ""
	}
	if err := seats.Judge(s.Seat, c, claimed); err != nil {
		return err
	}
	m := p.state.Modules[c.Module]
	switch {
	case m == nil || m.Gone:
		return c.Refused(fault.Refused, errors.New("there is no such module"))
	case !p.lives(node):
		return c.Refused(fault.Refused, errors.New("this mesh knows no such node"))
	case p.assigned(node, c.Module) == nil:
		return c.Refused(fault.Refused, fmt.Errorf("the module is not assigned: the node does not report %q", m.Requires))
	case !slices.Contains(m.Claims, c.Seat):
		return c.Refused(fault.Refused, errors.New("the manifest of the module does not claim it"))
	case !p.state.Nodes[node].Has(s.Requires):
		return c.Refused(fault.Refused, fmt.Errorf("the node does not report %q", s.Requires))
	}
	return nil
}

func (p *Placement) noSeat(c seats.Claim) error {
	var names []string
	for name := range p.state.Seats {
		if p.seat(subject.Seat(name)) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	err := c.Refused(fault.Refused, errors.New("there is no such seat, and controllers alone make them"))
	return err.WithHint(fault.HintOf(seats.Unknown("seat", string(c.Seat), names)))
}

// Tools returns what the runtime of a node is to serve. Holders are those of
// Holders. Errors are those of Index, and failed when a seat or a module cannot be
// read: what is assigned is not known then, and the runtime goes on as it is.
func (p *Placement) Tools(node string, holders []seats.Holder) (wire.Tools, error) {
	const op = "make tools"
	if err := p.mayTell(op, node); err != nil {
		return wire.Tools{}, err
	}
	if what := p.unread(); what != "" {
		return wire.Tools{}, fault.New(fault.Failed, op, node, errors.New(what+" in mesh state cannot be read")).
			WithHint("start a controller of the newest version of stead that there is: it writes it anew")
	}
	t := wire.Tools{Wire: wire.Version, Mesh: p.state.Mesh, Epoch: p.state.Epoch, Follows: p.state.Follows, Revision: p.state.Revision, Node: node,
		Modules: []modules.Manifest{}, Seats: []seats.Seat{}, Held: append([]seats.Holder{}, holders...), Units: p.units(node)}
	for _, m := range p.Modules(node) {
		t.Modules = append(t.Modules, m.Manifest)
	}
	for _, s := range p.Seats(node) {
		t.Seats = append(t.Seats, s.Seat)
	}
	return fitted(t), nil
}

// unread names the first seat or module that cannot be read, "" for none.
func (p *Placement) unread() string {
	for _, name := range slices.Sorted(maps.Keys(p.state.UnreadableSeats)) {
		return fmt.Sprintf("seat %q", name)
	}
	for _, name := range slices.Sorted(maps.Keys(p.state.UnreadableModules)) {
		return fmt.Sprintf("module %q", name)
	}
	return ""
}

// units are what is declared for a node, as its runtime is told of it.
func (p *Placement) units(node string) []wire.DeclaredUnit {
	all := []wire.DeclaredUnit{}
	for _, d := range p.Set(node) {
		s := d.Service
		if s.File != nil {
			continue // no unit
		}
		u := wire.DeclaredUnit{Paused: p.state.Nodes[node].Pause(s.Scope, s.Unit), Unit: string(s.Unit), Scope: string(s.Scope), Name: d.Name, Generation: d.Generation, Ensure: string(s.Ensure), Enabled: s.Enabled}
		for _, alias := range s.Aliases() {
			u.Aliases = append(u.Aliases, string(alias))
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b wire.DeclaredUnit) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// fitted is t in one message: without aliases when it is too large with them, and
// without the last units when it still is.
func fitted(t wire.Tools) wire.Tools {
	if sizeOf(t) <= wire.MaxPage {
		return t
	}
	t.Bare = true
	for i := range t.Units {
		t.Units[i].Aliases = nil
	}
	over := sizeOf(t) - wire.MaxPage
	for n := len(t.Units); over > 0 && n > 0; n-- {
		over -= sizeOf(t.Units[n-1]) + 1
		t.Units, t.Unlisted = t.Units[:n-1], t.Unlisted+1
	}
	return t
}

func sizeOf(v any) int {
	text, _ := json.Marshal(v) // texts and numbers always encode, and schemas are JSON
	return len(text)
}

// sameTools reports whether two placements assign the same to a node: modules and
// seats as they stand.
func sameTools(before, after *Placement, node string) bool {
	return slices.EqualFunc(before.Modules(node), after.Modules(node), sameModule) &&
		slices.EqualFunc(before.Seats(node), after.Seats(node), sameSeat)
}

// sameCatalogue reports whether two states hold the same seats and modules.
func sameCatalogue(a, b *State) bool {
	return maps.EqualFunc(a.Modules, b.Modules, sameModule) && maps.EqualFunc(a.Seats, b.Seats, sameSeat) &&
		sameKeys(a.UnreadableSeats, b.UnreadableSeats) && sameKeys(a.UnreadableModules, b.UnreadableModules)
}

func sameModule(a, b *Module) bool { return a.Name == b.Name && a.Revision == b.Revision }
func sameSeat(a, b *Seat) bool     { return a.Name == b.Name && a.Revision == b.Revision }
