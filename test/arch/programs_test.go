package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// starter is a file of the product that may start a program.
type starter struct {
	file     string
	programs string // the names that it may start; "stead" is the program itself
}

// starters are all files of the product that import os/exec. Programs and
// packages below test/ are free, and so are tests, but for the two programs that
// nobody calls.
var starters = []starter{
	{"host/journal/child.go", "journalctl"},
	{"host/verify/verify.go", "systemd-analyze"},
	{"host/become/login.go", "/proc/self/exe"},
	{"host/delegate/process.go", ""}, // what host/become makes
	{"host/tenant.go", ""},           // the same
	{replacer, ""},
}

// replacer is the file that may run another program in the place of its own.
const replacer = "host/become/become.go"

// never are the programs that stead does by itself what they do.
var never = []string{"systemctl", "loginctl"}

// otherStarts are the ways around os/exec. A Credential has a process become an
// account before it runs a program: see host/become.
var otherStarts = map[string]string{
	"os": "StartProcess", "syscall": "ForkExec StartProcess Exec Credential", "golang.org/x/sys/unix": "Exec ForkExec",
}

func checkPrograms(t *tree) []finding {
	var out []finding
	for _, f := range t.goFiles() {
		if f.inTests() {
			continue
		}
		i := slices.IndexFunc(starters, func(s starter) bool { return s.file == f.path })
		for _, s := range f.syntax.Imports {
			if importPath(s) == "os/exec" && i < 0 {
				out = append(out, f.at(s, "may not start programs: it is not in test/arch/programs_test.go"))
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && slices.Contains(strings.Fields(otherStarts[f.imports[id.Name]]), n.Sel.Name) &&
					(f.path != replacer || n.Sel.Name != "Exec") {
					out = append(out, f.at(n, "%s.%s: programs are started by os/exec", id.Name, n.Sel.Name))
				}
			case *ast.BasicLit:
				// The name alone is a program to start; within a sentence it is a
				// cure for a person.
				if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil && slices.Contains(never, s) {
					out = append(out, f.at(n, "%s is never started", s))
				}
			case *ast.CallExpr:
				if name, ok := started(f, n); ok && i >= 0 && !slices.Contains(strings.Fields(starters[i].programs), name) {
					out = append(out, f.at(n, "may start %s, not %q", starters[i].programs, name))
				}
			}
			return true
		})
	}
	return out
}

// started is the literal name of the program that call starts.
func started(f *source, call *ast.CallExpr) (string, bool) {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok || f.imports[id.Name] != "os/exec" {
		return "", false
	}
	at := map[string]int{"Command": 0, "CommandContext": 1}
	i, ok := at[sel.Sel.Name]
	if !ok || i >= len(call.Args) {
		return "", false
	}
	lit, ok := call.Args[i].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	name, err := strconv.Unquote(lit.Value)
	return name, err == nil
}
