package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// checkPackageComments wants exactly one package comment of at least two
// sentences in each package: in one of the product's files, or in a test where
// there are only tests.
func checkPackageComments(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		files := p.files
		if len(files) == 0 {
			files = p.tests
		}
		var with []*source
		for _, f := range files {
			if f.syntax.Doc != nil && !onlyDirectives(f.syntax.Doc) {
				with = append(with, f)
			}
		}
		if len(with) != 1 {
			out = append(out, finding{p.dir, 0, fmt.Sprintf("%d package comments instead of one", len(with))})
			continue
		}
		f, text := with[0], with[0].syntax.Doc.Text()
		opening := "Package " + f.syntax.Name.Name + " "
		if f.isMain() {
			opening = "Command "
		}
		if !strings.HasPrefix(text, opening) {
			out = append(out, f.at(f.syntax.Doc, "the package comment does not begin with %q", opening))
		}
		if n := sentences(text); n < 2 {
			out = append(out, f.at(f.syntax.Doc, "the package comment has %d sentence(s): say what it owns, what it leaves to others, how it is used", n))
		}
	}
	return out
}

func onlyDirectives(g *ast.CommentGroup) bool { return strings.TrimSpace(g.Text()) == "" }

// sentences counts the full stops that end a word.
func sentences(text string) int {
	n := 0
	for word := range strings.FieldsSeq(text) {
		word = strings.Trim(word, `()"`)
		if strings.HasSuffix(word, ".") && word != "e.g." && word != "i.e." && word != "..." {
			n++
		}
	}
	return n
}

// plain are methods whose signature says it all.
var plain = strings.Fields("String Error Unwrap Len Less Swap")

// checkExported wants a comment on every exported identifier of the product and
// of the packages below test/.
func checkExported(t *tree) []finding {
	var out []finding
	for _, f := range t.goFiles() {
		if f.isTest() || f.isMain() {
			continue
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Doc == nil && d.Name.IsExported() && !slices.Contains(plain, d.Name.Name) && ast.IsExported(receiver(d, d.Name.Name)) {
					out = append(out, f.at(d, "exported %s has no comment", d.Name.Name))
				}
			case *ast.GenDecl:
				out = append(out, bare(f, d)...)
			}
		}
	}
	return out
}

// receiver is the name of the type that d is a method of, or other for a
// function.
func receiver(d *ast.FuncDecl, other string) string {
	if d.Recv == nil {
		return other
	}
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return true
	})
	return name
}

func bare(f *source, d *ast.GenDecl) []finding {
	var out []finding
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
				out = append(out, f.at(s, "exported %s has no comment", s.Name.Name))
			}
		case *ast.ValueSpec:
			// One comment may speak for a whole block of constants.
			if d.Doc != nil || s.Doc != nil || s.Comment != nil && d.Tok == token.CONST {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					out = append(out, f.at(name, "exported %s has no comment", name.Name))
				}
			}
		}
	}
	return out
}
