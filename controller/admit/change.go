package admit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

// change is what a request does to one declaration.
type change struct {
	doc  *shape.Located      // what declares it; nil in a request without files
	was  *assign.Declaration // as it stands, a tombstone too; nil for nothing
	is   *assign.Declaration // as it would stand; was itself when only nodes change
	how  string
	gain []string // nodes on which it comes to be, sorted
	lose []string // nodes on which it ceases to be, sorted
}

// writes reports whether the change is one of the declaration itself.
func (c *change) writes() bool { return c.is != c.was }

// alive returns d unless it is nothing or a tombstone.
func alive(d *assign.Declaration) *assign.Declaration {
	if d == nil || d.Withdrawn {
		return nil
	}
	return d
}

// declare returns the change that doc asks for.
func (j *judge) declare(doc *shape.Located) *change {
	c := &change{doc: doc}
	var unreadable string
	if c.was, unreadable = j.standing(doc.Name); unreadable != "" && !j.force {
		j.problem(c, "", fmt.Sprintf("what stands under this name in mesh state cannot be read: %.200s", unreadable), "to declare it anew whatever it is: --force")
	}
	service := *doc.Declaration
	service.Origin = shape.Origin{}
	j.propose(c, &service, assign.AddressOf(&service))
	j.sizes(c)
	return c
}

// propose fills in how what stands becomes what is asked for.
func (j *judge) propose(c *change, service *shape.Service, a assign.Address) {
	is := &assign.Declaration{Name: service.Name, Generation: 1, Canonical: service.Canonical(), Digest: service.Digest(), Service: service,
		Address: a, By: j.Who, At: j.Now}
	was := alive(c.was)
	switch {
	case was == nil:
		c.how = wire.New
		is.UID = j.NewUID()
		if c.was != nil {
			is.Generation = c.was.Generation + 1
		}
	case bytes.Equal(was.Canonical, is.Canonical) && was.Address.Same(is.Address):
		c.how, is = wire.Unchanged, was
	case bytes.Equal(was.Canonical, is.Canonical):
		c.how, is.UID, is.Generation = wire.Moved, was.UID, was.Generation
	default:
		c.how, is.UID, is.Generation = wire.Edited, was.UID, was.Generation+1
	}
	if c.was != nil && is != was && !c.was.Address.Same(is.Address) {
		is.Former = c.was.Address
	}
	c.is = is
}

// reach fills in on which nodes the declaration comes and ceases to be.
func (j *judge) reach(c *change) {
	var had, has []string
	if was := alive(c.was); was != nil {
		had = j.before.NodesOf(was.Address)
	}
	if is := alive(c.is); is != nil {
		has = j.after.NodesOf(is.Address)
	}
	c.gain, c.lose = assign.Diff(had, has)
}

// told is the change as the caller is told of it.
func (j *judge) told(c *change) wire.Change {
	seen := c.is
	if j.dry {
		seen = c.was
	}
	t := wire.Change{Name: c.is.Name, How: c.how, UID: c.is.UID, Generation: c.is.Generation, Mark: assign.Mark(seen),
		Gains: len(c.gain), Loses: len(c.lose)}
	if c.doc != nil {
		t.Origin = c.doc.Origin
	}
	for _, d := range []*assign.Declaration{c.was, c.is} {
		if d != nil && d.Service != nil {
			t.Unit, t.Scope = string(d.Service.Object()), string(d.Service.Scope)
		}
	}
	if is := alive(c.is); is != nil {
		t.Nodes = len(j.after.NodesOf(is.Address))
		if was := alive(c.was); was != nil && c.writes() {
			t.Fields = differing(was, is)
		}
	}
	return t
}

// conflict notes what somebody else changed since the caller saw it, when that
// would be lost. A name that mesh state never held was withdrawn by nobody: what
// the caller remembers is of an epoch before.
func (j *judge) conflict(c *change, seen wire.Mark) {
	now := assign.Mark(c.was)
	if j.force || !c.writes() || c.was == nil || seen == now {
		return
	}
	k := wire.Conflict{Name: c.is.Name, Seen: seen, Mark: now, By: c.was.By, At: c.was.At, How: assign.Since(seen, now)}
	if was := alive(c.was); was != nil {
		k.Generation = was.Generation
		if !c.is.Withdrawn {
			k.Fields = differing(was, c.is)
		}
	}
	j.conflicts = append(j.conflicts, k)
}

// differing names the fields in which a and b differ, in the order of the
// vocabulary.
func differing(a, b *assign.Declaration) []string {
	one, two := fields(a), fields(b)
	var names []string
	for _, s := range shape.Vocabulary() {
		for _, f := range s.Fields {
			if !bytes.Equal(one[f.Name], two[f.Name]) && !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// fields are what d declares, by field.
func fields(d *assign.Declaration) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(d.Canonical, &all) != nil {
		return nil // not in canonical form, which is not read from a State
	}
	address := d.Address
	address.Nodes = slices.Sorted(slices.Values(address.Nodes))
	text, _ := json.Marshal(address) // texts always encode
	var where map[string]json.RawMessage
	if json.Unmarshal(text, &where) == nil {
		maps.Copy(all, where)
	}
	return all
}
