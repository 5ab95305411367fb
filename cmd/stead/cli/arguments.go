package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"stead/host/fault"
	"stead/seats"
)

// property is what an argument's value is read by: the part of a JSON schema that
// says of which kind it is. All other rules are the node's to judge.
type property struct {
	Type        json.RawMessage `json:"type"` // a name or several
	Description string          `json:"description"`
	Items       *property       `json:"items"`
	Enum        []any           `json:"enum"`
}

// kinds are the types that a value may have, none when the schema does not say.
func (p property) kinds() []string {
	var one string
	var many []string
	if json.Unmarshal(p.Type, &one) == nil && one != "" {
		return []string{one}
	}
	if json.Unmarshal(p.Type, &many) == nil {
		return many
	}
	return nil
}

// argumentsOf reads KEY=VALUE and KEY:=JSON as the schema of a verb has them.
// Errors: not_found for an argument that the verb does not have, with the closest
// one; invalid for a value of another kind, and when a required one is missing.
func argumentsOf(seat seats.Seat, verb seats.Verb, given []string) (map[string]json.RawMessage, error) {
	var schema struct {
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(verb.Arguments, &schema); err != nil {
		return nil, fault.New(fault.Unsupported, "read schema", fmt.Sprintf("%s.%s", seat.Name, verb.Name), err)
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	read := map[string]json.RawMessage{}
	for _, arg := range given {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("%q is neither KEY=VALUE nor KEY:=JSON", arg), "the arguments of " + string(verb.Name) + " are " + some(names)}
		}
		key, verbatim := strings.CutSuffix(key, ":")
		p, known := schema.Properties[key]
		if !known {
			return nil, seats.Unknown("argument of "+string(verb.Name), key, names)
		}
		text, err := valueOf(verb, key, value, p, verbatim)
		if err != nil {
			return nil, err
		}
		if read[key] != nil {
			if text, err = appended(verb, key, read[key], text); err != nil {
				return nil, err
			}
		}
		read[key] = text
	}
	for _, key := range schema.Required {
		if read[key] == nil {
			return nil, fault.New(fault.Invalid, "", "", fmt.Errorf("%s of %s is missing: %s", key, verb.Name, schema.Properties[key].Description)).
				WithHint(fmt.Sprintf("stead call %s.%s %s=VALUE", seat.Name, verb.Name, key))
		}
	}
	return read, nil
}

// valueOf is one value as JSON.
func valueOf(verb seats.Verb, key, value string, p property, verbatim bool) (json.RawMessage, error) {
	if verbatim {
		if !json.Valid([]byte(value)) {
			return nil, invalidArgument(verb, key, "%s is no JSON", value)
		}
		return json.RawMessage(value), nil
	}
	kinds := p.kinds()
	has := func(kind string) bool { return slices.Contains(kinds, kind) }
	switch {
	case has("array"):
		return listOf(verb, key, value, p)
	case has("object"):
		return nil, invalidArgument(verb, key, "it is an object, which is written %s:={…}", key)
	case has("string"), len(kinds) == 0:
		return encoded(value)
	}
	if has("boolean") && (value == "true" || value == "false") || has("null") && value == "null" {
		return json.RawMessage(value), nil
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil && (has("integer") || has("number")) {
		return encoded(json.Number(strings.TrimPrefix(value, "+")))
	}
	if has("number") {
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			return encoded(n)
		}
	}
	return nil, invalidArgument(verb, key, "%q is no %s", value, strings.Join(kinds, " or "))
}

// listOf is a list of what stands between commas.
func listOf(verb seats.Verb, key, value string, p property) (json.RawMessage, error) {
	items := property{}
	if p.Items != nil {
		items = *p.Items
	}
	all := []json.RawMessage{}
	for part := range strings.SplitSeq(value, ",") {
		one, err := valueOf(verb, key, part, items, false)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return encoded(all)
}

// appended puts two lists together; nothing else may be given twice.
func appended(verb seats.Verb, key string, a, b json.RawMessage) (json.RawMessage, error) {
	var first, second []json.RawMessage
	if json.Unmarshal(a, &first) != nil || json.Unmarshal(b, &second) != nil {
		return nil, invalidArgument(verb, key, "it is given twice, and is no list")
	}
	return encoded(append(first, second...))
}

// encoded is JSON on one line, in which every character stays as it is.
func encoded(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
