package install

import (
	"slices"
	"strings"

	"stead/host/unit"
)

// Links returns what enabling n means. Its error is the Lookup's; whatever is
// wrong with units is in Result.Problems.
func Links(n unit.Name, o Options) (Result, error) {
	c := &call{Options: o, seen: map[unit.Name]bool{}}
	first, err := c.discover(n, true)
	if err != nil {
		return Result{}, err
	}
	r := Result{Name: first.name, Kind: first.kind()}
	if r.Kind == Missing || r.Kind == Masked || first.stop {
		r.Problems = c.problems
		return r, nil
	}
	queue := []unit.Name{first.name}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if c.seen[next] {
			continue
		}
		c.seen[next] = true
		in, err := c.discover(next, false)
		if err != nil {
			return Result{}, err
		}
		if in.stop || in.masked {
			continue
		}
		c.apply(in)
		queue = append(queue, in.also...)
	}
	slices.SortFunc(c.links, func(a, b Link) int { return strings.Compare(a.Path, b.Path) })
	r.Links = slices.CompactFunc(c.links, func(a, b Link) bool { return a.Path == b.Path })
	r.Problems = c.problems
	return r, nil
}

// call is one Links call.
type call struct {
	Options
	seen     map[unit.Name]bool
	links    []Link
	problems []Problem
}
