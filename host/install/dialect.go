package install

import (
	"path"

	"stead/host/unit"
)

// Managers read [Install] by rules that changed twice: those of 247 hold until
// the rewrite in 251, those of 252 until 253, and those of 257 from 254 on. Each
// was held against EnableUnitFiles of the version it is named for.

// is247 reports whether the rules of systemd 247 hold.
func (o Options) is247() bool { return o.Version != 0 && o.Version < 251 }

// is257 reports whether the rules of systemd 257 hold.
func (o Options) is257() bool { return o.Version >= 254 }

// later are the specifiers that systemd 247 does not know yet.
const later = "AMq"

// classify247 is classify by the rules of 247, to which each link is an alias,
// wherever it leads: what counts is whether its name stays the same.
func (c *call) classify247(in *info, u Unit) {
	switch {
	case u.Masked:
		in.mode = masked
	case u.Link != "":
		in.mode = alias
		if text := leads247(in.name, path.Base(u.Link)); text != "" {
			in.fail(BadLink, u.Path, "it leads to %s: %s", u.Link, text)
		}
	case u.Err != nil:
		in.fail(Unreadable, u.Path, "%v", u.Err)
	default:
		in.mode = regular
	}
}

// leads247 says why a unit's file may not be a link to one of the name to; ""
// when it may.
func leads247(from unit.Name, to string) string {
	if err := unit.CheckName(to); err != nil {
		return "that is no unit name: " + err.Error()
	}
	n := unit.Name(to)
	switch {
	case from.Type() != n.Type():
		return "they are of different types"
	case from.IsTemplate() && !n.IsTemplate(), !from.IsTemplate() && !from.IsInstance() && (n.IsTemplate() || n.IsInstance()),
		from.IsInstance() && !n.IsTemplate() && !n.IsInstance():
		return "one is a template or an instance and the other is not"
	}
	return ""
}

// goesOn247 reports whether the link of a unit's own name leads to another link,
// of a name that says where to go from there.
func (c *call) goesOn247(in *info) bool {
	if !c.is247() || in.gone || path.Base(in.link) == path.Base(in.target) {
		return false
	}
	in.link = in.target
	if text := leads247(in.name, path.Base(in.link)); text != "" {
		in.fail(BadLink, in.path, "it leads to %s: %s", in.link, text)
	}
	return true
}

// aliases247 collects the links for Alias= by the rules of 247: the first link
// decides whether the step succeeds, and what cannot be an alias is passed over.
func (c *call) aliases247(in *info) int {
	made := 0
	for _, word := range in.aliases {
		expanded, err := c.expand(in, word)
		if err != nil {
			c.report(Problem{Code: codeOf(err), Owner: in.name, Object: word, Text: "Alias=: " + err.Error()})
			return -1 // the words behind it are lost
		}
		at, p := aliasPath(in, expanded, true)
		if p.Code != "" {
			c.problems = append(c.problems, p)
			continue
		}
		fatal := c.fatal
		c.fatal = fatal && made == 0
		l := Link{Path: path.Join(c.Config, at), Target: in.path, Owner: in.name}
		good := l.Path != l.Target
		if good {
			good = c.put(l, false)
		} else {
			c.report(Problem{Code: Taken, Owner: in.name, Object: l.Path, Text: "Alias=: the unit's own file stands there"})
		}
		c.fatal = fatal
		switch {
		case made != 0:
		case good:
			made = 1
		default:
			made = -1
		}
	}
	return made
}

// present247 is Present by the rules of 247.
func (o Options) present247(l Link, target string) bool {
	return path.Clean(target) == l.Target || target != l.Path && o.Same != nil && o.Same(target, l.Target)
}
