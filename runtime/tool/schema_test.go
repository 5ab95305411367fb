package tool

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stead/seats"
)

// FuzzDocumentsAreJudgedAsByTheStandard holds check against a library that serves
// all of the standard, for the schemas of every verb.
func FuzzDocumentsAreJudgedAsByTheStandard(f *testing.F) {
	var ours []*schema
	var theirs []*jsonschema.Schema
	for _, v := range seats.Seeded()[0].Verbs {
		for _, text := range []json.RawMessage{v.Arguments, v.Reply} {
			s, err := compile(string(v.Name), text)
			require.NoError(f, err)
			ours, theirs = append(ours, s), append(theirs, standard(f, text))
		}
	}
	for i := range ours {
		for _, doc := range documents() {
			f.Add(byte(i), doc)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, text string) {
		s, standard := ours[int(which)%len(ours)], theirs[int(which)%len(ours)]
		problems := s.check([]byte(text))
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err == nil {
			err = standard.Validate(doc)
		}
		require.Equal(t, err == nil, len(problems) == 0, "%s: %v; the standard says: %v", text, problems, err)
	})
}

// standard compiles a schema with the library.
func standard(tb testing.TB, text []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(tb, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(tb, c.AddResource("stead:///schema.json", doc))
	s, err := c.Compile("stead:///schema.json")
	require.NoError(tb, err)
	return s
}

// documents are right for one schema or another, and wrong in each way that a
// schema can forbid.
func documents() []string {
	return []string{
		``, `{}`, `[]`, `null`, `{} {}`, `{"unit":`, `{"unit":1}`, `{"unit":null}`, `{"unit":""}`, `{"unit":"a"}`, `{"unit":"a b"}`,
		`{"unit":"ä"}`, `{"unit":"` + strings.Repeat("ü", 255) + `"}`, `{"unit":"` + strings.Repeat("a", 256) + `"}`, `{"unit":"a","unit":1}`,
		`{"unit":"a","lines":0}`, `{"unit":"a","lines":-1}`, `{"unit":"a","lines":1.0}`, `{"unit":"a","lines":1.5}`, `{"unit":"a","lines":1e2}`,
		`{"unit":"a","lines":1e9999999}`, `{"unit":"a","lines":1000}`, `{"unit":"a","lines":1001}`, `{"unit":"a","scope":"user"}`,
		`{"unit":"a","scope":"usr"}`, `{"unit":"a","scope":1}`, `{"unit":"a","timeout":"90"}`, `{"unit":"a","timeout":"90s","wait":"yes"}`,
		`{"unit":"a","strange":1}`, `{"patterns":[]}`, `{"patterns":["a",1]}`, `{"patterns":["a*"],"states":["A"]}`, `{"follow":true,"lines":3}`,
		`{"patterns":["` + strings.Repeat(`a","`, 300) + `a"]}`, `{"units":[]}`, `{"units":null}`, `{"units":[{}]}`,
		`{"units":[{"id":"a.service","names":["a.service"],"scope":"system","load":"loaded","active":"active","sub":"running",` +
			`"exit_status":null,"since":"2026-05-01T10:00:00Z","main_pid":1,"memory":null,"cpu":0,"tasks":1,"restarts":0,"unset":{"memory":"why"},"declared_by":null}]}`,
		`{"units":[{"id":"a.service","names":["a.service"],"scope":"system","load":"loaded","active":"active","sub":"running",` +
			`"exit_status":-1.5,"since":"yesterday","main_pid":-1,"memory":"much","cpu":0,"tasks":1,"restarts":0,"unset":{"memory":1},"declared_by":{"name":"a"}}]}`,
		`{"units":[{"unit":"a.service","scope":"system","result":"done","took":0.1,"before":{"active":"active","sub":"running"},"after":{},"declared_by":null}]}`,
		`{"entries":[{"MESSAGE":"x"}],"cursor":"c","more":true}`, `{"entries":[1]}`,
		`{"unit":"a","scope":"system","made":[{"path":"/a","to":"/b"}],"removed":[],"declared_by":{"name":"a","generation":0,"ensure":"up","enabled":null}}`,
	}
}

func TestDocumentsAreJudgedBothWays(t *testing.T) {
	s, err := compile("s", []byte(`{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/n"},"l":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/n"}},
		"when":{"type":"string","format":"date-time"},"many":{"type":"object","additionalProperties":{"type":"boolean"}}},
		"additionalProperties":false,"$defs":{"n":{"type":["integer","null"],"minimum":1,"maximum":3}}}`))
	require.NoError(t, err)
	for doc, want := range map[string]string{
		`{"n":1,"l":[null,3],"when":"2026-05-01T10:00:00.5+02:00","many":{"x":true}}`: "",
		`{"n":0}`:                   "n: 0; at least 1",
		`{"n":4}`:                   "n: 4; at most 3",
		`{"n":1.5}`:                 "n: it is a number, and an integer or null is wanted",
		`{"n":1e9999999}`:           "n: it is a number, and an integer or null is wanted",
		`{"n":1,"l":[]}`:            "l: 0 of them; at least 1",
		`{"n":1,"l":[1,9]}`:         "l[1]: 9; at most 3",
		`{"n":1,"when":"today"}`:    `when: "today" is no time such as 2006-01-02T15:04:05Z07:00`,
		`{"n":1,"many":{"x":1}}`:    "many.x: it is a number, and a boolean is wanted",
		`{"l":1}`:                   "l: it is a number, and an array is wanted; n: it is required",
		`{"n":1,"wen":"x"}`:         "wen: there is no such argument",
		`{"n":1}1`:                  "no JSON: more than one value",
		`{"n":1,"many":{"x":true}}`: "",
	} {
		var got []string
		for _, p := range s.check([]byte(doc)) {
			got = append(got, p.String())
		}
		require.Equal(t, want, strings.Join(got, "; "), "%s", doc)
	}
}

// TestWhatASchemaAsksForIsHeldOrRefused: no keyword is passed over.
func TestWhatASchemaAsksForIsHeldOrRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"uniqueItems":true}`:            `unknown field "uniqueItems"`,
		`{"properties":{"a":{"not":{}}}}`: `properties: a: json: unknown field "not"`,
		`{"type":"objekt"}`:               `type: "objekt" is none of array, boolean, integer, null, number, object, string`,
		`{"type":7}`:                      `type: `,
		`{"format":"ipv4"}`:               `format: "ipv4" is not served`,
		`{"pattern":"("}`:                 `pattern: `,
		`{"items":{"$defs":{}}}`:          `items: $schema and $defs stand at the top`,
		`{"$ref":"#/$defs/a"}`:            `$ref: "#/$defs/a": it is not defined by the schema`,
		`{"$schema":"http://json-schema.org/draft-07/schema"}`:                             `$schema: "http://json-schema.org/draft-07/schema"; `,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`: `it refers to itself`,
		`{"additionalProperties":{"enum":1}}`:                                              `additionalProperties: `,
		`{} {}`:                                                                            `more than one value`,
	} {
		_, err := compile("s", []byte(text))
		require.ErrorContains(t, err, "read schema: s: ", "%s", text)
		require.ErrorContains(t, err, want, "%s", text)
	}
	nested, err := compile("s", []byte(`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"array","items":{"$ref":"#/$defs/tree"}}}}`))
	require.NoError(t, err, "what refers to itself further down is no circle")
	require.Len(t, nested.check([]byte(`[[],[[1]]]`)), 1)
}
