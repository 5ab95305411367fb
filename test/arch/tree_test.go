package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// finding is one breach of a rule.
type finding struct {
	file string
	line int // 0 where the finding is of the whole file or folder
	text string
}

func (f finding) String() string {
	if f.line == 0 {
		return fmt.Sprintf("%s: %s", f.file, f.text)
	}
	return fmt.Sprintf("%s:%d: %s", f.file, f.line, f.text)
}

// source is one file of the tree.
type source struct {
	path    string // below the root, with slashes
	text    string
	fset    *token.FileSet
	syntax  *ast.File // of a Go file outside testdata, nil otherwise
	imports map[string]string
}

// tree is everything that a clone holds.
type tree struct {
	files    []*source
	packages []*pkg
	broken   []finding // Go files that do not parse
}

// pkg is one folder that holds Go files.
type pkg struct {
	dir   string
	files []*source // the product's files
	tests []*source // _test.go
}

// ignored are the names that .gitignore keeps out of a clone, and Git's own.
func ignored(name string) bool {
	return name == ".git" || name == "build" || name == "stead" || path.Ext(name) == ".test" || path.Ext(name) == ".out"
}

func load(root fs.FS) (*tree, error) {
	t := &tree{}
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p != "." && ignored(p), strings.HasSuffix(p, "/.git"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !d.Type().IsRegular():
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		t.add(p, string(text))
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(t.packages, func(a, b *pkg) int { return cmp.Compare(a.dir, b.dir) })
	return t, nil
}

func (t *tree) add(p, text string) {
	f := &source{path: p, text: text}
	t.files = append(t.files, f)
	if path.Ext(p) != ".go" || strings.Contains(p, "testdata/") {
		return
	}
	f.fset = token.NewFileSet()
	syntax, err := parser.ParseFile(f.fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.broken = append(t.broken, finding{p, 0, err.Error()})
		return
	}
	f.syntax, f.imports = syntax, localNames(syntax)
	dir := path.Dir(p)
	i := slices.IndexFunc(t.packages, func(k *pkg) bool { return k.dir == dir })
	if i < 0 {
		i = len(t.packages)
		t.packages = append(t.packages, &pkg{dir: dir})
	}
	if f.isTest() {
		t.packages[i].tests = append(t.packages[i].tests, f)
	} else {
		t.packages[i].files = append(t.packages[i].files, f)
	}
}

// localNames maps the name under which a file sees a package to its path.
func localNames(f *ast.File) map[string]string {
	names := map[string]string{}
	for _, s := range f.Imports {
		p := importPath(s)
		name := path.Base(p)
		if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p))
		}
		if s.Name != nil {
			name = s.Name.Name
		}
		names[name] = p
	}
	return names
}

func importPath(s *ast.ImportSpec) string {
	p, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return s.Path.Value
	}
	return p
}

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// inTests reports whether s is a test, a stand-in that only tests import, or of
// the programs below test/.
func (s *source) inTests() bool {
	r, _ := rowOf(path.Dir(s.path))
	return s.isTest() || r.layer == fakes || strings.HasPrefix(s.path, "test/")
}

func (s *source) isMain() bool { return s.syntax != nil && s.syntax.Name.Name == "main" }

func (s *source) at(n ast.Node, format string, args ...any) finding {
	return finding{s.path, s.fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...)}
}

// goFiles are all parsed files, tests included.
func (t *tree) goFiles() []*source {
	var all []*source
	for _, f := range t.files {
		if f.syntax != nil {
			all = append(all, f)
		}
	}
	return all
}

func (t *tree) file(p string) *source {
	for _, f := range t.files {
		if f.path == p {
			return f
		}
	}
	return nil
}

func (p *pkg) all() []*source { return append(slices.Clone(p.files), p.tests...) }
