package shape

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reading is one document that is being read. Each field is read and judged for
// itself, so that all problems are found at once. The maps are by path below the
// declaration: "unit", "dropins.10-x.conf".
type reading struct {
	file     string
	offset   int // from a node's line to the line of the file
	into     *collector
	problems int
	declared Declaration
	as       known  // the shape that the document is read as
	moded    bool   // a mode was declared
	label    string // what paths begin with: the declaration's name, when it has a usable one
	ensureAs string // under which of its names ensure was declared: ensure, state or ""

	keys    map[string]int  // line of each key that was seen, also of unknown ones
	lines   map[string]int  // line of each value
	set     map[string]bool // values that are not null
	bad     map[string]bool // values that have a problem: no further rule is applied to them
	literal map[string]bool // texts that are literal blocks, whose lines are lines of the file
}

func newReading(file string, offset int, into *collector) *reading {
	return &reading{file: file, offset: offset, into: into, keys: map[string]int{}, lines: map[string]int{},
		set: map[string]bool{}, bad: map[string]bool{}, literal: map[string]bool{}}
}

func (r *reading) root(n *yaml.Node) {
	r.declared.Origin = Origin{File: r.file, Line: n.Line + r.offset}
	r.lines[""] = n.Line + r.offset
	for key, value := range pairs(n) {
		if key.Value == "name" && value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str" && dnsLabel(value.Value) {
			r.label = value.Value
			break
		}
	}
	if r.as = asShape(n); r.as.Name == FileShape {
		r.declared.File = &File{}
		if r.label != "" {
			r.label = FilePrefix + r.label
		}
	}
	for _, p := range foreign(n) {
		r.report(p.line+r.offset, "", p.rule, p.cure)
	}
	if n.Kind != yaml.MappingNode {
		r.report(r.lines[""], "", "the document is "+kindOf(n)+", and no declaration", "write fields, one a line, such as shape: service")
		return
	}
	for key, value := range pairs(n) {
		r.field(r.as.fields, key, value)
	}
	r.finish()
}

// asShape returns the shape that a document names; one that names none is read as
// a service.
func asShape(n *yaml.Node) known {
	name := ServiceShape
	for key, value := range pairs(n) {
		if key.Value == "shape" && value.Kind == yaml.ScalarNode {
			if _, ok := shapeOf(value.Value); ok {
				name = value.Value
			}
			break
		}
	}
	as, _ := shapeOf(name)
	return as
}

// finish fills in the defaults and applies the rules.
func (r *reading) finish() {
	if !r.set["shape"] {
		r.fail("shape", "missing", "write shape: service, or shape: file")
	}
	r.declared.complete(r.moded)
	j := judge{&r.declared, func(path string) bool { return r.bad[path] }, r.failIn, false}
	j.all()
	slices.Sort(r.declared.Triggers)
}

// field reads one field of the declaration.
func (r *reading) field(fields []field, key, value *yaml.Node) {
	if key.Kind != yaml.ScalarNode {
		r.report(key.Line+r.offset, "", "a field is named by "+kindOf(key), "name it by one word")
		return
	}
	if key.Tag == "!!merge" {
		return // foreign has said so
	}
	name := printable(key.Value)
	if r.twice(name, key) {
		return
	}
	i := slices.IndexFunc(fields, func(f field) bool { return f.Name == key.Value })
	if i < 0 {
		r.unknown(fields, key)
		return
	}
	r.lines[name] = value.Line + r.offset
	if !null(value) {
		r.set[name] = true
		fields[i].read(r, value)
	}
}

// twice notes the key of path and reports whether it stood there before.
func (r *reading) twice(path string, key *yaml.Node) bool {
	first, seen := r.keys[path]
	if seen {
		r.report(key.Line+r.offset, path, fmt.Sprintf("declared twice, first on line %d", first), "delete one of them")
		return true
	}
	r.keys[path] = key.Line + r.offset
	return false
}

func (r *reading) unknown(fields []field, key *yaml.Node) {
	path, line := printable(key.Value), key.Line+r.offset
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	cure := fmt.Sprintf("the fields of shape %s are %s", r.as.Name, strings.Join(names, ", "))
	if near := Nearest(strings.ToLower(key.Value), names); near != "" {
		cure = "did you mean " + near + "?"
	}
	r.report(line, path, "unknown field", cure)
}

// fail reports a problem of the value at path and marks it as bad.
func (r *reading) fail(path, rule, cure string) { r.failIn(path, 0, rule, cure) }

// failIn does so for a line of the text at path, from 1; 0 is the whole.
func (r *reading) failIn(path string, textLine int, rule, cure string) {
	r.bad[path] = true
	if path == "ensure" && r.ensureAs != "" {
		path = r.ensureAs
	}
	line, ok := r.lines[path]
	switch {
	case !ok:
		line = r.lines[""]
	case textLine > 0 && r.literal[path]:
		line += textLine
	case textLine > 0:
		rule = fmt.Sprintf("line %d of the text: %s", textLine, rule)
	}
	r.report(line, path, rule, cure)
}

func (r *reading) report(line int, path, rule, cure string) {
	r.problems++
	if r.label != "" {
		path = strings.TrimSuffix(r.label+"."+path, ".")
	}
	r.into.add(Problem{r.file, line, path, rule, cure})
}

// pairs walks through the keys and values of a mapping; anything else has none.
func pairs(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(k, v *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// printable returns s as a part of a path: as it is when it is a plain word, and
// quoted and cut otherwise.
func printable(s string) string {
	for _, c := range s {
		if c <= ' ' || c > '~' {
			return fmt.Sprintf("%.80q", s)
		}
	}
	if s == "" || len(s) > 80 {
		return fmt.Sprintf("%.80q", s)
	}
	return s
}

// kindOf says what n is, for a person.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!bool":
		return fmt.Sprintf("the truth value %.40s", n.Value)
	case "!!int", "!!float":
		return fmt.Sprintf("the number %.40s", n.Value)
	case "!!timestamp":
		return fmt.Sprintf("the date %.40s", n.Value)
	case "!!null":
		return "nothing"
	}
	return fmt.Sprintf("the text %.40q", n.Value)
}
