package shape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever adds a field raises the version and this count, and thinks of
// canonical: a new field is left out of it while it has its default.
func TestVocabularyIsPinned(t *testing.T) {
	v := Vocabulary()
	require.Len(t, v, 1)
	require.Equal(t, "service", v[0].Name)
	require.Equal(t, 2, v[0].Version)
	var names []string
	for _, f := range v[0].Fields {
		names = append(names, f.Name)
	}
	require.Len(t, names, 17)
	require.Equal(t, "shape name unit nodes labels all scope content dropins ensure state enabled masked on_change triggers timeout on_withdraw", strings.Join(names, " "))
}

func TestVocabularyExplainsEveryField(t *testing.T) {
	for _, s := range Vocabulary() {
		require.NotEmpty(t, s.Meaning)
		for _, f := range s.Fields {
			for what, text := range map[string]string{"type": f.Type, "bound": f.Bound, "meaning": f.Meaning, "rule": f.Rule} {
				require.NotEmpty(t, text, "%s of %s", what, f.Name)
			}
			require.True(t, strings.HasSuffix(f.Meaning, ".") && strings.HasSuffix(f.Rule, "."), f.Name)
			require.Equal(t, f.Name == "shape" || f.Name == "name", f.Default == "", "only required fields have no default: %s", f.Name)
		}
	}
}

// What is explained is what is read: each field alone is known to the reader.
func TestVocabularyIsWhatIsRead(t *testing.T) {
	for _, f := range Vocabulary()[0].Fields {
		_, problems := Parse("f", []byte(f.Name+": [[x]]\n"))
		for _, p := range problems {
			require.NotEqual(t, "unknown field", p.Rule, f.Name)
		}
		require.Contains(t, problems.Error(), f.Name, "a list of lists is refused for "+f.Name)
	}
	for _, name := range laterFields() {
		cure, ok := later(name)
		require.True(t, ok)
		require.NotEmpty(t, cure)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"ensure", "enabled", "unit", "all"}
	for given, want := range map[string]string{"ensrue": "ensure", "enable": "enabled", "uni": "unit", "al": "all", "foo": "", "nodes": "", "unti": "unit", "u": "", "": "", strings.Repeat("a", 100): ""} {
		require.Equal(t, want, Nearest(given, words), given)
	}
}
