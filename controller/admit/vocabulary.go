package admit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// lack is what a host cannot read.
type lack struct {
	version string                     // of stead there
	speaks  []int                      // versions of the messages, when ours is none of them
	shapes  map[string]bool            // whole shapes
	fields  map[string]map[string]bool // by shape, fields of it, and values of fields
}

// lacks are the nodes whose hosts cannot read all that this version declares.
func (j *judge) lacks() map[string]lack {
	all := map[string]lack{}
	for node, p := range j.Profiles {
		l := lack{version: p.Version, shapes: map[string]bool{}, fields: map[string]map[string]bool{}}
		if len(p.Wires) > 0 && !slices.Contains(p.Wires, wire.Version) {
			l.speaks = p.Wires
		}
		for _, ours := range shape.Vocabulary() {
			i := slices.IndexFunc(p.Vocabulary, func(s wire.Shape) bool { return s.Name == ours.Name })
			if i < 0 {
				l.shapes[ours.Name] = true
			} else if none := lacking(ours, p.Vocabulary[i]); len(none) > 0 {
				l.fields[ours.Name] = none
			}
		}
		if len(l.shapes) > 0 || l.speaks != nil || len(l.fields) > 0 {
			all[node] = l
		}
	}
	return all
}

// lacking are the fields of ours, and values of them, that theirs does not have.
func lacking(ours shape.Shape, theirs wire.Shape) map[string]bool {
	none := map[string]bool{}
	for _, f := range ours.Fields {
		if !slices.Contains(theirs.Fields, f.Name) {
			none[f.Name] = true
		}
	}
	if ours.Name == shape.ServiceShape {
		none[restarted] = theirs.Version < 2
		none[citing] = theirs.Version < 3
	}
	maps.DeleteFunc(none, func(_ string, lacks bool) bool { return !lacks })
	return none
}

// vocabulary judges whether every host that gets something new can read it.
func (j *judge) vocabulary() {
	lacks := j.lacks()
	if len(lacks) == 0 {
		return
	}
	for _, c := range j.changes {
		nodes := c.gain
		if is := alive(c.is); is == nil {
			continue
		} else if c.how == wire.New || c.how == wire.Edited {
			nodes = j.after.NodesOf(is.Address)
		}
		j.readable(c, nodes, lacks)
	}
}

// What a host may lack besides fields; no field is named so.
const (
	speech    = " speech"
	whole     = " whole"
	restarted = "ensure: restarted" // came with version 2 of the service shape
	citing    = "triggers: file:"   // came with version 3
)

// uses are the fields that the canonical form of d has, and values that not every
// version has. Each form names its scope, which every host reads when it is the
// system's.
func uses(d *assign.Declaration) map[string]bool {
	used := map[string]bool{}
	for name := range fields(&assign.Declaration{Canonical: d.Canonical}) {
		used[name] = true
	}
	if d.Service == nil {
		return used
	}
	used["scope"] = d.Service.Scope != unit.System
	used[restarted] = d.Service.Ensure == shape.Restarted
	used[citing] = slices.ContainsFunc(d.Service.Triggers, func(t string) bool {
		_, is := shape.Cited(t)
		return is
	})
	return used
}

// readable notes what of c's declaration the hosts of nodes cannot read: each
// thing once, with all nodes that lack it.
func (j *judge) readable(c *change, nodes []string, lacks map[string]lack) {
	without := map[string][]string{}
	var used map[string]bool
	of := c.is.Service.Shape()
	for _, node := range nodes {
		l, ok := lacks[node]
		switch {
		case !ok:
			continue
		case l.speaks != nil:
			without[speech] = append(without[speech], node)
			continue
		case l.shapes[of]:
			without[whole] = append(without[whole], node)
			continue
		case used == nil:
			used = uses(c.is)
		}
		for name := range l.fields[of] {
			if used[name] {
				without[name] = append(without[name], node)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(without)) {
		j.unreadable(c, what, without[what], lacks)
	}
}

// unreadable notes that the hosts of nodes lack what c's declaration has.
func (j *judge) unreadable(c *change, what string, nodes []string, lacks map[string]lack) {
	l := lacks[nodes[0]]
	host, cure := hosts(nodes, l.version), "upgrade stead there, or address it to other nodes"
	know, speak := "does not know", "speaks"
	if len(nodes) > 1 {
		know, speak = "do not know", "speak"
	}
	switch what {
	case speech:
		j.problem(c, addressing(c.is.Address), fmt.Sprintf("%s %s version %s of the wire, and this controller %d", host, speak, numbers(l.speaks), wire.Version),
			"bring stead to one version there and here, or address it to other nodes")
	case whole:
		j.problem(c, "shape", fmt.Sprintf("%s %s the shape %q", host, know, c.is.Service.Shape()), cure)
	case citing:
		j.problem(c, "triggers", fmt.Sprintf("%s %s declared files, which it cites", host, know), cure)
	case restarted:
		j.problem(c, "ensure", fmt.Sprintf("%s %s %s", host, know, restarted), cure)
	default:
		j.problem(c, what, fmt.Sprintf("%s %s the field %q", host, know, what), cure)
	}
}

// hosts names hosts by their nodes, and the version that the first one has.
func hosts(nodes []string, version string) string {
	if version == "" {
		version = "of unknown version"
	}
	if len(nodes) == 1 {
		return fmt.Sprintf("the host of %s (stead %.40s)", nodes[0], version)
	}
	return fmt.Sprintf("the hosts of %s (stead %.40s on %s)", assign.List(nodes), version, nodes[0])
}

func numbers(all []int) string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = strconv.Itoa(n)
	}
	return assign.List(texts)
}
