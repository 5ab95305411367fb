package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// Set is all that is in force on the node: of the index that is held, and what is
// kept of before. Sorted by name; nobody changes it once it is handed on.
type Set struct {
	Declared []Declared
	// Left are in force and cannot be read: their units are neither kept nor given
	// back.
	Left []Left
	// Account is the operator account of the node and Linger its setting, as the index
	// that is held says; "" for none, and for the default.
	Account string
	Linger  string
	// Pauses are the units that the index leaves alone for a while, those that have
	// ended among them.
	Pauses []wire.Pause
}

// Of returns what of s is of one scope.
func (s Set) Of(scope unit.Scope) Set {
	one := Set{Account: s.Account, Linger: s.Linger}
	for _, p := range s.Pauses {
		if p.Scope == scope {
			one.Pauses = append(one.Pauses, p)
		}
	}
	for _, d := range s.Declared {
		if d.Service.Scope == scope {
			one.Declared = append(one.Declared, d)
		}
	}
	for _, l := range s.Left {
		if l.Scope == scope {
			one.Left = append(one.Left, l)
		}
	}
	return one
}

// Declared is a declaration that can be applied. Where two are of one unit, the
// loop of the scope decides which one has it.
type Declared struct {
	Service    *shape.Service
	UID        string
	Generation uint64
}

// Left is a declaration that this version cannot read, and why.
type Left struct {
	Name       string
	Scope      unit.Scope // as far as it says so, which every version can read
	UID        string
	Generation uint64
	Why        string
}

// reading is what the body of a digest says.
type reading struct {
	digest  string
	service *shape.Service // nil when it cannot be read
	why     string         // it cannot
}

// read makes a set of what is in force, and remembers what it read.
func (f *Follower) read() Set {
	ids := f.holding.Declarations
	var set Set
	if index := f.holding.Index; index != nil {
		set.Account, set.Linger, set.Pauses = index.Account, index.Linger, index.Pauses
	}
	known := make(map[string]reading, len(ids))
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id, now := ids[name], f.readings[name]
		if now.digest != id.Digest {
			now = parse(id)
		}
		known[name] = now
		if now.service == nil {
			set.Left = append(set.Left, Left{Name: name, Scope: shape.ScopeOf(id.Body), UID: id.UID, Generation: id.Generation, Why: now.why})
			continue
		}
		set.Declared = append(set.Declared, Declared{Service: now.service, UID: id.UID, Generation: id.Generation})
	}
	f.readings = known
	return set
}

// parse reads a canonical form. One of a later vocabulary is named by what is new
// in it.
func parse(id accept.Identity) reading {
	s, err := shape.FromCanonical(id.Body)
	switch {
	case err != nil:
		return reading{digest: id.Digest, why: unknown(id.Body, err)}
	case s.Name != id.Name:
		return reading{digest: id.Digest, why: fmt.Sprintf("it is declared as %q, and calls itself %q", id.Name, s.Name)}
	}
	return reading{digest: id.Digest, service: s}
}

// unknown says why body, which err refuses, cannot be read.
func unknown(body []byte, err error) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return "this version of stead cannot read it: it is no canonical form"
	}
	var name string
	_ = json.Unmarshal(fields["shape"], &name) // "" when it is no text
	vocabulary := wire.Vocabulary()
	at := slices.IndexFunc(vocabulary, func(s wire.Shape) bool { return s.Name == name })
	if at < 0 {
		return fmt.Sprintf("this version of stead does not know shape %.80q", name)
	}
	var always map[string]json.RawMessage // fields of every canonical form, which nobody need declare
	if json.Unmarshal((&shape.Service{}).Canonical(), &always) != nil {
		always = nil
	}
	var strange []string
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if _, known := always[field]; !known && !slices.Contains(vocabulary[at].Fields, field) {
			strange = append(strange, fmt.Sprintf("%.80q", field))
		}
	}
	switch more := len(strange) - maxStrange; {
	case len(strange) == 0:
		var known *fault.Error
		if errors.As(err, &known) {
			err = known.Cause
		}
		return "this version of stead cannot read it: " + err.Error()
	case len(strange) == 1:
		return "this version of stead does not know field " + strange[0] + " of shape " + name
	case more > 0:
		strange[maxStrange-1] += fmt.Sprintf(" and %d more", more)
		strange = strange[:maxStrange]
	}
	return "this version of stead does not know fields " + strings.Join(strange, ", ") + " of shape " + name
}

// maxStrange is how many unknown fields are named.
const maxStrange = 5

// declare hands the set in force on.
func (f *Follower) declare(ctx context.Context) error { return f.o.Declare(ctx, f.read()) }
