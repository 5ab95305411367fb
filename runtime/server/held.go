package server

import (
	"errors"
	"fmt"

	"stead/host/fault"
	"stead/mesh/wire"
	"stead/modules"
	"stead/runtime/tool"
	"stead/seats"
)

// built is what this program brings of each module, by its name.
type built map[string][]tool.Tool

// held are the tools that t has this runtime serve: those of assigned modules
// whose seats they hold here. A holder that does not serve its whole seat, by the
// rule that controllers judge by, serves nothing of it, and is told in troubles.
func (b built) held(t *wire.Tools) (tools []tool.Tool, troubles []error) {
	for _, h := range t.Held {
		if string(h.Node) != t.Node || !assigned(t, h.Module) {
			continue
		}
		s, err := seats.Find(t.Seats, string(h.Seat))
		if err != nil {
			troubles = append(troubles, err)
			continue
		}
		some, err := b.of(s, h)
		if err != nil {
			troubles = append(troubles, err)
			continue
		}
		tools = append(tools, some...)
	}
	return tools, troubles
}

// of are the tools by which a module serves a seat, all of them or none.
func (b built) of(s seats.Seat, h seats.Holder) ([]tool.Tool, error) {
	c := seats.Claim{Seat: h.Seat, Module: h.Module, Node: h.Node}
	all, known := b[h.Module]
	if !known {
		return nil, c.Refused(fault.Unsupported, errors.New("this version of stead does not bring the module"))
	}
	var tools []tool.Tool
	for _, t := range all {
		v, is := s.Verb(t.Is.Name)
		if !is || t.Seat != s.Name {
			continue
		}
		if v.Class != t.Is.Class {
			return nil, c.Refused(fault.Unsupported, fmt.Errorf("verb %q is of class %s there, and of %s in this version of stead", v.Name, v.Class, t.Is.Class))
		}
		c.Verbs = append(c.Verbs, v.Name)
		tools = append(tools, t)
	}
	if err := seats.Judge(s, c, h.Module); err != nil {
		return nil, err
	}
	return tools, nil
}

func assigned(t *wire.Tools, module string) bool {
	for _, m := range t.Modules {
		if m.Name == module {
			return true
		}
	}
	return false
}

// catalogue checks that b brings what the manifests of this program say.
func (b built) catalogue() error {
	for _, m := range modules.Catalogue() {
		if len(b[m.Name]) != len(m.Tools) {
			return fault.New(fault.Internal, "new runtime", m.Name, fmt.Errorf("%d tools are built in, and the manifest has %d", len(b[m.Name]), len(m.Tools)))
		}
	}
	return nil
}
