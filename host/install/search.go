package install

import (
	"path"
	"slices"
	"strings"

	"stead/host/unit"
)

// search finds in's fragment and reads it and its drop-ins, once.
func (c *call) search(in *info) error {
	if in.mode != unknown || in.problem != nil {
		return nil
	}
	u, found, err := c.lookup(in.name)
	if err != nil {
		return err
	}
	dropIns := u.DropIns
	if in.name.IsInstance() {
		t, ok, err := c.lookup(in.name.Template())
		if err != nil {
			return err
		}
		if !found {
			u, found = t, ok
		}
		dropIns = mergeDropIns(dropIns, t.DropIns)
	}
	if !found {
		in.fail(NoUnit, string(in.name), "there is no such unit")
		return nil
	}
	in.found, in.path = u.Path, u.Path
	c.classify(in, u)
	if in.mode == masked || in.problem != nil {
		return nil
	}
	if in.mode == regular {
		c.read(in, u.Text)
	}
	for _, d := range dropIns {
		if in.problem != nil {
			break
		}
		if d.Err != nil {
			in.fail(Unreadable, d.Path, "%v", d.Err)
			break
		}
		c.read(in, d.Text)
	}
	return nil
}

// mergeDropIns joins the drop-ins of an instance and of its template: one file
// for each file name, the instance's first.
func mergeDropIns(instance, template []DropIn) []DropIn {
	if len(instance) == 0 || len(template) == 0 {
		return append(instance[:len(instance):len(instance)], template...)
	}
	all := slices.Clone(instance)
	for _, t := range template {
		if !slices.ContainsFunc(instance, func(d DropIn) bool { return path.Base(d.Path) == path.Base(t.Path) }) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b DropIn) int { return strings.Compare(path.Base(a.Path), path.Base(b.Path)) })
	return all
}

// classify says what the fragment is that was found for in.
func (c *call) classify(in *info, u Unit) {
	if u.Link == "" {
		u.Link = u.Target
	}
	in.link, in.target, in.gone, in.err, in.body = u.Link, u.Target, u.Gone, u.Err, u.Text
	if c.is247() {
		c.classify247(in, u)
		return
	}
	switch {
	case u.Masked:
		in.mode = masked
	case u.Link != "" && c.underneath(u.Link):
		in.mode = alias
		if code, text := mayLead(path.Base(u.Path), path.Base(u.Link)); code != "" {
			in.fail(code, u.Path, "it leads to %s: %s", u.Link, text)
		}
	case u.Link != "":
		in.mode = linked
	case u.Err != nil:
		in.fail(Unreadable, u.Path, "%v", u.Err)
	default:
		in.mode = regular
	}
}

// maxHops bounds a chain of aliases, as the manager does.
const maxHops = 64

// resolve finds the unit that in leads to. Its problem says why there is none.
// Links in the configuration folders are followed for the unit that was asked
// for alone, to tell what it is.
func (c *call) resolve(in *info, asked bool) (*info, error) {
	if err := c.search(in); err != nil {
		return nil, err
	}
	start := in
	for hops := 0; in.problem == nil && (in.mode == alias || in.mode == linked); hops++ {
		if hops == maxHops || !asked && c.configured(in.path) {
			return &info{name: in.name, problem: &Problem{Code: IsAlias, Owner: start.name, Object: in.path, Text: "it is a link to " + in.link, Fatal: true}}, nil
		}
		next := aliasName(in)
		if next == in.name && c.goesOn247(in) {
			continue
		}
		if next == in.name {
			c.enter(in)
			break
		}
		to := c.add(next, false)
		if err := c.search(to); err != nil {
			return nil, err
		}
		in = to
	}
	return in, nil
}

// enter reads in's text from where its link leads.
func (c *call) enter(in *info) {
	switch {
	case in.gone:
		in.fail(NoUnit, in.target, "%s leads there, and there is nothing", in.path)
	case in.err != nil:
		in.fail(Unreadable, in.path, "%v", in.err)
	default:
		if in.mode == linked || !c.underneath(in.target) || c.is247() && in.link != in.target {
			in.path = in.target
		} else {
			in.path = in.link
		}
		in.mode = regular
		c.read(in, in.body)
	}
}

// aliasName is the name of the unit that in's link leads to, in's own when it
// is in itself that lies there.
func aliasName(in *info) unit.Name {
	if in.mode == linked {
		return in.name
	}
	base := unit.Name(path.Base(in.link))
	if in.name.IsInstance() && base.IsTemplate() {
		return base.WithInstance(in.name.Instance())
	}
	return base
}
