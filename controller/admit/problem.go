package admit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"stead/host/shape"
	"stead/mesh/wire"
)

// problems are the problems of a request, to be told in the order of its files.
type problems struct {
	list  shape.Problems
	files map[string]int // in which order
}

func (p *problems) add(one ...shape.Problem) { p.list = append(p.list, one...) }

// sorted returns the problems in the order of their places, and no more than one
// answer lists. Those of the whole request come first.
func (p *problems) sorted() shape.Problems {
	slices.SortStableFunc(p.list, func(a, b shape.Problem) int {
		if a.File != b.File {
			return p.files[a.File] - p.files[b.File]
		}
		return a.Line - b.Line
	})
	return p.list.Limit()
}

// problem notes a problem of the declaration of c, at path below it.
func (j *judge) problem(c *change, path, rule, cure string) {
	p := shape.Problem{Path: path, Rule: rule, Cure: cure}
	if c.doc != nil {
		p.Line = c.doc.Line(path)
	}
	j.problemAt(c, p)
}

// problemAt is problem, for who knows the line better.
func (j *judge) problemAt(c *change, p shape.Problem) {
	name := ""
	switch {
	case c.doc != nil:
		p.File, name = c.doc.Origin.File, c.doc.Name
	case c.is != nil:
		name = c.is.Name
	}
	p.Path = strings.TrimSuffix(name+"."+p.Path, ".")
	j.problems.add(p)
}

// warn notes what holds nothing up.
func (j *judge) warn(format string, args ...any) {
	if len(j.warnings) < maxWarnings {
		j.warnings = append(j.warnings, fmt.Sprintf(format, args...))
	}
}

// nearest is shape.Nearest with a memory: one wrong name may stand in a thousand
// declarations.
func (j *judge) nearest(word string, words []string) string {
	near, known := j.near[word]
	if !known {
		near = shape.Nearest(word, words)
		j.near[word] = near
	}
	return near
}

const maxWarnings = 200

// fit makes d's reply small enough for one message: problems, then conflicts are
// left out, and counted.
func fit(d Decision) Decision {
	r := &d.Reply
	problems, conflicts, warnings := r.Problems, r.Conflicts, r.Warnings
	for n := max(len(problems), len(conflicts)); n > 0; n /= 2 {
		if text, err := json.Marshal(r); err != nil || len(text) <= wire.MaxPage {
			break
		}
		if more := len(problems) - n/2; more > 0 && len(problems) > 0 {
			r.Problems = append(slices.Clip(problems[:n/2]), shape.Problem{Rule: fmt.Sprintf("%d further problems are not listed", more), Cure: "mend these first"})
		}
		if more := len(conflicts) - n/2; more > 0 && len(conflicts) > 0 {
			r.Conflicts = conflicts[:n/2]
			r.Warnings = append(slices.Clip(warnings), fmt.Sprintf("%d further conflicts are not listed", more))
		}
	}
	return d
}
