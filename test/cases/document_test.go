package cases

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root     = "../.."
	document = "docs/cases.md"
)

// inLab are the folders of packages whose tests of cases run in lab nodes.
var inLab = []string{"test/cases/", "test/system/", "modules/systemd/", "runtime/server/", "host/systemd/", "host/journal/", "host/account/"}

// trial is a test, or a subtest, of a case.
type trial struct {
	file, name   string
	line         int
	what, answer string // what the comment above it says; "" without one
}

// TestDocumentHoldsEveryCase holds docs/cases.md against the tests, and the tests
// against the list of cases: each has one that tells it, in a lab node.
func TestDocumentHoldsEveryCase(t *testing.T) {
	all := trials(t)
	want := strings.Fields(ids)
	require.Subset(t, want, slices.Collect(maps.Keys(all)), "cases that are not on the list")
	var text strings.Builder
	text.WriteString(`# Cases

What tools that manage units are known to get wrong, and what stead does. Each case
is a test with the case's id in its name, against a real systemd in a lab node where
that is not said otherwise; this page is made from the tests by
` + "`go test ./test/cases -run TestDocument -update`" + `.

| case | what stead does | test |
|---|---|---|
`)
	var missing []string
	for _, id := range want {
		told := slices.IndexFunc(all[id], func(c trial) bool { return c.what != "" })
		if told < 0 {
			missing = append(missing, id)
			continue
		}
		c := all[id][told]
		if why := faked[id]; why != "" {
			c.answer += " (Against a fake: " + why + ".)"
		} else if !slices.ContainsFunc(inLab, func(dir string) bool { return strings.HasPrefix(c.file, dir) }) {
			t.Errorf("%s: %s in %s is not in a lab node", id, c.name, c.file)
		}
		fmt.Fprintf(&text, "| **%s** %s | %s | %s |\n", id, cell(c.what), cell(c.answer), links(append([]trial{c}, slices.Delete(slices.Clone(all[id]), told, told+1)...)))
	}
	require.Empty(t, missing, "cases that no test tells: above it want // %s: CASE. and // stead: WHAT IT DOES.", "F013")
	file := filepath.Join(root, document)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text.String()), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text.String(), string(have), "go test ./test/cases -run TestDocument -update")
}

// links names tests, and where they are, from docs.
func links(some []trial) string {
	var cells []string
	for _, c := range some {
		link := fmt.Sprintf("[%s](../%s)", cell(c.name), c.file)
		if !slices.Contains(cells, link) {
			cells = append(cells, link)
		}
	}
	return strings.Join(cells, ", ")
}

func cell(text string) string {
	text = strings.ReplaceAll(text, "|", `\|`)
	return strings.ToUpper(text[:1]) + text[1:]
}

// trials reads all tests of the tree, and finds those of cases, by id.
func trials(t *testing.T) map[string][]trial {
	all := map[string][]trial{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(file string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (e.Name() == "testdata" || e.Name() == "build" || e.Name() != "." && e.Name()[0] == '.'):
			return fs.SkipDir
		case !strings.HasSuffix(file, "_test.go") || file == "test/cases/"+path.Base(thisFile):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		if !caseID.Match(text) {
			return nil
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, file, text, parser.ParseComments)
		if err != nil {
			return err
		}
		read(fset, file, syntax, all)
		return nil
	}))
	for _, some := range all {
		slices.SortStableFunc(some, func(a, b trial) int { return cmp.Compare(a.file, b.file) })
	}
	return all
}

const thisFile = "document_test.go"

var (
	// subtest begins with the ids of its cases.
	subtest = regexp.MustCompile(`^(F\d{3} )+`)
	told    = regexp.MustCompile(`(?s)^(F\d{3}): (.*?)\nstead: (.*)$`)
)

// read adds the tests of one file.
func read(fset *token.FileSet, file string, syntax *ast.File, all map[string][]trial) {
	// above has what the comment that ends on a line tells of a case.
	above := map[int]func(*trial, string){}
	for _, g := range syntax.Comments {
		above[fset.Position(g.End()).Line] = func(c *trial, id string) {
			for part := range strings.SplitSeq(strings.TrimSpace(g.Text()), "\n\n") { // one for each case of a test of several
				if m := told.FindStringSubmatch(part); m != nil && m[1] == id {
					c.what, c.answer = unwrapped(m[2]), unwrapped(m[3])
				}
			}
		}
	}
	add := func(id, name string, at token.Pos) {
		c := trial{file: file, name: name, line: fset.Position(at).Line}
		if tell := above[c.line-1]; tell != nil {
			tell(&c, id)
		}
		all[id] = append(all[id], c)
	}
	for _, d := range syntax.Decls {
		name := ""
		if f, is := d.(*ast.FuncDecl); is {
			name = f.Name.Name
			if strings.HasPrefix(name, "TestF") {
				for _, id := range caseID.FindAllString(name, -1) {
					add(id, name, f.Pos())
				}
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			lit, is := n.(*ast.BasicLit)
			if !is || lit.Kind != token.STRING {
				return true
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil || !subtest.MatchString(value) {
				return true
			}
			for _, id := range caseID.FindAllString(subtest.FindString(value), -1) {
				add(id, strings.TrimPrefix(name+"/"+value, "/"), lit.Pos())
			}
			return true
		})
	}
}

func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }
