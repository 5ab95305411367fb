package seats

import (
	"encoding/json"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
)

// schemaOf is as much of a JSON schema as the files here use.
type schemaOf struct {
	Schema      string               `json:"$schema"`
	Ref         string               `json:"$ref"`
	Defs        map[string]*schemaOf `json:"$defs"`
	Type        any                  `json:"type"`
	Enum        []string             `json:"enum"`
	Required    []string             `json:"required"`
	Properties  map[string]*schemaOf `json:"properties"`
	Additional  json.RawMessage      `json:"additionalProperties"`
	Items       *schemaOf            `json:"items"`
	Description string               `json:"description"`
	Format      string               `json:"format"`
	Minimum     *float64             `json:"minimum"`
	Maximum     *float64             `json:"maximum"`
	MinLength   int                  `json:"minLength"`
	MaxLength   int                  `json:"maxLength"`
	MaxItems    int                  `json:"maxItems"`
	Pattern     string               `json:"pattern"`
}

// spoken are the Go types that the verbs speak.
func spoken() map[subject.Verb][2]reflect.Type {
	return map[subject.Verb][2]reflect.Type{
		Units:   {reflect.TypeFor[UnitsArguments](), reflect.TypeFor[UnitsReply]()},
		Status:  {reflect.TypeFor[StatusArguments](), reflect.TypeFor[StatusReply]()},
		Start:   {reflect.TypeFor[ActArguments](), reflect.TypeFor[ActReply]()},
		Stop:    {reflect.TypeFor[ActArguments](), reflect.TypeFor[ActReply]()},
		Restart: {reflect.TypeFor[ActArguments](), reflect.TypeFor[ActReply]()},
		Enable:  {reflect.TypeFor[EnableArguments](), reflect.TypeFor[EnableReply]()},
		Disable: {reflect.TypeFor[EnableArguments](), reflect.TypeFor[EnableReply]()},
		Journal: {reflect.TypeFor[JournalArguments](), reflect.TypeFor[JournalReply]()},
	}
}

// comparer holds a type against a schema.
type comparer struct {
	t    *testing.T
	defs map[string]*schemaOf
}

func (c comparer) compare(path string, g reflect.Type, s *schemaOf) {
	c.t.Helper()
	null := false
	if g.Kind() == reflect.Pointer {
		g, null = g.Elem(), true
	}
	if s.Ref != "" {
		name, ok := strings.CutPrefix(s.Ref, "#/$defs/")
		require.True(c.t, ok, path)
		s = c.defs[name]
		require.NotNil(c.t, s, "%s: no %s", path, name)
	}
	if len(s.Enum) > 0 {
		require.Equal(c.t, reflect.String, g.Kind(), path)
		return
	}
	kinds := []string{}
	switch k := s.Type.(type) {
	case string:
		kinds = append(kinds, k)
	case []any:
		for _, one := range k {
			kinds = append(kinds, one.(string))
		}
	}
	if slices.Contains(kinds, "null") {
		require.True(c.t, null, "%s may be null in the schema, and the type has no such value", path)
	}
	kind := kinds[0]
	switch {
	case g == reflect.TypeFor[time.Time]():
		require.Equal(c.t, "string/date-time", kind+"/"+s.Format, path)
	case g == reflect.TypeFor[json.RawMessage]():
		require.Equal(c.t, "object", kind, path)
	case g.Kind() == reflect.Struct:
		require.Equal(c.t, "object", kind, path)
		c.fields(path, g, s)
	case g.Kind() == reflect.Slice:
		require.Equal(c.t, "array", kind, path)
		c.compare(path+"[]", g.Elem(), s.Items)
	case g.Kind() == reflect.Map:
		require.Equal(c.t, "object", kind, path)
		var of schemaOf
		require.NoError(c.t, json.Unmarshal(s.Additional, &of), path)
		c.compare(path+"{}", g.Elem(), &of)
	default:
		want := map[reflect.Kind]string{
			reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number",
			reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint32: "integer", reflect.Uint64: "integer",
		}[g.Kind()]
		require.Equal(c.t, want, kind, path)
		if k := g.Kind(); k == reflect.Uint32 || k == reflect.Uint64 {
			require.NotNil(c.t, s.Minimum, "%s: it is never below zero", path)
		}
	}
}

// fields holds the fields of a struct against the properties of a schema: each
// has the other, what is left out when it is empty is not required, and what is
// null when it is empty says so.
func (c comparer) fields(path string, g reflect.Type, s *schemaOf) {
	c.t.Helper()
	var names []string
	arguments := string(s.Additional) == "false"
	for i := range g.NumField() {
		f := g.Field(i)
		name, how, _ := strings.Cut(f.Tag.Get("json"), ",")
		require.NotEmpty(c.t, name, "%s: %s", path, f.Name)
		names = append(names, name)
		property := s.Properties[name]
		require.NotNil(c.t, property, "%s: the schema lacks %s", path, name)
		c.compare(path+"."+name, f.Type, property)
		require.Equal(c.t, how == "", slices.Contains(s.Required, name), "%s.%s is required", path, name)
		if f.Type.Kind() == reflect.Pointer && how == "" {
			text, _ := json.Marshal(c.resolved(property).Type)
			require.Contains(c.t, string(text), `"null"`, "%s.%s", path, name)
		}
		if arguments {
			require.NotEmpty(c.t, property.Description, "%s.%s: what it means", path, name)
		}
	}
	require.ElementsMatch(c.t, names, slices.Collect(maps.Keys(s.Properties)), path)
}

