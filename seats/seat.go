// Package seats is the words of what a node can be asked: a seat is a named
// role with verbs, a module claims it, and the module whose claim was accepted
// holds it and serves every one of its verbs.
//
// Controllers seed seats, judge claims and say who holds what; runtimes file
// claims and serve what they hold. Both judge by the same pure function, Judge.
// The arguments and replies of each verb are JSON, held to a schema (JSON
// Schema, draft 2020-12) that is a part of the seat. The package is words only;
// its values are safe for concurrent use as long as nobody changes them.
package seats

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/mesh/subject"
)

// NodeScope is that of a seat with one holder on each node. Its name begins with
// "node-", and only a controller makes it.
const NodeScope = "node"

// Seat is a named role.
type Seat struct {
	Name  subject.Seat `json:"name"`
	Scope string       `json:"scope"`
	// Requires is the capability that a node must report for the seat to be held
	// there, "" for none.
	Requires string `json:"requires,omitempty"`
	// Decision is the record that says why the seat is there.
	Decision string `json:"decision"`
	Meaning  string `json:"meaning"` // one sentence
	Verbs    []Verb `json:"verbs"`   // sorted by name
}

// Verb is a callable of a seat.
type Verb struct {
	Name    subject.Verb  `json:"name"`
	Class   subject.Class `json:"class"`
	Meaning string        `json:"meaning"` // one sentence
	// Arguments and Reply are JSON schemas of an object each.
	Arguments json.RawMessage `json:"arguments"`
	Reply     json.RawMessage `json:"reply"`
	// Follows says that a caller may ask for a stream, with follow: true.
	Follows bool `json:"follows,omitempty"`
}

// Verb returns the verb of that name, and false when the seat has none.
func (s Seat) Verb(name subject.Verb) (Verb, bool) {
	for _, v := range s.Verbs {
		if v.Name == name {
			return v, true
		}
	}
	return Verb{}, false
}

// Claim is a module's offer to hold a seat on a node.
type Claim struct {
	Seat   subject.Seat   `json:"seat"`
	Module string         `json:"module"`
	Node   subject.Node   `json:"node"`
	Verbs  []subject.Verb `json:"verbs"` // that the module serves
}

// Holder is the module whose claim to a seat on a node was accepted.
type Holder struct {
	Seat   subject.Seat `json:"seat"`
	Node   subject.Node `json:"node"`
	Module string       `json:"module"`
}

// Refused is the error of a claim that is not accepted, and why.
func (c Claim) Refused(class fault.Class, cause error) *fault.Error {
	return fault.New(class, "", fmt.Sprintf("claim of seat %.80s by module %.80q on node %q refused", c.Seat, c.Module, string(c.Node)), cause)
}

// Judge returns nil when c is to be accepted: every verb of s is served, and
// nobody else holds the seat on that node. Holder is the module that holds it
// now, "" for none. Errors: refused, with what is missing; conflict, with who
// holds it.
func Judge(s Seat, c Claim, holder string) error {
	refuse := func(class fault.Class, format string, args ...any) error {
		at := c
		at.Seat = s.Name
		return at.Refused(class, fmt.Errorf(format, args...))
	}
	if c.Seat != s.Name {
		return refuse(fault.Refused, "it is a claim of seat %q", string(c.Seat))
	}
	var missing []string
	for _, v := range s.Verbs {
		if !slices.Contains(c.Verbs, v.Name) {
			missing = append(missing, fmt.Sprintf("%q", string(v.Name)))
		}
	}
	switch {
	case len(missing) == 1:
		return refuse(fault.Refused, "verb %s is not served", missing[0])
	case len(missing) > 1:
		return refuse(fault.Refused, "verbs %s are not served", strings.Join(missing, ", "))
	case holder != "" && holder != c.Module:
		return refuse(fault.Conflict, "module %q holds it", holder)
	}
	return nil
}
