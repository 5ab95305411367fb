package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"stead/host/fault"
)

// dialect is what schemas are written in. What of it is served are the keywords
// of words.
const dialect = "https://json-schema.org/draft/2020-12/schema"

// schema is a compiled schema.
type schema struct {
	description          string
	types, enum          []string // none: any
	required             []string
	properties           map[string]*schema
	closed               bool    // no other properties
	others               *schema // of properties that are not named; nil: anything
	items                *schema
	ref                  *schema
	minLength, maxLength *int
	minItems, maxItems   *int
	minimum, maximum     *big.Rat
	pattern              *regexp.Regexp
	dateTime             bool
}

// words are the keywords of a schema.
type words struct {
	Schema      string                     `json:"$schema"`
	Defs        map[string]json.RawMessage `json:"$defs"`
	Ref         string                     `json:"$ref"`
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Type        json.RawMessage            `json:"type"`
	Enum        []string                   `json:"enum"`
	Format      string                     `json:"format"`
	Pattern     *string                    `json:"pattern"`
	MinLength   *int                       `json:"minLength"`
	MaxLength   *int                       `json:"maxLength"`
	Minimum     json.Number                `json:"minimum"`
	Maximum     json.Number                `json:"maximum"`
	Items       json.RawMessage            `json:"items"`
	MinItems    *int                       `json:"minItems"`
	MaxItems    *int                       `json:"maxItems"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
	Others      json.RawMessage            `json:"additionalProperties"`
}

// compiler compiles one schema with all that it defines.
type compiler struct {
	defs map[string]*schema
	refs map[*schema]string // what each refers to
}

// compile reads a schema that refers to nothing but what it defines itself. A
// keyword that is not served is refused: what it asks for would not be held.
func compile(name string, text json.RawMessage) (*schema, error) {
	c := compiler{defs: map[string]*schema{}, refs: map[*schema]string{}}
	s, err := c.root(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "read schema", name, err)
	}
	return s, nil
}

func (c *compiler) root(text json.RawMessage) (*schema, error) {
	var w words
	if err := strictly(text, &w); err != nil {
		return nil, err
	}
	if w.Schema != "" && w.Schema != dialect {
		return nil, fmt.Errorf("$schema: %q; %q is served", w.Schema, dialect)
	}
	for _, name := range slices.Sorted(maps.Keys(w.Defs)) {
		def, err := c.compile(w.Defs[name])
		if err != nil {
			return nil, fmt.Errorf("$defs: %s: %w", name, err)
		}
		c.defs["#/$defs/"+name] = def
	}
	w.Schema, w.Defs = "", nil
	s, err := c.make(w)
	if err != nil {
		return nil, err
	}
	for from, to := range c.refs {
		if from.ref = c.defs[to]; from.ref == nil {
			return nil, fmt.Errorf("$ref: %q: it is not defined by the schema", to)
		}
	}
	return s, c.circles()
}

// circles refuses what refers to itself with nothing in between.
func (c *compiler) circles() error {
	for s, to := range c.refs {
		for seen := 0; s.ref != nil; seen++ {
			if s = s.ref; seen > len(c.refs) {
				return fmt.Errorf("$ref: %q: it refers to itself", to)
			}
		}
	}
	return nil
}

// strictly decodes the only value in text.
func strictly(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one value")
	}
	return nil
}

func (c *compiler) compile(text json.RawMessage) (*schema, error) {
	var w words
	if err := strictly(text, &w); err != nil {
		return nil, err
	}
	return c.make(w)
}

// make makes one schema of its words.
func (c *compiler) make(w words) (*schema, error) {
	if w.Schema != "" || w.Defs != nil {
		return nil, errors.New("$schema and $defs stand at the top")
	}
	s := &schema{
		description: w.Description, enum: w.Enum, required: w.Required, dateTime: w.Format == "date-time",
		minLength: w.MinLength, maxLength: w.MaxLength, minItems: w.MinItems, maxItems: w.MaxItems,
	}
	if w.Format != "" && !s.dateTime {
		return nil, fmt.Errorf("format: %q is not served", w.Format)
	}
	if w.Ref != "" {
		c.refs[s] = w.Ref
	}
	var err error
	if w.Pattern != nil {
		if s.pattern, err = regexp.Compile(*w.Pattern); err != nil {
			return nil, fmt.Errorf("pattern: %w", err)
		}
	}
	if s.types, err = typesOf(w.Type); err == nil {
		err = errors.Join(bound(&s.minimum, w.Minimum), bound(&s.maximum, w.Maximum))
	}
	if err == nil {
		err = c.parts(s, w)
	}
	return s, err
}

// parts are the schemas within a schema.
func (c *compiler) parts(s *schema, w words) (err error) {
	if w.Items != nil {
		if s.items, err = c.compile(w.Items); err != nil {
			return fmt.Errorf("items: %w", err)
		}
	}
	s.properties = make(map[string]*schema, len(w.Properties))
	for _, name := range slices.Sorted(maps.Keys(w.Properties)) {
		if s.properties[name], err = c.compile(w.Properties[name]); err != nil {
			return fmt.Errorf("properties: %s: %w", name, err)
		}
	}
	switch string(w.Others) {
	case "", "true":
	case "false":
		s.closed = true
	default:
		if s.others, err = c.compile(w.Others); err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
	}
	return nil
}

// kinds are the types of JSON Schema.
var kinds = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// typesOf reads one type or a list of them.
func typesOf(text json.RawMessage) ([]string, error) {
	if text == nil {
		return nil, nil
	}
	var all []string
	var one string
	if json.Unmarshal(text, &one) == nil {
		all = []string{one}
	} else if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("type: %w", err)
	}
	for _, t := range all {
		if !slices.Contains(kinds, t) {
			return nil, fmt.Errorf("type: %q is none of %s", t, strings.Join(kinds, ", "))
		}
	}
	return all, nil
}

// bound reads the number of a bound, "" for none.
func bound(to **big.Rat, n json.Number) error {
	if n == "" {
		return nil
	}
	r, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return fmt.Errorf("%q is no number", n)
	}
	*to = r
	return nil
}
