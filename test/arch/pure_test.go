package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// mayImport are files that take nothing but words from such a package.
var mayImport = map[string]string{
	"host/plan/words.go golang.org/x/sys/unix": "the names of signals",
}

// checkPure wants packages of words and of decisions to neither look nor act:
// no disk, no network, no clock, no goroutine. What they need to know is handed
// to them.
func checkPure(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		if r, ok := rowOf(p.dir); !ok || r.layer != words && r.layer != pure {
			continue
		}
		for _, f := range p.files {
			for _, s := range f.syntax.Imports {
				to := importPath(s)
				if mayImport[f.path+" "+to] == "" && (slices.Contains(impure, to) || strings.HasPrefix(to, "golang.org/x/sys")) {
					out = append(out, f.at(s, "a package that decides does not import %s", to))
				}
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					out = append(out, f.at(n, "a package that decides starts no goroutine"))
				case *ast.SelectorExpr:
					if id, ok := n.X.(*ast.Ident); ok && f.imports[id.Name] == "time" && slices.Contains(clocks, n.Sel.Name) {
						out = append(out, f.at(n, "time.%s: a package that decides is told the time", n.Sel.Name))
					}
				}
				return true
			})
		}
	}
	return out
}

// clocks are the functions of package time that read or wait on a clock.
var clocks = strings.Fields("Now Since Until After AfterFunc Tick NewTicker NewTimer Sleep")
