package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
)

// mostProblems is how many problems one error names.
const mostProblems = 20

// problem is one rule that a document breaks, and where.
type problem struct {
	path string // "unit", "patterns[2]"; "" is the document
	rule string
	near string // the name that was probably meant
}

func (p problem) String() string {
	if p.path == "" {
		return p.rule
	}
	return p.path + ": " + p.rule
}

// article is a word, or words, with the article that goes with it.
func article(kinds string) string {
	switch {
	case kinds == "null":
		return kinds
	case strings.IndexAny(kinds, "aeiou") == 0:
		return "an " + kinds
	}
	return "a " + kinds
}

// join is the path of a property of what stands at a path.
func join(at, name string) string {
	if at == "" {
		return cut(name, 64)
	}
	return at + "." + cut(name, 64)
}

// invalid is the error that names all problems; its hint names what was probably
// meant.
func invalid(object string, all []problem) error {
	var lines, near []string
	for _, p := range all {
		lines = append(lines, p.String())
		if p.near != "" {
			near = append(near, p.near)
		}
	}
	text := lines[0]
	if more := len(lines) - mostProblems; more > 0 {
		lines = append(lines[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	if len(lines) > 1 {
		text = fmt.Sprintf("%d problems: %s", len(all), strings.Join(lines, "; "))
	}
	err := fault.New(fault.Invalid, "arguments", object, errors.New(text))
	if near = slices.Compact(near); len(near) > 0 {
		return err.WithHint("did you mean " + strings.Join(near, ", ") + "?")
	}
	return err
}

// cut shortens a text between two characters.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
