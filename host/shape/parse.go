package shape

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Parse reads one file of declarations. It returns those that are valid, in the
// order of the file, and every problem of the others, in the order of their
// lines; file is only quoted. What holds across declarations is left to Check.
//
// An empty document declares nothing, and so does a file without any. Parse
// never panics and takes memory in proportion to data, with a bound of some
// 40 MiB on top for the document that is being read.
func Parse(file string, data []byte) ([]*Service, Problems) {
	c := &collector{}
	if len(data) > MaxBatch {
		c.add(Problem{File: file, Rule: fmt.Sprintf("the file has %d bytes; a batch has at most %d", len(data), MaxBatch), Cure: "declare less in one folder"})
		return nil, c.all()
	}
	if raw := rawProblems(data); len(raw) > 0 {
		for _, p := range raw {
			c.add(Problem{file, p.line, "", p.rule, p.cure})
		}
		return nil, c.all()
	}
	var services []*Service
	documents := 0
	for d := range split(data) {
		if d.blank() {
			continue
		}
		if documents++; documents > 2*MaxDeclarations {
			c.add(Problem{File: file, Line: d.line, Rule: fmt.Sprintf("there are more than %d documents in the file, and the rest is not read", 2*MaxDeclarations), Cure: "declare fewer"})
			break
		}
		if s := d.read(file, c); s != nil {
			services = append(services, s)
		}
	}
	slices.SortStableFunc(c.list, func(a, b Problem) int { return a.Line - b.Line })
	return services, c.all()
}

// read reads one document; nil is an empty or an invalid one.
func (d document) read(file string, c *collector) *Service {
	bad := d.measure()
	var root *yaml.Node
	if bad == nil {
		root, bad = d.parseTree()
	}
	switch {
	case bad != nil:
		c.add(Problem{file, d.line - 1 + bad.line, "", bad.rule, bad.cure})
		return nil
	case root == nil || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" && root.Anchor == "":
		return nil
	}
	r := newReading(file, d.line-2, c)
	r.root(root)
	if r.problems > 0 {
		return nil
	}
	return &r.service
}
