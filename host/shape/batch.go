package shape

import (
	"fmt"
	"strconv"

	"stead/host/unit"
)

// Check returns the problems that declarations have with each other: those of
// CheckNames, two of one unit of a scope (the aliases that their files ask for
// counted) or of one path, and triggers that cite a file which is not declared.
// The batch is what one node is to have; a problem stands at the later place and
// names the earlier one.
func Check(batch []*Declaration, size int64) Problems {
	c := &collector{}
	first := c.names(batch, size)
	objects := map[scoped]*Declaration{}
	for _, s := range batch {
		if first[s.Name] == s {
			claim(objects, s, c)
			cites(first, s, c)
		}
	}
	return c.all()
}

// cites refuses triggers of s that cite what is not among all, by name, or what s
// must not look at.
func cites(all map[string]*Declaration, s *Declaration, c *collector) {
	for _, t := range s.Triggers {
		if rule, cure := CiteProblem(all, s, t); rule != "" {
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".triggers", rule, cure})
		}
	}
}

// CiteProblem says why the trigger t of s cannot cite what it names, among all that
// is declared for a node, by name; "" for a path, and for a file that it may cite.
func CiteProblem(all map[string]*Declaration, s *Declaration, t string) (rule, cure string) {
	name, is := Cited(t)
	switch f := all[name]; {
	case !is:
	case f == nil || f.File == nil:
		return fmt.Sprintf("it cites %s, which is not declared here", t), "declare a file of that name for the same nodes, or cite its path"
	case f.Scope == unit.User && s.Scope != unit.User:
		return fmt.Sprintf("it cites %s, which is of scope user, and a unit of the system looks at nothing below a home", t), "declare the file in scope system"
	}
	return "", ""
}

// CheckNames returns the problems of a batch that is not for one node: two of one
// name, more than MaxDeclarations, and more than MaxBatch bytes of documents,
// which is size. A problem stands at the later place and names the earlier one.
func CheckNames(batch []*Declaration, size int64) Problems {
	c := &collector{}
	c.names(batch, size)
	return c.all()
}

// names judges what CheckNames does, and returns the first declaration of each
// name.
func (c *collector) names(batch []*Declaration, size int64) map[string]*Declaration {
	if len(batch) > MaxDeclarations {
		s := batch[MaxDeclarations]
		c.add(Problem{s.Origin.File, s.Origin.Line, s.Name, fmt.Sprintf("there are %d declarations; a batch has at most %d", len(batch), MaxDeclarations), "declare fewer"})
	}
	if size > MaxBatch {
		c.add(Problem{Rule: fmt.Sprintf("the documents have %d bytes; a batch has at most %d", size, MaxBatch), Cure: "declare less"})
	}
	names := map[string]*Declaration{}
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

// claim takes the unit of s and its aliases, or its path, for s.
func claim(units map[scoped]*Declaration, s *Declaration, c *collector) {
	for i, n := range append([]unit.Name{s.Object()}, s.Aliases()...) {
		first, taken := units[scoped{s.Scope, n}]
		switch {
		case !taken:
			units[scoped{s.Scope, n}] = s
		case first == s:
		case s.File != nil:
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".path", fmt.Sprintf("%s is declared by %q at %s too", n, first.Name, first.Origin), "a path has one declaration: delete one of them"})
		case i == 0:
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".unit", fmt.Sprintf("%s is declared by %q at %s too%s", n, first.Name, first.Origin, aliasOf(n, first)), "a unit has one declaration: write both as one"})
		default:
			c.add(Problem{s.Origin.File, s.Origin.Line, s.Name + ".content", fmt.Sprintf("Alias=%s is a unit that %q declares at %s%s", n, first.Name, first.Origin, aliasOf(n, first)), "a unit has one declaration: give the alias another name, or write both as one"})
		}
	}
}

func aliasOf(n unit.Name, s *Declaration) string {
	if n == s.Unit {
		return ""
	}
	return ", as an alias of " + string(s.Unit)
}

// String returns FILE:LINE.
func (o Origin) String() string { return o.File + ":" + strconv.Itoa(o.Line) }
