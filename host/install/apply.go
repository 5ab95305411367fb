package install

import (
	"path"
	"slices"

	"stead/host/unit"
)

// apply collects the links of one unit. The manager goes by steps: Alias=, then
// WantedBy= and its kind one by one. A problem fails its call only while no
// earlier step has made anything. The link for a unit outside the search path
// comes first and does not count.
func (c *call) apply(in *info) error {
	c.fatal = true
	at := path.Join(c.Config, string(in.name))
	in.linked = at != in.found && !c.underneath(in.path)
	if in.linked && !c.is247() {
		c.put(Link{Path: at, Target: in.path, Owner: in.name, Linked: true}, false)
	}
	made := 0
	step := func(n int) {
		if made == 0 {
			made = n
		}
		c.fatal = made == 0 || c.is257()
	}
	step(c.aliases(in))
	for _, l := range []struct {
		words  []string
		suffix string
	}{{in.wantedBy, ".wants"}, {in.requiredBy, ".requires"}, {in.upheldBy, ".upholds"}} {
		n, err := c.pulls(in, l.words, l.suffix)
		if err != nil {
			return err
		}
		step(n)
	}
	if in.linked && c.is247() {
		c.put(Link{Path: at, Target: in.path, Owner: in.name, Linked: true}, false)
	}
	return nil
}

// report adds a problem of the current step.
func (c *call) report(p Problem) {
	p.Fatal = c.fatal
	c.problems = append(c.problems, p)
}

// outcome counts what a step made; -1 stands for a problem in it.
type outcome int

func (o *outcome) add(good bool) {
	switch {
	case !good:
		*o = -1
	case *o >= 0:
		*o++
	}
}

// aliases collects the links for Alias=.
func (c *call) aliases(in *info) int {
	if c.is247() {
		return c.aliases247(in)
	}
	target := in.path
	if c.is257() && !c.underneath(in.path) {
		target = path.Join(c.Config, string(in.name)) // the link that brings it into the search path
	}
	var o outcome
	for _, word := range in.aliases {
		expanded, err := c.expand(in, word)
		if err != nil {
			c.report(Problem{Code: codeOf(err), Owner: in.name, Object: word, Text: "Alias=: " + err.Error()})
			o.add(false)
			continue
		}
		at, p := aliasPath(in, expanded, false)
		switch {
		case p.Code != "":
			c.report(p)
			o.add(false)
		case at != "":
			o.add(c.put(Link{Path: path.Join(c.Config, at), Target: target, Owner: in.name}, false))
		}
	}
	return int(o)
}

// pulls collects the links for the words of WantedBy= or one of its kind.
func (c *call) pulls(in *info, words []string, suffix string) (int, error) {
	if len(words) == 0 {
		return 0, nil
	}
	if c.is247() && in.name.IsTemplate() && in.instance == "" {
		return 1, nil // nothing to pull in, and no problem
	}
	name, err := c.pulledIn(in)
	if err != nil || name == "" {
		return -1, err
	}
	var o outcome
	for _, w := range words {
		good := c.pull(in, name, w, suffix)
		o.add(good)
		if !good && c.is247() && c.problems[len(c.problems)-1].Code != BadName {
			break // the words behind a bad specifier are lost
		}
	}
	return int(o), nil
}

// pulledIn returns the name under which in is pulled in by other units, "" when
// there is a problem with its default instance.
func (c *call) pulledIn(in *info) (unit.Name, error) {
	if in.instance == "" {
		return in.name, nil
	}
	n := in.name.WithInstance(in.instance)
	p := Problem{Owner: in.name, Object: string(n)}
	if len(n) > unit.NameMax {
		p.Code, p.Text = BadName, "DefaultInstance=: it makes a name that is too long"
		c.report(p)
		return "", nil
	}
	u, found, err := c.lookup(n)
	if err != nil || !found {
		return n, err
	}
	probe := &info{name: n, path: u.Path}
	c.classify(probe, u)
	switch {
	case probe.problem != nil:
		p.Code, p.Text = probe.problem.Code, "DefaultInstance=: "+probe.problem.Text
	case probe.mode == masked:
		p.Code, p.Text = IsMasked, "DefaultInstance=: the instance is masked"
	default:
		return n, nil
	}
	c.report(p)
	return "", nil
}

// pull collects the link for one word of WantedBy= and its kind. Later ones
// replace earlier ones of the same path.
func (c *call) pull(in *info, name unit.Name, word, suffix string) bool {
	p := Problem{Owner: in.name, Object: word}
	by, err := c.expand(in, word)
	if err == nil {
		p.Code, err = BadName, unit.CheckName(by)
	} else {
		p.Code = codeOf(err)
	}
	switch {
	case err != nil:
		p.Text = "it cannot pull in a unit: " + err.Error()
	case name.IsTemplate() && !unit.Name(by).IsTemplate() && !unit.Name(by).IsInstance():
		p.Code, p.Text = NotInstance, "a plain unit cannot pull in a template that has no DefaultInstance="
	case len(by)+len(suffix) > unit.NameMax:
		p.Text = "the name is too long for a folder of links"
	default:
		return c.put(Link{Path: path.Join(c.Config, by+suffix, string(name)), Target: in.path, Owner: in.name}, true)
	}
	c.report(p)
	return false
}

// put adds l and reports whether it will stand. Where another link has its
// path, l replaces it, or is a problem.
func (c *call) put(l Link, replace bool) bool {
	i := slices.IndexFunc(c.links, func(o Link) bool { return o.Path == l.Path })
	switch {
	case i < 0:
		c.links = append(c.links, l)
	case c.Present(l, c.links[i].Target):
	case replace:
		c.links[i] = l
	default:
		c.report(Problem{Code: Taken, Owner: l.Owner, Object: l.Path, Text: "unit " + string(c.links[i].Owner) + " asks for it too"})
		return false
	}
	return true
}
