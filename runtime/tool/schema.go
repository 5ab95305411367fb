package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"stead/host/fault"
	"stead/seats"
)

// mostProblems is how many problems one error names.
const mostProblems = 20

// schema is a compiled schema.
type schema struct {
	s *jsonschema.Schema
}

// compile reads a schema of draft 2020-12 that refers to nothing but itself.
func compile(name string, text json.RawMessage) (*schema, error) {
	bad := func(err error) error { return fault.New(fault.Invalid, "read schema", name, err) }
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, bad(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(nowhere{})
	const at = "stead:///schema.json"
	if err := c.AddResource(at, doc); err != nil {
		return nil, bad(err)
	}
	s, err := c.Compile(at)
	if err != nil {
		return nil, bad(err)
	}
	return &schema{s}, nil
}

// nowhere loads nothing: a schema brings all that it refers to.
type nowhere struct{}

// Load implements jsonschema.URLLoader.
func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s: a schema refers to nothing outside", url)
}

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

// check returns every rule that text breaks, in the order of their paths.
func (s *schema) check(text []byte) []problem {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return []problem{{rule: fmt.Sprintf("no JSON: %v", err)}}
	}
	var broken *jsonschema.ValidationError
	if err := s.s.Validate(doc); err == nil {
		return nil
	} else if !errors.As(err, &broken) {
		return []problem{{rule: err.Error()}}
	}
	all := s.collect(nil, broken)
	slices.SortStableFunc(all, func(a, b problem) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(all)
}

// collect appends the leaves of the tree of causes.
func (s *schema) collect(all []problem, v *jsonschema.ValidationError) []problem {
	for _, c := range v.Causes {
		all = s.collect(all, c)
	}
	if len(v.Causes) > 0 {
		return all
	}
	at := pathOf(v.InstanceLocation)
	switch k := v.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		known := s.properties(v.InstanceLocation)
		for _, name := range k.Properties {
			all = append(all, problem{join(at, name), "there is no such argument", seats.Closest(name, known)})
		}
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, problem{join(at, name), "it is required", ""})
		}
	default:
		rule, near := ruleOf(v.ErrorKind)
		if p, ok := v.ErrorKind.(*kind.Pattern); ok {
			rule = s.patternRule(v.InstanceLocation, p)
		}
		all = append(all, problem{at, rule, near})
	}
	return all
}

// properties are the names that an object at a path may have, as far as they
// stand in the schema's own objects.
func (s *schema) properties(path []string) []string {
	if len(path) > 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(s.s.Properties))
}

// patternRule says which form a text lacks, and what it should be.
func (s *schema) patternRule(path []string, k *kind.Pattern) string {
	got := cut(k.Got, 64)
	if len(path) > 0 {
		if p := s.s.Properties[path[0]]; p != nil && p.Description != "" {
			return fmt.Sprintf("%q is not of the form that is wanted: %s", got, p.Description)
		}
	}
	return fmt.Sprintf("%q does not match %s", got, k.Want)
}

// ruleOf says which rule it is, and for a name of a closed set which one was
// probably meant.
func ruleOf(k jsonschema.ErrorKind) (rule, near string) {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("it is %s, and %s is wanted", article(k.Got), article(strings.Join(k.Want, " or "))), ""
	case *kind.Enum:
		var words []string
		for _, w := range k.Want {
			words = append(words, fmt.Sprint(w))
		}
		got, text := k.Got.(string)
		if !text {
			return "one of " + strings.Join(words, ", ") + " is wanted", ""
		}
		return fmt.Sprintf("%q is none of %s", got, strings.Join(words, ", ")), seats.Closest(got, words)
	case *kind.MinLength:
		return fmt.Sprintf("%d characters; at least %d", k.Got, k.Want), ""
	case *kind.MaxLength:
		return fmt.Sprintf("%d characters; at most %d", k.Got, k.Want), ""
	case *kind.MaxItems:
		return fmt.Sprintf("%d of them; at most %d", k.Got, k.Want), ""
	case *kind.Minimum:
		return fmt.Sprintf("%s; at least %s", k.Got.RatString(), k.Want.RatString()), ""
	case *kind.Maximum:
		return fmt.Sprintf("%s; at most %s", k.Got.RatString(), k.Want.RatString()), ""
	}
	return fmt.Sprintf("it breaks the rule %q", strings.Join(k.KeywordPath(), "/")), ""
}

func article(kinds string) string {
	switch {
	case kinds == "null":
		return kinds
	case strings.IndexAny(kinds, "aeiou") == 0:
		return "an " + kinds
	}
	return "a " + kinds
}

// pathOf writes a path as people do: patterns[2].
func pathOf(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		if _, err := strconv.Atoi(t); err == nil {
			b.WriteString("[" + t + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(cut(t, 64))
	}
	return b.String()
}

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
