package arch

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "stead/"

func rowOf(dir string) (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.dir == dir })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// checkImports holds every import of one of our packages against the table.
func checkImports(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		r, ok := rowOf(p.dir)
		if !ok {
			out = append(out, finding{p.dir, 0, "package is not in the import table of test/arch/table_test.go"})
			continue
		}
		for _, f := range p.all() {
			for _, s := range f.syntax.Imports {
				to, ours := strings.CutPrefix(importPath(s), module)
				if why := r.forbids(to, f.isTest()); ours && why != "" {
					out = append(out, f.at(s, "%s may not import %s: %s", p.dir, to, why))
				}
				if s.Name != nil && s.Name.Name == "." {
					out = append(out, f.at(s, "dot import"))
				}
			}
		}
	}
	return out
}

// forbids says why a file of r's package may not import the folder to, "" when
// it may.
func (r row) forbids(to string, test bool) string {
	target, ok := rowOf(to)
	switch {
	case r.dir == to, slices.Contains(strings.Fields(r.may), to):
		return ""
	case !ok:
		return "it is not in the import table"
	case r.layer == checks:
		return ""
	case !test:
		return fmt.Sprintf("the import table does not list it (%s → %s)", r.layer, target.layer)
	case target.layer == words, target.layer == pure, target.layer == fakes, to == "test/lab",
		slices.Contains(strings.Fields(r.tests), to):
		return ""
	}
	return "not for its tests either"
}

// checkOutside holds every import of another module against the list.
func checkOutside(t *tree) []finding {
	var out []finding
	for _, f := range t.goFiles() {
		dir := path.Dir(f.path)
		for _, s := range f.syntax.Imports {
			p := importPath(s)
			if first, _, _ := strings.Cut(p, "/"); !strings.Contains(first, ".") {
				continue // the standard library, or ours
			}
			m, ok := foreignOf(p)
			switch {
			case !ok:
				out = append(out, f.at(s, "%s is no library that stead stands on: see outside in test/arch/table_test.go", p))
			case strings.HasPrefix(dir, "test/"), lists(m.may, dir), f.isTest() && lists(m.test, dir):
			default:
				out = append(out, f.at(s, "%s may not import %s: only %s may", dir, p, orTests(m.may)))
			}
		}
	}
	return out
}

func lists(folders, dir string) bool {
	return folders == "*" || slices.Contains(strings.Fields(folders), dir)
}

func orTests(may string) string {
	if may == "" {
		return "tests"
	}
	return may
}

func foreignOf(p string) (foreign, bool) {
	var best foreign
	for _, m := range outside {
		if (p == m.path || strings.HasPrefix(p, m.path+"/")) && len(m.path) > len(best.path) {
			best = m
		}
	}
	return best, best.path != ""
}

// TestTableIsTrue holds the table against its own rules and against the tree:
// rows point down, and each has its package.
func TestTableIsTrue(t *testing.T) {
	here, err := load(os.DirFS(root))
	require.NoError(t, err)
	require.Empty(t, tableFaults(table), "rows that point up")
	for _, r := range table {
		there := slices.ContainsFunc(here.packages, func(p *pkg) bool { return p.dir == r.dir })
		require.True(t, there || slices.Contains(growing, r.dir), "%s is in the import table and nowhere else", r.dir)
	}
}

// tableFaults names the rows that import a layer that is not below their own.
func tableFaults(rows []row) []string {
	layerOf := map[string]layer{}
	for _, r := range rows {
		layerOf[r.dir] = r.layer
	}
	var out []string
	for _, r := range rows {
		for _, to := range strings.Fields(r.may) {
			switch l, ok := layerOf[to]; {
			case !ok:
				out = append(out, fmt.Sprintf("%s → %s: no such row", r.dir, to))
			case !slices.Contains(below[r.layer], l):
				out = append(out, fmt.Sprintf("%s → %s: %s does not stand on %s", r.dir, to, r.layer, l))
			case side(r.dir) != "" && side(to) != "" && side(r.dir) != side(to):
				out = append(out, fmt.Sprintf("%s → %s: host and controller meet in words and in mesh state alone", r.dir, to))
			}
		}
	}
	return out
}

// side is "host" or "controller" for a package that acts for one of them. Words
// may be shared.
func side(dir string) string {
	first, _, _ := strings.Cut(dir, "/")
	if r, ok := rowOf(dir); ok && r.layer == words || first != "host" && first != "controller" {
		return ""
	}
	return first
}

// TestTableFaultsAreSeen shows that a table that points up is found out.
func TestTableFaultsAreSeen(t *testing.T) {
	got := tableFaults([]row{
		{words, "w", "", ""}, {pure, "p", "w", ""}, {loops, "l", "p a", ""}, {adapters, "a", "p nowhere", ""},
		{assembly, "controller", "p", ""}, {assembly, "host", "controller a l", ""}, {words, "x", "p", ""},
	})
	require.Equal(t, []string{
		"l → a: loops does not stand on adapters",
		"a → nowhere: no such row",
		"host → controller: host and controller meet in words and in mesh state alone",
		"x → p: words does not stand on pure",
	}, got)
}
