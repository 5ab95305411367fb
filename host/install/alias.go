package install

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"stead/host/unit"
)

// mayLead says why a link of the name from may not lead to a unit of the name
// to: code "" when it may, IsAlias when both are one name.
func mayLead(from, to string) (Code, string) {
	for _, s := range []string{from, to} {
		if err := unit.CheckName(s); err != nil {
			return BadLink, fmt.Sprintf("%q is no unit name: %v", s, err)
		}
	}
	a, b := unit.Name(from), unit.Name(to)
	switch {
	case !mayAlias(a.Type()):
		return BadLink, fmt.Sprintf("units of type %s have no aliases", a.Type())
	case a.Type() != b.Type():
		return BadLink, "they are of different types"
	case a == b:
		return IsAlias, "it is a link to its own name"
	case a.IsInstance() && b.IsTemplate():
	case a.IsTemplate() != b.IsTemplate() || a.IsInstance() != b.IsInstance():
		return BadLink, "one is a template or an instance and the other is not"
	case a.Instance() != b.Instance():
		return BadLink, "they are different instances"
	}
	return "", ""
}

// mayAlias reports whether units of that type can have aliases.
func mayAlias(kind string) bool {
	switch kind {
	case "service", "socket", "target", "device", "timer", "path":
		return true
	}
	return false
}

// aliasPath returns where below the configuration folder the link for a word of
// Alias= stands; "" when the unit has that name already. The problem's code is
// "" when all is well. By the rules of 247 the unit's own name is an alias too,
// and a path counts as it is written.
func aliasPath(in *info, word string, is247 bool) (string, Problem) {
	if strings.IndexByte(word, '/') >= 0 {
		return aliasFolder(in, word, is247)
	}
	name := word
	if unit.CheckName(word) == nil && unit.Name(word).IsTemplate() && in.name.IsInstance() {
		name = string(unit.Name(word).WithInstance(in.name.Instance()))
	}
	switch code, text := mayLead(name, string(in.name)); code {
	case "":
		return name, Problem{}
	case IsAlias:
		if is247 {
			return name, Problem{}
		}
		return "", Problem{}
	default:
		return "", Problem{Code: BadAlias, Owner: in.name, Object: word, Text: text}
	}
}

var doubled = regexp.MustCompile("//+")

// aliasFolder is aliasPath for a word such as a.target.wants/x.service, an old
// spelling of WantedBy= and RequiredBy= that systemd still takes.
func aliasFolder(in *info, word string, is247 bool) (string, Problem) {
	cut := strings.LastIndexByte(word, '/')
	dir, base := word[:cut], word[cut+1:]
	bad := func(text string) (string, Problem) {
		return "", Problem{Code: BadAlias, Owner: in.name, Object: word, Text: text}
	}
	if is247 {
		dir = doubled.ReplaceAllString(strings.TrimRight(dir, "/"), "/")
	} else {
		dir = path.Clean(dir)
	}
	of, ok := strings.CutSuffix(dir, ".wants")
	if !ok {
		of, ok = strings.CutSuffix(dir, ".requires")
	}
	if !ok || strings.Contains(word, "..") || unit.CheckName(of) != nil {
		return bad("it is a path, and not one below the .wants or .requires folder of a unit")
	}
	if unit.CheckName(base) != nil {
		return bad("it does not end in a unit name")
	}
	b := unit.Name(base)
	switch {
	case b == in.name && !b.IsTemplate():
	case b.IsInstance() && b.Template() == in.name:
	case b == in.name && unit.Name(of).IsTemplate():
	default:
		return bad("it does not end in the name of this unit")
	}
	return path.Join(dir, base), Problem{}
}
