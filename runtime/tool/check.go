package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stead/seats"
)

// check returns every rule that text breaks, in the order of their paths.
func (s *schema) check(text []byte) []problem {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc any
	err := d.Decode(&doc)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return []problem{{rule: fmt.Sprintf("no JSON: %v", err)}}
	}
	var f finder
	f.value(place{}, s, doc)
	slices.SortStableFunc(f.all, func(a, b problem) int { return strings.Compare(a.path, b.path) })
	return slices.Compact(f.all)
}

// place is where in a document a value stands.
type place struct {
	path    string
	meaning string // of the nearest property around it that has one
}

func (p place) in(name string, s *schema) place {
	at := place{join(p.path, name), p.meaning}
	if s.description != "" {
		at.meaning = s.description
	}
	return at
}

// finder finds what of a document breaks a schema.
type finder struct{ all []problem }

func (f *finder) add(at place, format string, args ...any) {
	f.all = append(f.all, problem{path: at.path, rule: fmt.Sprintf(format, args...)})
}

// value holds v to s. What is of another type is held to nothing else.
func (f *finder) value(at place, s *schema, v any) {
	if len(s.types) > 0 && !slices.ContainsFunc(s.types, func(t string) bool { return is(v, t) }) {
		f.add(at, "it is %s, and %s is wanted", article(kindOf(v)), article(strings.Join(s.types, " or ")))
		return
	}
	if len(s.enum) > 0 && !f.oneOf(at, s.enum, v) {
		return
	}
	if s.ref != nil {
		f.value(at, s.ref, v)
	}
	switch v := v.(type) {
	case string:
		f.text(at, s, v)
	case json.Number:
		f.number(at, s, v)
	case []any:
		f.list(at, s, v)
	case map[string]any:
		f.object(at, s, v)
	}
}

// oneOf wants one of a closed set of texts, and names the one that was probably
// meant.
func (f *finder) oneOf(at place, enum []string, v any) bool {
	text, is := v.(string)
	switch {
	case !is:
		f.add(at, "one of %s is wanted", strings.Join(enum, ", "))
	case !slices.Contains(enum, text):
		f.all = append(f.all, problem{at.path, fmt.Sprintf("%q is none of %s", text, strings.Join(enum, ", ")), seats.Closest(text, enum)})
	default:
		return true
	}
	return false
}

func (f *finder) text(at place, s *schema, v string) {
	if n := utf8.RuneCountInString(v); s.minLength != nil && n < *s.minLength {
		f.add(at, "%d characters; at least %d", n, *s.minLength)
	} else if s.maxLength != nil && n > *s.maxLength {
		f.add(at, "%d characters; at most %d", n, *s.maxLength)
	}
	if s.pattern != nil && !s.pattern.MatchString(v) {
		rule := fmt.Sprintf("%q does not match %s", cut(v, 64), s.pattern)
		if at.meaning != "" {
			rule = fmt.Sprintf("%q is not of the form that is wanted: %s", cut(v, 64), at.meaning)
		}
		f.add(at, "%s", rule)
	}
	if s.dateTime {
		if _, err := time.Parse(time.RFC3339, v); err != nil {
			f.add(at, "%q is no time such as %s", cut(v, 64), time.RFC3339)
		}
	}
}

func (f *finder) number(at place, s *schema, v json.Number) {
	if s.minimum == nil && s.maximum == nil {
		return
	}
	n, ok := new(big.Rat).SetString(v.String())
	switch {
	case !ok:
		f.add(at, "%s is out of all bounds", cut(v.String(), 64))
	case s.minimum != nil && n.Cmp(s.minimum) < 0:
		f.add(at, "%s; at least %s", n.RatString(), s.minimum.RatString())
	case s.maximum != nil && n.Cmp(s.maximum) > 0:
		f.add(at, "%s; at most %s", n.RatString(), s.maximum.RatString())
	}
}

func (f *finder) list(at place, s *schema, v []any) {
	switch {
	case s.minItems != nil && len(v) < *s.minItems:
		f.add(at, "%d of them; at least %d", len(v), *s.minItems)
	case s.maxItems != nil && len(v) > *s.maxItems:
		f.add(at, "%d of them; at most %d", len(v), *s.maxItems)
	}
	if s.items == nil {
		return
	}
	for i, one := range v {
		f.value(place{at.path + "[" + strconv.Itoa(i) + "]", at.meaning}, s.items, one)
	}
}

func (f *finder) object(at place, s *schema, v map[string]any) {
	for _, name := range s.required {
		if _, has := v[name]; !has {
			f.add(at.in(name, s), "it is required")
		}
	}
	for name, one := range v {
		switch known := s.properties[name]; {
		case known != nil:
			f.value(at.in(name, known), known, one)
		case s.closed:
			f.all = append(f.all, problem{join(at.path, name), "there is no such argument", seats.Closest(name, slices.Sorted(maps.Keys(s.properties)))})
		case s.others != nil:
			f.value(at.in(name, s.others), s.others, one)
		}
	}
}

// kindOf is the type of a value.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

// is reports whether v is of a type. A number without a fraction is an integer,
// however it is written.
func is(v any, kind string) bool {
	if kind != "integer" {
		return kindOf(v) == kind
	}
	n, number := v.(json.Number)
	if !number {
		return false
	}
	if !strings.ContainsAny(n.String(), ".eE") {
		return true
	}
	r, ok := new(big.Rat).SetString(n.String())
	return ok && r.IsInt()
}
