package install

import (
	"path"
	"slices"
	"strings"

	"stead/host/unit"
)

// Links returns what enabling n means. Its error is the Lookup's; whatever is
// wrong with units is in Result.Problems. An alias in the configuration folders
// is told by its Problem IsAlias and by Result.Name, which is then the unit to
// ask for.
func Links(n unit.Name, o Options) (Result, error) {
	c := &call{Options: o, infos: make(map[unit.Name]*info, 4)}
	first := c.add(n, false)
	final, err := c.resolve(first, true)
	if err != nil {
		return Result{}, err
	}
	r := Result{Name: final.name, Kind: final.kind()}
	switch p := final.refusal(); {
	case p != nil:
		c.problems = append(c.problems, *p)
	default:
		if err := c.drain(); err != nil {
			return Result{}, err
		}
	}
	slices.SortFunc(c.links, func(a, b Link) int { return strings.Compare(a.Path, b.Path) })
	r.Links, r.Problems = c.links, c.problems
	return r, nil
}

// call is one Links call.
type call struct {
	Options
	infos    map[unit.Name]*info
	queue    []*info // in the order in which units were met
	links    []Link
	problems []Problem
	fatal    bool // whether a problem in the current step fails the manager's call
}

// lookup is Lookup on the disk as it is by now: an alias that the call has made
// is found before what lies in lower folders.
func (c *call) lookup(n unit.Name) (Unit, bool, error) {
	u, found, err := c.Lookup(n)
	i := slices.IndexFunc(c.links, func(l Link) bool {
		return strings.HasSuffix(l.Path, string(n)) && l.Path == path.Join(c.Config, string(n))
	})
	if i < 0 || found && slices.Index(c.Search, path.Dir(u.Path)) <= slices.Index(c.Search, c.Config) {
		return u, found, err
	}
	return Unit{Path: c.links[i].Path, Link: c.links[i].Target, Target: c.links[i].Target, DropIns: u.DropIns}, true, err
}

// add puts a unit that is to be enabled too into the queue. A unit that only
// Also= names is auxiliary: what is wrong with it does not fail the call.
func (c *call) add(n unit.Name, auxiliary bool) *info {
	if in, ok := c.infos[n]; ok {
		in.auxiliary = in.auxiliary && auxiliary
		return in
	}
	in := &info{name: n, auxiliary: auxiliary}
	c.infos[n] = in
	c.queue = append(c.queue, in)
	return in
}

// drain enables the queue's units. It grows the while.
func (c *call) drain() error {
	for i := 0; i < len(c.queue); i++ {
		in := c.queue[i]
		final, err := c.resolve(in, false)
		switch {
		case err != nil:
			return err
		case final.problem != nil:
			p := *final.problem
			p.Fatal = !in.auxiliary
			c.problems = append(c.problems, p)
			if p.Fatal {
				return nil // the manager goes no further
			}
		case in.mode == masked:
			c.problems = append(c.problems, Problem{Code: IsMasked, Owner: in.name, Object: in.path, Text: "the unit is masked"})
		case in.mode == regular:
			if err := c.apply(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// underneath reports whether p lies below a folder of the search path.
func (o Options) underneath(p string) bool {
	for _, dir := range o.Search {
		if below(p, dir) {
			return true
		}
	}
	return false
}

func below(p, dir string) bool {
	return len(p) > len(dir) && p[len(dir)] == '/' && strings.HasPrefix(p, dir)
}

// configured reports whether p lies in one of the folders that links are made
// in.
func (o Options) configured(p string) bool {
	dir := path.Dir(p)
	return dir == o.Config || dir == o.Runtime
}
