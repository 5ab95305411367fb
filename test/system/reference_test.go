package system_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
)

var update = flag.Bool("update", false, "write the generated parts of docs/host.md anew")

// The tables of docs/host.md are what the code says. They are written by: go test ./test/system -run Docs -update
func TestDocsReferenceIsWhatTheCodeSays(t *testing.T) {
	file := filepath.Join(root, "docs/host.md")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(data)
	for name, part := range map[string]string{"fields": fields(), "outcomes": outcomes(t)} {
		text = replace(t, text, name, part)
	}
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	require.Equal(t, text, string(data), "run: go test ./test/system -run Docs -update")
}

// replace puts part between the marks of that name.
func replace(t *testing.T, text, name, part string) string {
	const end = "<!-- end -->"
	mark := "<!-- generated: " + name + " -->\n"
	before, rest, ok := strings.Cut(text, mark)
	require.True(t, ok, "docs/host.md has no mark %q", mark)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "the mark %q is not ended", mark)
	return before + mark + "\n" + part + "\n" + end + after
}

// row is one line of a Markdown table.
func row(cells ...string) string {
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func code(s string) string { return "`" + s + "`" }

// fields explains every field of every shape.
func fields() string {
	var b strings.Builder
	for i, s := range shape.Vocabulary() {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "Shape %s, version %d: %s\n\n", code(s.Name), s.Version, lower(s.Meaning))
		b.WriteString(row("field", "type", "default", "values", "meaning") + row("---", "---", "---", "---", "---"))
		for _, f := range s.Fields {
			b.WriteString(row(code(f.Name), f.Type, or(f.Default, "required"), f.Bound, f.Meaning+" "+f.Rule))
		}
	}
	return b.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// word is one constant of host/report.
type word struct{ name, value, group, meaning string }

// outcomes explains the outcomes and reasons that host/plan and host/reconcile give.
func outcomes(t *testing.T) string {
	var b strings.Builder
	used := given(t)
	b.WriteString(row("outcome", "meaning") + row("---", "---"))
	for _, w := range words(t, "Outcome") {
		if used[w.name] {
			b.WriteString(row(code(w.value), w.meaning))
		}
	}
	b.WriteString("\n" + row("reason", "of", "meaning") + row("---", "---", "---"))
	for _, w := range words(t, "Reason") {
		if used[w.name] {
			b.WriteString(row(code(w.value), code(strings.ToLower(w.group)), w.meaning))
		}
	}
	return b.String()
}

// words are the constants of a type in host/report, with the comments that explain them and the one that heads their group.
func words(t *testing.T, kind string) []word {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, "host/report/report.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	var all []word
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		group := ""
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); !ok || id.Name != kind {
				continue
			}
			if head, ok := strings.CutPrefix(strings.TrimSpace(v.Doc.Text()), "of "); ok {
				group = head
			}
			value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			require.NotNil(t, v.Comment, "report.%s is not explained", v.Names[0])
			all = append(all, word{v.Names[0].Name, value, group, strings.TrimSpace(v.Comment.Text())})
		}
	}
	require.NotEmpty(t, all, kind)
	return all
}

// given are the names of host/report that the decisions use.
func given(t *testing.T) map[string]bool {
	all := map[string]bool{}
	for _, dir := range []string{"host/plan", "host/reconcile"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(f, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if id, ok := sel.X.(*ast.Ident); ok && id.Name == "report" {
						all[sel.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	return all
}
