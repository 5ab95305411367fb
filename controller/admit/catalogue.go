package admit

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/subject"
	"stead/modules"
	"stead/seats"
)

// Catalogue is what a version of stead brings to every mesh. Edition numbers it: it
// rises with every change, so that a controller of an older version does not undo
// what a newer one brought.
type Catalogue struct {
	Edition int
	Seats   []seats.Seat
	Modules []modules.Manifest
}

// Check returns an error of class invalid that names everything by which c
// contradicts itself.
func (c Catalogue) Check() error {
	var all []error
	names := map[string]bool{}
	once := func(what, name string) {
		if names[what+" "+name] {
			all = append(all, fmt.Errorf("%s %q stands twice", what, name))
		}
		names[what+" "+name] = true
	}
	for _, s := range c.Seats {
		once("seat", string(s.Name))
		all = append(all, checkSeat(s))
	}
	for _, m := range c.Modules {
		once("module", m.Name)
		all = append(all, m.Check())
		for _, claim := range m.Claims {
			if !names["seat "+string(claim)] {
				all = append(all, fmt.Errorf("module %q claims seat %q, and there is none", m.Name, string(claim)))
			}
		}
		services, err := declarations(m)
		all = append(all, err)
		for _, s := range services {
			once("declaration", s.Name)
		}
	}
	if err := errors.Join(all...); err != nil {
		return fault.New(fault.Invalid, "check", "catalogue", err)
	}
	return nil
}

// checkSeat: a seat whose name begins with "node-" has one holder on each node,
// and no other seat has.
func checkSeat(s seats.Seat) error {
	_, err := subject.ParseSeat(string(s.Name))
	all := []error{err}
	if s.Scope != seats.NodeScope || !strings.HasPrefix(string(s.Name), "node-") {
		all = append(all, fmt.Errorf("seat %q of scope %q is no seat of nodes", string(s.Name), s.Scope))
	}
	if len(s.Verbs) == 0 {
		all = append(all, fmt.Errorf("seat %q has no verbs", string(s.Name)))
	}
	for i, v := range s.Verbs {
		_, err := subject.ParseVerb(string(v.Name))
		all = append(all, err)
		if v.Class != subject.Read && v.Class != subject.Write {
			all = append(all, fmt.Errorf("verb %q of seat %q neither reads nor acts", string(v.Name), string(s.Name)))
		}
		if i > 0 && v.Name <= s.Verbs[i-1].Name {
			all = append(all, fmt.Errorf("verb %q of seat %q is not in order", string(v.Name), string(s.Name)))
		}
		if !json.Valid(v.Arguments) || !json.Valid(v.Reply) {
			all = append(all, fmt.Errorf("verb %q of seat %q has no schemas", string(v.Name), string(s.Name)))
		}
	}
	return errors.Join(all...)
}

// declarations are what m declares, under the names that it is declared by.
func declarations(m modules.Manifest) ([]*shape.Service, error) {
	var all []*shape.Service
	for i, text := range m.Declarations {
		file := fmt.Sprintf("declaration %d of module %s", i+1, m.Name)
		services, problems := shape.Parse(file, []byte(text))
		if err := problems.Err(); err != nil {
			return nil, err
		}
		if len(services) == 0 {
			return nil, fault.New(fault.Invalid, "read", file, errors.New("it declares nothing"))
		}
		for _, s := range services {
			if len(s.Nodes) > 0 || len(s.Labels) > 0 || s.All {
				return nil, fault.New(fault.Invalid, "read", file, fmt.Errorf("%q is addressed; it goes where its module goes", s.Name))
			}
			own, err := s.ForModule(m.Name)
			if err != nil {
				return nil, err
			}
			all = append(all, own)
		}
	}
	return all, nil
}
