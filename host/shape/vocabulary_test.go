package shape

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever adds a field raises the version and this count, and thinks of
// canonical: a new field is left out of it while it has its default.
func TestVocabularyIsPinned(t *testing.T) {
	v := Vocabulary()
	require.Len(t, v, 2)
	for i, want := range []struct {
		name    string
		version int
		count   int
		fields  string
	}{
		{"service", 3, 20, "shape name unit nodes labels all scope content dropins ensure state enabled masked on_change triggers daemon_reload timeout provider on_withdraw sensitive"},
		{"file", 1, 13, "shape name path nodes labels all scope content mode owner group sensitive on_withdraw"},
	} {
		require.Equal(t, want.name, v[i].Name)
		require.Equal(t, want.version, v[i].Version)
		var names []string
		for _, f := range v[i].Fields {
			names = append(names, f.Name)
		}
		require.Len(t, names, want.count)
		require.Equal(t, want.fields, strings.Join(names, " "))
	}
}

func TestVocabularyExplainsEveryField(t *testing.T) {
	for _, s := range Vocabulary() {
		require.NotEmpty(t, s.Meaning)
		for _, f := range s.Fields {
			for what, text := range map[string]string{"type": f.Type, "bound": f.Bound, "meaning": f.Meaning, "rule": f.Rule} {
				require.NotEmpty(t, text, "%s of %s", what, f.Name)
			}
			require.True(t, strings.HasSuffix(f.Meaning, ".") && strings.HasSuffix(f.Rule, "."), f.Name)
			required := []string{"shape", "name"}
			if s.Name == FileShape {
				required = append(required, "path", "content")
			}
			require.Equal(t, slices.Contains(required, f.Name), f.Default == "", "only required fields have no default: %s", f.Name)
		}
	}
}

// What is explained is what is read: each field alone is known to the reader.
func TestVocabularyIsWhatIsRead(t *testing.T) {
	for _, s := range Vocabulary() {
		for _, f := range s.Fields {
			doc := f.Name + ": [[x]]\n"
			if f.Name != "shape" {
				doc = "shape: " + s.Name + "\n" + doc
			}
			_, problems := Parse("f", []byte(doc))
			for _, p := range problems {
				require.NotEqual(t, "unknown field", p.Rule, f.Name)
			}
			named := slices.ContainsFunc(problems, func(p Problem) bool { return strings.HasPrefix(p.Path, f.Name) && p.Rule != "missing" })
			require.True(t, named, "a list of lists is refused for %s: %v", f.Name, problems)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"ensure", "enabled", "unit", "all"}
	for given, want := range map[string]string{"ensrue": "ensure", "enable": "enabled", "uni": "unit", "al": "all", "foo": "", "nodes": "", "unti": "unit", "u": "", "": "", strings.Repeat("a", 100): ""} {
		require.Equal(t, want, Nearest(given, words), given)
	}
}
