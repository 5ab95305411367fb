package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// root is the top of the tree as seen from this package's folder, where go test
// runs.
const root = "../.."

// rule is one rule of the tree.
type rule struct {
	name  string
	check func(*tree) []finding
}

// rules are all rules, in the order in which they are reported.
func rules() []rule {
	return []rule{
		{"syntax", func(t *tree) []finding { return t.broken }},
		{"top", checkTop},
		{"names", checkNames},
		{"depth", checkDepth},
		{"imports", checkImports},
		{"outside", checkOutside},
		{"pure", checkPure},
		{"comments", checkPackageComments},
		{"exported", checkExported},
		{"calls", checkCalls},
		{"state", checkState},
		{"places", checkPlaces},
		{"programs", checkPrograms},
		{"length", checkLength},
		{"words", checkWords},
		{"decisions", checkDecisions},
		{"documents", checkDocuments},
		{"makefile", checkMakefile},
	}
}

// TestTree holds this tree against every rule.
func TestTree(t *testing.T) {
	here, err := load(os.DirFS(root))
	require.NoError(t, err)
	for _, r := range rules() {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range r.check(here) {
				t.Error(f)
			}
		})
	}
}

// TestRulesCanFail runs each rule on small trees that break it, and on small
// trees that do not.
func TestRulesCanFail(t *testing.T) {
	files, err := filepath.Glob("testdata/counter/*.txtar")
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			c := readCounter(t, file)
			shown[c.rule.name] = shown[c.rule.name] || len(c.want) > 0
			var got []string
			for _, f := range c.rule.check(c.tree) {
				got = append(got, f.String())
			}
			left := slices.Clone(got)
			for _, w := range c.want {
				i := slices.IndexFunc(left, func(s string) bool { return strings.HasPrefix(s, w) })
				if i < 0 {
					t.Errorf("no finding begins with %q", w)
					continue
				}
				left = slices.Delete(left, i, i+1)
			}
			for _, s := range left {
				t.Errorf("a finding that is not wanted: %s", s)
			}
		})
	}
	for _, r := range rules() {
		require.True(t, shown[r.name], "rule %q has no counter-example in testdata/counter", r.name)
	}
}

// counter is one counter-example: an archive whose head says which rule it is
// for ("rule: NAME") and how each finding must begin ("want: FILE:LINE: TEXT").
type counter struct {
	rule rule
	want []string
	tree *tree
}

func readCounter(t *testing.T, file string) counter {
	t.Helper()
	a, err := txtar.ParseFile(file)
	require.NoError(t, err)
	var c counter
	for line := range strings.Lines(string(a.Comment)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "rule":
			i := slices.IndexFunc(rules(), func(r rule) bool { return r.name == value })
			require.GreaterOrEqual(t, i, 0, "no rule %q", value)
			c.rule = rules()[i]
		case "want":
			c.want = append(c.want, value)
		case "":
		default:
			require.True(t, strings.HasPrefix(key, "#"), "line %q of the head is neither rule, want nor a comment", line)
		}
	}
	require.NotNil(t, c.rule.check, "the head names no rule")
	inside, err := txtar.FS(a)
	require.NoError(t, err)
	c.tree, err = load(inside)
	require.NoError(t, err)
	return c
}
