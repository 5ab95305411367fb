package admit

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// Seed decides what of c is to be written: seats and modules that are new, others
// than those that stand, or not to be read; tombstones of those that left c; and
// what the modules declare, each addressed as its module is assigned. What a
// controller of a later edition wrote stays as it is, and with it what such a
// module declares. Errors: those of Apply, and of Check.
//
// Nobody is asked about what is taken from nodes by it.
func Seed(b Basis, c Catalogue) (Decision, error) {
	if err := c.Check(); err != nil {
		return Decision{}, err
	}
	j, err := newJudge(b, "seed", "", wire.Version)
	if err != nil {
		return Decision{}, err
	}
	s := seeding{judge: j, Catalogue: c}
	for _, m := range c.Modules {
		if err := s.declare(m); err != nil {
			return Decision{}, err
		}
	}
	s.withdraw()
	j.place(nil)
	for _, one := range j.changes {
		j.reach(one)
	}
	d := j.decide(nil, "")
	d.Seats, d.Modules = s.seats(), s.modules()
	return d, nil
}

// seeding is a catalogue that is being held against mesh state.
type seeding struct {
	*judge
	Catalogue
}

// due reports whether what stands is to be written anew; nil is nothing, or
// nothing that can be read.
func (s seeding) due(stands *assign.Record, differs func() bool) bool {
	return stands == nil || stands.Edition <= s.Edition && (stands.Gone || differs())
}

// over reports whether what stands is to end, since it left the catalogue.
func (s seeding) over(stands assign.Record) bool { return !stands.Gone && stands.Edition <= s.Edition }

func (s seeding) record(gone bool) assign.Record {
	return assign.Record{Gone: gone, Edition: s.Edition, By: s.Who, At: s.Now}
}

func (s seeding) seats() []*assign.Seat {
	var all []*assign.Seat
	in := map[string]bool{}
	for _, seat := range s.Seats {
		in[string(seat.Name)] = true
		var stands *assign.Record
		is := s.State.Seats[string(seat.Name)]
		if is != nil {
			stands = &is.Record
		}
		if s.due(stands, func() bool { return !alike(is.Seat, seat) }) {
			all = append(all, &assign.Seat{Seat: seat, Record: s.record(false)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.State.Seats)) {
		if is := s.State.Seats[name]; !in[name] && s.over(is.Record) {
			all = append(all, &assign.Seat{Seat: seats.Seat{Name: is.Name}, Record: s.record(true)})
		}
	}
	return all
}

func (s seeding) modules() []*assign.Module {
	var all []*assign.Module
	for _, m := range s.Modules {
		var stands *assign.Record
		is := s.State.Modules[m.Name]
		if is != nil {
			stands = &is.Record
		}
		if s.due(stands, func() bool { return !alike(is.Manifest, m) }) {
			all = append(all, &assign.Module{Manifest: m, Record: s.record(false)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.State.Modules)) {
		if is := s.State.Modules[name]; !s.has(name) && s.over(is.Record) {
			all = append(all, &assign.Module{Manifest: modules.Manifest{Name: name}, Record: s.record(true)})
		}
	}
	return all
}

func (s seeding) has(module string) bool {
	return slices.ContainsFunc(s.Modules, func(m modules.Manifest) bool { return m.Name == module })
}

// mine reports whether this catalogue says what a module declares. That of a
// module which cannot be read, and which this version does not have, is a later
// one's.
func (s seeding) mine(module string) bool {
	if is := s.State.Modules[module]; is != nil {
		return is.Edition <= s.Edition
	}
	_, unreadable := s.State.UnreadableModules[module]
	return s.has(module) || !unreadable
}

// declare notes what m declares.
func (s seeding) declare(m modules.Manifest) error {
	services, err := declarations(m)
	if err != nil || !s.mine(m.Name) {
		return err
	}
	for _, service := range services {
		c := &change{}
		c.was, _ = s.standing(service.Name) // one that cannot be read is declared anew
		s.propose(c, service, (&assign.Module{Manifest: m}).Address())
		s.changes = append(s.changes, c)
	}
	return nil
}

// withdraw notes what modules declared and declare no more.
func (s seeding) withdraw() {
	wanted := map[string]bool{}
	for _, c := range s.changes {
		wanted[c.is.Name] = true
	}
	for _, d := range s.before.Declared() {
		module := shape.OfModule(d.Name)
		if module == "" || wanted[d.Name] || !s.mine(module) {
			continue
		}
		s.changes = append(s.changes, &change{was: d, how: wire.Gone, is: &assign.Declaration{
			Name: d.Name, UID: d.UID, Generation: d.Generation, Withdrawn: true, By: s.Who, At: s.Now,
		}})
	}
}

// alike reports whether two values say the same.
func alike[T any](a, b T) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}
