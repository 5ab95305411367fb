package admit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// Withdraw judges a request to withdraw. Errors are those of Apply.
//
// A declaration that the caller never saw is no conflict: its name says what is
// meant, and nothing is overwritten by something older. What nodes keep of an
// epoch or mesh before is withdrawn with its name, also when mesh state does not
// hold it.
func Withdraw(b Basis, r wire.WithdrawRequest) (Decision, error) {
	j, err := newJudge(b, "withdraw", "", r.Wire)
	if err != nil {
		return Decision{}, err
	}
	j.force, j.yes, j.dry = r.Force, r.Yes, r.DryRun
	names := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	switch {
	case len(names) == 0:
		j.problems.add(shape.Problem{Rule: "no declaration was named", Cure: "name at least one; what there is: stead get declarations"})
	case len(names) > shape.MaxDeclarations:
		j.problems.add(shape.Problem{Rule: fmt.Sprintf("%d declarations are named; at most %d are withdrawn at once", len(names), shape.MaxDeclarations), Cure: "withdraw them in parts"})
		names = nil
	}
	known := j.seen(r.Seen, r.Epoch)
	for _, name := range names {
		c := &change{is: &assign.Declaration{Name: name, Withdrawn: true, By: j.Who, At: j.Now}, how: wire.Gone}
		if !j.withdraw(c) {
			continue
		}
		if seen, knows := known[name]; knows && alive(c.was) != nil {
			j.conflict(c, seen)
		}
		j.changes = append(j.changes, c)
	}
	j.place(nil)
	for _, c := range j.changes {
		j.reach(c)
		j.leave(c)
	}
	j.cites()
	j.paused()
	return j.decide(nil, j.sure()), nil
}

// withdraw fills in the tombstone, and reports whether there is something to
// withdraw. What was withdrawn already is unchanged, unless nodes keep it still:
// they heed only a tombstone that is newer than what they hold.
func (j *judge) withdraw(c *change) bool {
	name := c.is.Name
	was, unreadable := j.standing(name)
	everywhere := len(j.Kept[name]) > 0 || j.force
	c.was = was
	switch module := shape.OfModule(name); {
	case module != "" && j.stands(module):
		j.problem(c, "", fmt.Sprintf("module %q declares it, and takes it along where it goes", module), "leave it out")
		return false
	case unreadable != "" && !j.force:
		j.problem(c, "", fmt.Sprintf("what stands under this name in mesh state cannot be read: %.200s", unreadable), "to withdraw it whatever it is: --force")
		return false
	case unreadable != "":
		c.is.UID = wire.AnyUID
	case was == nil:
		// What is kept of a module that this mesh does not know ends by its name.
		if len(j.Kept[name]) == 0 && (!everywhere || !labelled(name)) || !nameable(name) {
			j.unknown(name)
			return false
		}
		c.is.UID = wire.AnyUID
	case was.Withdrawn && !everywhere:
		c.is, c.how = was, wire.Unchanged
		j.warn("%s was %s already", name, assign.ByAt("withdrawn", was.By, was.At))
	default:
		c.is.UID, c.is.Generation, c.is.Address, c.is.Former = was.UID, was.Generation, was.Address, was.Former
		if len(j.Kept[name]) > 0 || was.Withdrawn {
			c.is.UID = wire.AnyUID
		}
	}
	return true
}

// nameable reports whether a declaration can be called name.
func nameable(name string) bool {
	return shape.OfModule(name) != "" || labelled(name)
}

// labelled reports whether name is one that people give: a label, of a file with its
// prefix.
func labelled(name string) bool {
	return subject.CheckLabel("declaration", strings.TrimPrefix(name, shape.FilePrefix)) == nil
}

// stands reports whether mesh state holds a module of that name.
func (j *judge) stands(module string) bool {
	m := j.State.Modules[module]
	_, unreadable := j.State.UnreadableModules[module]
	return m != nil && !m.Gone || unreadable
}

// unknown notes that nothing of that name is declared.
func (j *judge) unknown(name string) {
	names := slices.Collect(maps.Keys(j.Kept))
	for _, d := range j.before.Declared() {
		names = append(names, d.Name)
	}
	slices.Sort(names)
	cure := "what there is: stead get declarations; what a node keeps of an epoch before goes with --force"
	if near := j.nearest(name, names); near != "" {
		cure = "did you mean " + near + "?"
	}
	path := name
	if !nameable(name) {
		path = fmt.Sprintf("%.80q", name)
	}
	j.problems.add(shape.Problem{Path: path, Rule: "nothing of this name is declared", Cure: cure})
}

// leave adds the nodes that keep the declaration of an epoch before to those
// that lose it.
func (j *judge) leave(c *change) {
	kept := j.Kept[c.is.Name]
	if !c.writes() || len(kept) == 0 {
		return
	}
	j.warn("%s is kept of an epoch before by %s, and withdrawn there too", c.is.Name, assign.List(kept))
	c.lose = slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.lose, kept))))
}
