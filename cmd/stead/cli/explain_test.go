package cli

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/shape"
)

// someVocabulary is fixed, so that its screens do not change with the product's.
func someVocabulary() []shape.Shape {
	return []shape.Shape{
		{Name: "service", Version: 7, Meaning: "One systemd unit and what is to be so of it: its files, whether it runs, whether it starts at boot.", Fields: []shape.Field{
			{Name: "name", Type: "text", Bound: "a DNS label: 1 to 63 of a-z, 0-9 and -, no - at either end", Meaning: "Names the declaration; it is its identity.",
				Rule: "It is unique in a batch; a name with a dot, MODULE.NAME, is kept for modules."},
			{Name: "on_change", Type: "text", Default: "absent: restart where the unit can, else none", Bound: "restart, reload, none", Meaning: "Says what a running unit does."},
		}},
		{Name: "file", Version: 1, Meaning: "One file.", Fields: []shape.Field{{Name: "path", Type: "text", Meaning: "Names it."}}},
	}
}

func TestScreenOfTheVocabulary(t *testing.T) {
	for file, name := range map[string]string{"explain": "", "explain-shape": "service", "explain-field": "service.name"} {
		e, err := explained(someVocabulary(), name)
		require.NoError(t, err)
		golden(t, file, 0, func(w screen) { w.explain(e, false) })
		golden(t, file+"-narrow", 50, func(w screen) { w.explain(e, false) })
		golden(t, file+"-wide", 0, func(w screen) { w.explain(e, true) })
	}
}

// TestEverythingIsExplained: whatever the vocabulary holds has all its answers.
func TestEverythingIsExplained(t *testing.T) {
	for _, s := range shape.Vocabulary() {
		require.NotEmpty(t, s.Meaning)
		for _, f := range s.Fields {
			e, err := explained(shape.Vocabulary(), s.Name+"."+f.Name)
			require.NoError(t, err)
			require.Equal(t, &f, e.answer())
			for what, text := range map[string]string{"type": f.Type, "bound": f.Bound, "meaning": f.Meaning, "rule": f.Rule} {
				require.NotEmpty(t, text, "%s of %s.%s", what, s.Name, f.Name)
			}
		}
	}
}

func TestUnknownNamesAreExplainedByTheNearest(t *testing.T) {
	for name, want := range map[string][2]string{
		"servce":            {`explain: there is no shape "servce"`, "did you mean service? stead explain service"},
		"servce.name":       {`explain: there is no shape "servce"`, "did you mean service? stead explain service.name"},
		"on_change":         {`explain: there is no shape "on_change"`, "it is a field: stead explain service.on_change"},
		"elephant":          {`explain: there is no shape "elephant"`, "the shapes are service, file: stead explain"},
		"service.on_chnage": {`explain: the shape service has no field "on_chnage"`, "did you mean on_change? stead explain service.on_change"},
		"service.":          {`explain: the shape service has no field ""`, "stead explain service"},
		"service.name.x":    {`explain: the shape service has no field "name.x"`, "did you mean name? stead explain service.name"},
	} {
		_, err := explained(someVocabulary(), name)
		require.EqualError(t, err, want[0], name)
		require.Equal(t, want[1], fault.HintOf(err), name)
		require.Equal(t, fault.NotFound, fault.ClassOf(err))
	}
}

func TestShapesAndFieldsAreCompleted(t *testing.T) {
	complete := func(before []string, start string) []string {
		names, directive := completeFields(nil, before, start)
		require.NotZero(t, directive&cobra.ShellCompDirectiveNoFileComp)
		return names
	}
	require.Contains(t, complete(nil, ""), "service")
	require.True(t, slices.ContainsFunc(complete(nil, "service.m"), func(s string) bool { return strings.HasPrefix(s, "service.masked\t") }))
	require.Empty(t, complete([]string{"service"}, ""))
	require.Empty(t, complete(nil, "elephant."))
}
