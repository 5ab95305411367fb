// Package modules is the words of a unit of delivery: a module's manifest says
// what it needs of a node, which seats it claims there, which tools it brings,
// and what it declares. Catalogue lists the modules that are built in.
//
// A controller assigns a module to every node whose profile reports what the
// manifest requires; the node's runtime then serves its tools and files its
// claims, and what it declares is declared there, under names MODULE.NAME.
// The package is words only.
package modules

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/seats"
)

// Manifest says what a module is.
type Manifest struct {
	Name    string `json:"name"` // a DNS label
	Version int    `json:"version"`
	Meaning string `json:"meaning"` // one sentence
	// Requires is the capability of the nodes that it is assigned to; "" is every
	// node.
	Requires string         `json:"requires,omitempty"`
	Claims   []subject.Seat `json:"claims,omitempty"`
	Tools    []Tool         `json:"tools,omitempty"`
	// Declarations are documents of declarations without addressing, whose names
	// become MODULE.NAME.
	Declarations []string `json:"declarations,omitempty"`
}

// Tool is a callable of a module. A verb of a seat that the module holds is
// served by the tool of its name.
type Tool struct {
	Name      subject.Verb    `json:"name"`
	Class     subject.Class   `json:"class"`
	Meaning   string          `json:"meaning"`
	Arguments json.RawMessage `json:"arguments"` // a JSON schema
	Reply     json.RawMessage `json:"reply"`
	Follows   bool            `json:"follows,omitempty"`
}

// Claim is what the module files for one of its seats on a node.
func (m Manifest) Claim(s subject.Seat, n subject.Node) seats.Claim {
	c := seats.Claim{Seat: s, Module: m.Name, Node: n}
	for _, t := range m.Tools {
		c.Verbs = append(c.Verbs, t.Name)
	}
	return c
}

var name = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) })

// Check returns an error of class invalid when a manifest contradicts itself.
func (m Manifest) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "module", fmt.Sprintf("%q", m.Name), fmt.Errorf(format, args...))
	}
	if !name().MatchString(m.Name) {
		return bad("its name must be a DNS label")
	}
	var seen []subject.Verb
	for _, t := range m.Tools {
		if _, err := subject.ParseVerb(string(t.Name)); err != nil {
			return bad("tool: %w", err)
		}
		if t.Class != subject.Read && t.Class != subject.Write {
			return bad("tool %q neither reads nor acts", string(t.Name))
		}
		if slices.Contains(seen, t.Name) {
			return bad("tool %q stands twice", string(t.Name))
		}
		seen = append(seen, t.Name)
	}
	return nil
}
