package shape

import (
	"fmt"
	"strconv"

	"stead/host/unit"
)

// Check returns the problems that declarations have with each other: those of
// CheckNames, and two of one unit of a scope (the aliases that their files ask for counted).
// The batch is what one node is to have; a problem stands at the later place and
// names the earlier one.
func Check(batch []*Service, size int64) Problems {
	c := &collector{}
	first := c.names(batch, size)
	units := map[scoped]*Service{}
	for _, s := range batch {
		if first[s.Name] == s {
			claim(units, s, c)
		}
	}
	return c.all()
}

// CheckNames returns the problems of a batch that is not for one node: two of one
// name, more than MaxDeclarations, and more than MaxBatch bytes of documents,
// which is size. A problem stands at the later place and names the earlier one.
func CheckNames(batch []*Service, size int64) Problems {
	c := &collector{}
	c.names(batch, size)
	return c.all()
}

// names judges what CheckNames does, and returns the first declaration of each
// name.
func (c *collector) names(batch []*Service, size int64) map[string]*Service {
	if len(batch) > MaxDeclarations {
		s := batch[MaxDeclarations]
		c.add(Problem{s.Origin.File, s.Origin.Line, s.Name, fmt.Sprintf("there are %d declarations; a batch has at most %d", len(batch), MaxDeclarations), "declare fewer"})
	}
	if size > MaxBatch {
		c.add(Problem{Rule: fmt.Sprintf("the documents have %d bytes; a batch has at most %d", size, MaxBatch), Cure: "declare less"})
	}
	names := map[string]*Service{}
	for _, s := range batch {
		if first, twice := names[s.Name]; twice {
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".name", fmt.Sprintf("the name %q is declared at %s too", s.Name, first.Origin), "give one of them another name, or delete it"})
			continue
		}
		names[s.Name] = s
	}
	return names
}

// scoped is a unit of the manager of one scope: each scope has names of its own.
type scoped struct {
	scope unit.Scope
	name  unit.Name
}

// claim takes the unit of s, and its aliases, for s.
func claim(units map[scoped]*Service, s *Service, c *collector) {
	for i, n := range append([]unit.Name{s.Unit}, s.Aliases()...) {
		first, taken := units[scoped{s.Scope, n}]
		switch {
		case !taken:
			units[scoped{s.Scope, n}] = s
		case first == s:
		case i == 0:
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".unit", fmt.Sprintf("%s is declared by %q at %s too%s", n, first.Name, first.Origin, aliasOf(n, first)), "a unit has one declaration: write both as one"})
		default:
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".content", fmt.Sprintf("Alias=%s is a unit that %q declares at %s%s", n, first.Name, first.Origin, aliasOf(n, first)), "a unit has one declaration: give the alias another name, or write both as one"})
		}
	}
}

func aliasOf(n unit.Name, s *Service) string {
	if n == s.Unit {
		return ""
	}
	return ", as an alias of " + string(s.Unit)
}

// String returns FILE:LINE.
func (o Origin) String() string { return o.File + ":" + strconv.Itoa(o.Line) }
