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
	"stead/host/report"
	"stead/host/shape"
	"stead/mesh/wire"
)

// Set is all that is in force on the node: of the index that is held, and what is
// kept of before. Sorted by name; nobody changes it once it is handed on.
type Set struct {
	Declared []Declared
	// Left are in force and cannot be applied: their units are neither kept nor
	// given back.
	Left []Left
	// Withdrawn are the names that the set before held and this one does not.
	Withdrawn []string
}

// Declared is a declaration that can be applied. No two are of one unit.
type Declared struct {
	Service    *shape.Service
	UID        string
	Generation uint64
}

// Left is a declaration that is not applied, and why: this version cannot read it
// (Reason unsupported), or another declaration has its unit (conflict).
type Left struct {
	Name       string
	UID        string
	Generation uint64
	Unit       Unit // zero when it cannot be read
	Reason     report.Reason
	Why        string
	Hint       string
}

// reader makes sets of what is in force. It remembers what it read, and who has
// each unit.
type reader struct {
	read    map[string]reading // by name
	holders map[Unit]string
}

// reading is what the body of a digest says.
type reading struct {
	digest  string
	service *shape.Service // nil when it cannot be read
	why     string         // it cannot
}

func newReader(holders map[Unit]string) reader {
	r := reader{read: make(map[string]reading), holders: maps.Clone(holders)}
	if r.holders == nil {
		r.holders = make(map[Unit]string)
	}
	return r
}

// set returns what is in force. Where two declarations are of one unit, the one
// that has it keeps it; when none has, the first by name does.
func (r *reader) set(ids map[string]accept.Identity) Set {
	read := make(map[string]reading, len(ids))
	claims := make(map[Unit]string)
	var set Set
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		now := r.read[name]
		if now.digest != ids[name].Digest {
			now = parse(ids[name])
		}
		read[name] = now
		if now.service == nil {
			continue
		}
		u := unitOf(now.service)
		if _, taken := claims[u]; !taken || r.holders[u] == name {
			claims[u] = name
		}
	}
	for u, name := range r.holders {
		if now, there := read[name]; there && now.service == nil {
			claims[u] = name // what it declares is not known, so nobody else gets the unit
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		set.add(ids[name], read[name], claims)
	}
	r.read, r.holders = read, claims
	return set
}

func (s *Set) add(id accept.Identity, now reading, claims map[Unit]string) {
	left := Left{Name: id.Name, UID: id.UID, Generation: id.Generation}
	if now.service == nil {
		left.Reason, left.Why, left.Hint = report.Unsupported, now.why, "upgrade stead on this node"
		s.Left = append(s.Left, left)
		return
	}
	u := unitOf(now.service)
	if owner := claims[u]; owner != id.Name {
		left.Unit, left.Reason = u, report.OwnedBy
		left.Why = fmt.Sprintf("conflict with %s, which has %s on this node", owner, u.Unit)
		left.Hint = fmt.Sprintf("withdraw one of %s and %s, or address them to different nodes", owner, id.Name)
		s.Left = append(s.Left, left)
		return
	}
	s.Declared = append(s.Declared, Declared{Service: now.service, UID: id.UID, Generation: id.Generation})
}

func unitOf(s *shape.Service) Unit { return Unit{s.Scope, s.Unit} }

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
func (f *Follower) declare(ctx context.Context, withdrawn []string) error {
	set := f.reader.set(f.holding.Declarations)
	set.Withdrawn = withdrawn
	return f.o.Declare(ctx, set)
}
