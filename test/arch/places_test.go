package arch

import (
	"go/ast"
)

// mayPanic are the files of the product that may panic, and for what.
var mayPanic = map[string]string{
	"host/shape/canonical.go": "an encoding that cannot fail: texts, maps of texts, truth values",
}

// mayRecover are the files that may recover: around one turn of a loop and
// around a tool's handler, nowhere else.
var mayRecover = map[string]string{
	"host/follow/turn.go":      "one turn: a defect in it costs a turn, not the host",
	"host/ledger/guard.go":     "the database panics over a damaged file",
	"host/spool/spool.go":      "the database panics over a damaged file",
	"mesh/endpoint.go":         "one call of a handler",
	"host/reconcile/loop.go":   "one turn: a defect in it costs a turn, not the host",
	"runtime/tool/dispatch.go": "one call of a tool",
}

// checkPlaces finds panics and recovers outside the files that may have them.
// Tests and programs below test/ may do both.
func checkPlaces(t *tree) []finding {
	var out []finding
	for _, f := range t.goFiles() {
		if f.inTests() {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			switch id, _ := call.Fun.(*ast.Ident); {
			case id == nil:
			case id.Name == "panic" && mayPanic[f.path] == "":
				out = append(out, f.at(call, "panic: return an error of class internal"))
			case id.Name == "recover" && mayRecover[f.path] == "":
				out = append(out, f.at(call, "recover: only around a turn of a loop or a tool's handler"))
			}
			return true
		})
	}
	return out
}
