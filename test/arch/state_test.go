package arch

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkState wants nothing global: a variable of a package is unexported, or is
// an error to match (ErrX); and it is set where it is declared and nowhere else.
// Variables of tests are free.
func checkState(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		vars := map[string]bool{}
		for _, f := range p.files {
			if f.inTests() {
				continue
			}
			for _, name := range globals(f) {
				vars[name.Name] = true
				if name.IsExported() && !strings.HasPrefix(name.Name, "Err") {
					out = append(out, f.at(name, "exported variable %s: anybody may set it; make it a function or a constant", name.Name))
				}
			}
		}
		for _, f := range p.files {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					out = append(out, writes(f, fn, vars)...)
				}
			}
		}
	}
	return out
}

func globals(f *source) []*ast.Ident {
	var all []*ast.Ident
	for _, d := range f.syntax.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, s := range g.Specs {
			for _, name := range s.(*ast.ValueSpec).Names {
				if name.Name != "_" {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

// writes finds the assignments of fn to one of vars that fn does not declare
// anew.
func writes(f *source, fn *ast.FuncDecl, vars map[string]bool) []finding {
	own := declared(fn)
	var out []finding
	check := func(e ast.Expr) {
		if id := rootOf(e); id != nil && vars[id.Name] && !own[id.Name] {
			out = append(out, f.at(e, "%s is a variable of the package and is changed here: make it a field", id.Name))
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					check(e)
				}
			}
		case *ast.IncDecStmt:
			check(n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				check(n.X)
			}
		}
		return true
	})
	return out
}

// declared are the names that fn declares: receiver, parameters, results and
// everything in its body.
func declared(fn *ast.FuncDecl) map[string]bool {
	own := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		var names []*ast.Ident
		switch n := n.(type) {
		case *ast.Field:
			names = n.Names
		case *ast.ValueSpec:
			names = n.Names
		case *ast.RangeStmt:
			names = append(names, rootOf(n.Key), rootOf(n.Value))
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					names = append(names, rootOf(e))
				}
			}
		}
		for _, id := range names {
			if id != nil {
				own[id.Name] = true
			}
		}
		return true
	})
	return own
}

// rootOf is the identifier that an expression such as a.b[c] or *a begins with.
func rootOf(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}
