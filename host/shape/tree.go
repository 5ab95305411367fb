package shape

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// parseTree parses one measured document. The lines of the tree count from the
// document's first one. A nil node is an empty document.
func (d document) parseTree() (*yaml.Node, *rawProblem) {
	node, line, err := parseYAML(d.text)
	if err == "" {
		return node, nil
	}
	if at := firstFailing(d.text, err); at > 0 {
		line = at
	}
	last := bytes.Count(bytes.TrimSuffix(d.text, []byte("\n")), []byte("\n")) + 1
	return nil, &rawProblem{min(max(line, 1), last), "not YAML: " + err, syntaxCure(err)}
}

var yamlError = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`) })

// parseYAML parses text with one line put before it: the parser names no line
// for an error on the first one.
func parseYAML(text []byte) (node *yaml.Node, line int, err string) {
	var doc yaml.Node
	e := yaml.Unmarshal(append([]byte{'\n'}, text...), &doc)
	if e != nil {
		m := yamlError().FindStringSubmatch(strings.ReplaceAll(e.Error(), "\n", " "))
		line, _ = strconv.Atoi(m[1])
		if !fromParser(m[2]) {
			line--
		}
		return nil, line, m[2]
	}
	if len(doc.Content) == 0 {
		return nil, 0, ""
	}
	return doc.Content[0], 0, ""
}

// fromParser reports whether the parser, rather than the scanner, said so: the
// two count lines from different numbers.
func fromParser(msg string) bool {
	for _, s := range []string{"node content", "'-' indicator", "expected key", "',' or ']'", "',' or '}'", "<document start>"} {
		if strings.HasSuffix(msg, "did not find expected "+s) || strings.HasSuffix(msg, s) {
			return true
		}
	}
	return strings.HasPrefix(msg, "found undefined tag")
}

// firstFailing finds the line with which a fault of block structure begins: the
// parser names the line on which the broken mapping or list starts, and none for an unknown anchor. It returns 0
// for faults that a cut text has too, such as an open quote.
func firstFailing(text []byte, msg string) int {
	structural := strings.HasSuffix(msg, "did not find expected key") || strings.HasSuffix(msg, "'-' indicator") || strings.HasPrefix(msg, "unknown anchor")
	if !structural || len(text) > 256<<10 {
		return 0
	}
	lines := strings.SplitAfter(string(text), "\n")
	good, bad := 0, len(lines)
	for bad-good > 1 {
		mid := (good + bad) / 2
		if _, _, err := parseYAML([]byte(strings.Join(lines[:mid], ""))); err == msg {
			bad = mid
		} else {
			good = mid
		}
	}
	return bad
}

func syntaxCure(msg string) string {
	switch {
	case strings.Contains(msg, "cannot start any token"):
		return "indent with spaces, not tabs; put quotes around a text that begins with a special character"
	case strings.Contains(msg, "mapping values are not allowed"):
		return "put quotes around a text that holds \": \", and check the indentation"
	case strings.Contains(msg, "max depth"):
		return "no declaration is nested so deep"
	case strings.Contains(msg, "unknown anchor"):
		return "anchors and aliases are not read: write the value out"
	}
	return "check indentation and quotes, of this line and the one before"
}

// foreign finds what is YAML and no part of declarations: anchors, aliases,
// merge keys and tags that change what a text means. It returns the first of
// each kind below n.
func foreign(n *yaml.Node) []rawProblem {
	f := foreigners{seen: map[string]bool{}}
	f.visit(n)
	return f.found
}

type foreigners struct {
	seen  map[string]bool
	found []rawProblem
}

func (f *foreigners) add(n *yaml.Node, kind, rule, cure string) {
	if !f.seen[kind] {
		f.seen[kind] = true
		f.found = append(f.found, rawProblem{n.Line, rule, cure})
	}
}

func (f *foreigners) visit(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		f.add(n, "alias", fmt.Sprintf("the YAML alias %.60q is not read", n.Value), "write the value out")
	case n.Anchor != "":
		f.add(n, "anchor", fmt.Sprintf("the YAML anchor %.60q is not read", n.Anchor), "delete it, and write the value out where it was used")
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!merge" {
		f.add(n, "merge", "the YAML merge key << is not read", "write the fields out")
	} else if n.Style&yaml.TaggedStyle != 0 && !coreTag(n) {
		f.add(n, "tag", fmt.Sprintf("the YAML tag %.60q is not read", n.Tag), "delete it")
	}
	for _, c := range n.Content {
		f.visit(c)
	}
}

// coreTag reports whether the tag that is written at n is one of YAML's core
// schema.
func coreTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!bool", "!!null", "!!int", "!!float", "!!map", "!!seq":
		return true
	}
	return false
}
