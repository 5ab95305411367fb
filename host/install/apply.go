package install

import (
	"path"

	"stead/host/unit"
)

// info is one unit whose [Install] section is read.
type info struct {
	name   unit.Name
	path   string
	masked bool
	found  bool
	stop   bool // nothing can be made of it
	text   unit.File
	also   []unit.Name
}

func (in *info) kind() Kind {
	switch {
	case in.masked:
		return Masked
	case !in.found:
		return Missing
	}
	for _, key := range []string{"WantedBy", "RequiredBy", "UpheldBy", "Alias"} {
		if len(in.text.List("Install", key)) > 0 {
			return Enableable
		}
	}
	if len(in.also) > 0 {
		return Indirect
	}
	return Static
}

// discover finds the unit that n names, and reads it.
func (c *call) discover(n unit.Name, _ bool) (*info, error) {
	u, found, err := c.Lookup(n)
	if err != nil {
		return nil, err
	}
	in := &info{name: n, path: u.Path, masked: u.Masked, found: found, stop: !found}
	texts := make([]unit.File, 0, len(u.DropIns))
	for _, d := range u.DropIns {
		texts = append(texts, d.Text)
	}
	in.text = u.Text.Merge(texts...)
	for _, w := range in.text.List("Install", "Also") {
		if also, err := unit.ParseName(w); err == nil {
			in.also = append(in.also, also)
		}
	}
	return in, nil
}

func (c *call) apply(in *info) {
	for _, k := range []struct{ key, suffix string }{{"WantedBy", ".wants"}, {"RequiredBy", ".requires"}} {
		for _, w := range in.text.List("Install", k.key) {
			dst, err := c.Specifiers.expand(w, in.name, in.name.Instance())
			if err != nil {
				c.problems = append(c.problems, Problem{Code: BadSpecifier, Owner: in.name, Object: w, Text: err.Error(), Fatal: true})
				continue
			}
			c.links = append(c.links, Link{Path: path.Join(c.Config, dst+k.suffix, string(in.name)), Target: in.path, Owner: in.name})
		}
	}
}