func (c comparer) resolved(s *schemaOf) *schemaOf {
	if s.Ref != "" {
		return c.defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
	}
	return s
}

func TestSchemasAndTypesAreTheSame(t *testing.T) {
	all := Seeded()
	require.Len(t, all, 1)
	seat := all[0]
	require.Len(t, seat.Verbs, len(spoken()))
	for _, v := range seat.Verbs {
		types, ok := spoken()[v.Name]
		require.True(t, ok, v.Name)
		for i, text := range []json.RawMessage{v.Arguments, v.Reply} {
			what := string(v.Name) + []string{".arguments", ".reply"}[i]
			var s schemaOf
			d := json.NewDecoder(strings.NewReader(string(text)))
			d.DisallowUnknownFields()
			require.NoError(t, d.Decode(&s), what)
			require.Equal(t, "https://json-schema.org/draft/2020-12/schema", s.Schema, what)
			require.Equal(t, i == 0, string(s.Additional) == "false", "%s: arguments are closed, replies may grow", what)
			comparer{t, s.Defs}.compare(what, types[i], &s)
		}
		require.Equal(t, v.Name == Journal, v.Follows)
		require.NotEmpty(t, v.Meaning)
	}
}

func TestComparingFindsDifferences(t *testing.T) {
	type one struct {
		A string `json:"a"`
	}
	for name, text := range map[string]string{
		"another type":       `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}`,
		"a field more":       `{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`,
		"a field less":       `{"type":"object","properties":{}}`,
		"it may be left out": `{"type":"object","properties":{"a":{"type":"string"}}}`,
		"it may be null":     `{"type":"object","required":["a"],"properties":{"a":{"type":["string","null"]}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var s schemaOf
			require.NoError(t, json.Unmarshal([]byte(text), &s))
			inner := &testing.T{}
			done := make(chan struct{})
			go func() { // require ends the goroutine of a test that fails
				defer close(done)
				comparer{inner, nil}.compare("", reflect.TypeFor[one](), &s)
			}()
			<-done
			require.True(t, inner.Failed())
		})
	}
}

func TestEveryFileIsOfAVerb(t *testing.T) {
	files, err := fs.Glob(schemas, "node-service-manager/*.json")
	require.NoError(t, err)
	require.Len(t, files, 2*len(Seeded()[0].Verbs))
}

func TestSeededSeatIsInOrder(t *testing.T) {
	seat := Seeded()[0]
	require.True(t, slices.IsSortedFunc(seat.Verbs, func(a, b Verb) int { return strings.Compare(string(a.Name), string(b.Name)) }))
	require.Equal(t, "service-manager", seat.Requires)
	_, err := subject.ParseSeat(string(seat.Name))
	require.NoError(t, err)
	for _, v := range seat.Verbs {
		_, err := subject.ParseVerb(string(v.Name))
		require.NoError(t, err)
		reads := v.Name == Units || v.Name == Status || v.Name == Journal
		require.Equal(t, reads, v.Class == subject.Read, v.Name)
	}
	text, err := json.Marshal(seat)
	require.NoError(t, err)
	require.Less(t, len(text), 64<<10, "it travels with every answer of tools")
	seat.Verbs[0].Name = "other"
	seat.Verbs[0].Reply[0] = 'x'
	require.Equal(t, Disable, Seeded()[0].Verbs[0].Name)
	require.True(t, json.Valid(Seeded()[0].Verbs[0].Reply))
}

func TestUnknownNamesAreAnsweredWithTheClosest(t *testing.T) {
	seat := Seeded()[0]
	for name, want := range map[string]string{
		"statsu": "did you mean status?", "Restart": "did you mean restart?", "enabled": "did you mean enable?",
		"reload": "there are: disable, enable, journal, restart, start, status, stop, units",
	} {
		_, err := seat.Find(name)
		require.ErrorContains(t, err, `no verb of seat node-service-manager is called "`+name+`"`)
		require.Equal(t, want, fault.HintOf(err), name)
	}
	_, err := Find(Seeded(), "service-manager")
	require.Equal(t, "did you mean node-service-manager?", fault.HintOf(err))
	_, err = Find(nil, "x")
	require.Empty(t, fault.HintOf(err))
	found, err := Find(Seeded(), "node-service-manager")
	require.NoError(t, err)
	v, err := found.Find("status")
	require.NoError(t, err)
	require.Equal(t, Status, v.Name)
}
