package install

import (
	"path"
	"slices"

	"stead/host/unit"
)

// apply collects the links of one unit.
func (c *call) apply(in *info) error {
	for _, w := range in.aliases {
		c.alias(in, w)
	}
	for _, l := range []struct {
		words  []string
		suffix string
	}{{in.wantedBy, ".wants"}, {in.requiredBy, ".requires"}, {in.upheldBy, ".upholds"}} {
		if len(l.words) == 0 {
			continue
		}
		name, err := c.pulledIn(in)
		if err != nil {
			return err
		}
		if name == "" {
			continue
		}
		for _, w := range l.words {
			c.pull(in, name, w, l.suffix)
		}
	}
	if at := path.Join(c.Config, string(in.name)); !c.underneath(in.path) && !c.madeBy(in.name, at) {
		c.put(in, Link{Path: at, Target: in.path, Owner: in.name, Linked: true}, false)
	}
	return nil
}

// madeBy reports whether the unit n was found by a link at p.
func (c *call) madeBy(n unit.Name, p string) bool { return c.infos[n].found == p }

func (c *call) report(p Problem) { c.problems = append(c.problems, p) }

// alias collects the link for one word of Alias=.
func (c *call) alias(in *info, word string) {
	expanded, err := c.expand(in, word)
	if err != nil {
		c.report(Problem{Code: codeOf(err), Owner: in.name, Object: word, Text: "Alias=: " + err.Error(), Fatal: true})
		return
	}
	at, p := aliasPath(in, expanded)
	switch {
	case p.Code != "":
		c.report(p)
	case at != "":
		c.put(in, Link{Path: path.Join(c.Config, at), Target: in.path, Owner: in.name}, false)
	}
}

// pulledIn returns the name under which in is pulled in by other units, "" when
// there is a problem with its default instance.
func (c *call) pulledIn(in *info) (unit.Name, error) {
	if !in.name.IsTemplate() || in.instance == "" {
		return in.name, nil
	}
	n := in.name.WithInstance(in.instance)
	p := Problem{Owner: in.name, Object: string(n), Fatal: true}
	if err := unit.CheckName(string(n)); err != nil {
		p.Code, p.Text = BadName, "DefaultInstance=: "+err.Error()
		c.report(p)
		return "", nil
	}
	u, found, err := c.Lookup(n)
	if err != nil {
		return "", err
	}
	if !found {
		return n, nil
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
func (c *call) pull(in *info, name unit.Name, word, suffix string) {
	p := Problem{Owner: in.name, Object: word, Fatal: true}
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
		c.put(in, Link{Path: path.Join(c.Config, by+suffix, string(name)), Target: in.path, Owner: in.name}, true)
		return
	}
	c.report(p)
}

// put adds l. Where another link has its path, l replaces it, or is a problem.
func (c *call) put(in *info, l Link, replace bool) {
	i := slices.IndexFunc(c.links, func(o Link) bool { return o.Path == l.Path })
	switch {
	case i < 0:
		c.links = append(c.links, l)
	case c.Present(l, c.links[i].Target):
	case replace:
		c.links[i] = l
	default:
		c.report(Problem{Code: Taken, Owner: in.name, Object: l.Path, Text: "unit " + string(c.links[i].Owner) + " asks for it too", Fatal: true})
	}
}
