package shape

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Parse reads one file of declarations. It returns those that are valid, in the
// order of the file, and every problem of the others, in the order of their
// lines; file is only quoted. What holds across declarations is left to Check.
//
// An empty document declares nothing, and so does a file without any. Parse
// never panics and takes memory in proportion to data, with a bound of some
// 40 MiB on top for the document that is being read.
func Parse(file string, data []byte) ([]*Declaration, Problems) {
	located, problems := Locate(file, data)
	services := make([]*Declaration, len(located))
	for i, l := range located {
		services[i] = l.Declaration
	}
	return services, problems
}

// Located is a declaration and the lines on which its values stand.
type Located struct {
	*Declaration
	lines   map[string]int
	literal map[string]bool // texts whose lines are lines of the file
}

// Line returns the line of the value at path below the declaration, such as
// "nodes[2]" or "labels.role"; of what holds it, when there is none at path.
func (l Located) Line(path string) int {
	for path != "" {
		if line, ok := l.lines[path]; ok {
			return line
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return l.Origin.Line
}

// LineOf returns the line on which word first stands in the text at path; that of
// the text, where its lines are not lines of the file.
func (l Located) LineOf(path, text, word string) int {
	line := l.Line(path)
	if l.literal[path] {
		line += lineOf(text, word)
	}
	return line
}

// Locate reads as Parse does and keeps where each value stands, for whoever
// finds a problem later.
func Locate(file string, data []byte) ([]Located, Problems) {
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
	var services []Located
	documents := 0
	for d := range split(data) {
		if d.blank() {
			continue
		}
		if documents++; documents > 2*MaxDeclarations {
			c.add(Problem{File: file, Line: d.line, Rule: fmt.Sprintf("there are more than %d documents in the file, and the rest is not read", 2*MaxDeclarations), Cure: "declare fewer"})
			break
		}
		if s := d.read(file, c); s.Declaration != nil {
			services = append(services, s)
		}
	}
	slices.SortStableFunc(c.list, func(a, b Problem) int { return a.Line - b.Line })
	return services, c.all()
}

// read reads one document; an empty or an invalid one has no Declaration.
func (d document) read(file string, c *collector) Located {
	bad := d.measure()
	var root *yaml.Node
	if bad == nil {
		root, bad = d.parseTree()
	}
	switch {
	case bad != nil:
		c.add(Problem{file, d.line - 1 + bad.line, "", bad.rule, bad.cure})
		return Located{}
	case root == nil || root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" && root.Anchor == "":
		return Located{}
	}
	r := newReading(file, d.line-2, c)
	r.root(root)
	if r.problems > 0 {
		return Located{}
	}
	return Located{&r.declared, r.lines, r.literal}
}
