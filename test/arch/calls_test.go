package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// where says in which files a ban holds.
type where int

const (
	everywhere where = iota
	inProduct        // all but tests and test/
	notInMain        // all but package main and TestMain
	notForShow       // all but cmd/, test/ and examples
)

// ban is a list of identifiers of a package that are not used, and what is done
// in their place.
type ban struct {
	pkg   string
	names string // "*" is the import itself
	where where
	cure  string
}

// bans are the banned calls.
var bans = []ban{
	{"time", "Sleep", inProduct, "wait on a channel or a timer, and on the context"},
	{"log", "*", everywhere, "take a *slog.Logger"},
	{"log/slog", "Default SetDefault Debug DebugContext Info InfoContext Warn WarnContext Error ErrorContext Log LogAttrs With", everywhere, "take a *slog.Logger"},
	{"fmt", "Print Printf Println", notForShow, "write to the io.Writer that was handed in"},
	{"os", "Exit", notInMain, "return an error"},
	{"os", "Chdir Setenv Unsetenv Clearenv", inProduct, "it changes the whole process"},
	{"os", "Getenv LookupEnv Environ ExpandEnv", inProduct, "take it as an option"},
	{"syscall", "Umask Chdir Setenv Exit", inProduct, "it changes the whole process"},
	{"golang.org/x/sys/unix", "Umask Chdir Setenv Exit", inProduct, "it changes the whole process"},
	{"net/http", "DefaultClient DefaultServeMux DefaultTransport Get Head Post PostForm Handle HandleFunc", everywhere, "make a client or a mux of your own"},
	{"flag", "*", inProduct, "options are fields of Options; flags are the command line's"},
	{"context", "Background T" + "ODO", inProduct, "take a context; context.WithoutCancel for what must end in spite of it"},
	{"testing", "Short", everywhere, "no test depends on a switch"},
	{"math/rand", "*", everywhere, "math/rand/v2"},
	{"io/ioutil", "*", everywhere, "os and io"},
	{"unsafe", "*", inProduct, "no need of it has been shown"},
	{"C", "*", everywhere, "the program is built without cgo"},
}

// mayCall are files in which one banned call has a good reason.
var mayCall = map[string]string{
	"cmd/stead/main.go context.Background": "the root of all contexts",
	"cmd/stead/main.go os.Getenv":          "the environment of the command line, handed in as an option",
	"host/status.go syscall.Umask":         "the socket is never open to others, and nothing else runs yet",
	"test/lab/inner.go testing.Short":      "it hands the switch of the outer run on to the inner one",
}

func checkCalls(t *tree) []finding {
	var out []finding
	for _, f := range t.goFiles() {
		for _, s := range f.syntax.Imports {
			if b, ok := banned(f, importPath(s), "*", ""); ok {
				out = append(out, f.at(s, "package %s is not used: %s", b.pkg, b.cure))
			}
		}
		for _, d := range f.syntax.Decls {
			fn, _ := d.(*ast.FuncDecl)
			name := ""
			if fn != nil {
				name = fn.Name.Name
				if name == "init" && fn.Recv == nil {
					out = append(out, f.at(fn, "init function: nothing happens by being imported"))
				}
			}
			out = append(out, callsIn(f, d, name)...)
		}
	}
	return out
}

func callsIn(f *source, d ast.Decl, fn string) []finding {
	var out []finding
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			id, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			if b, ok := banned(f, f.imports[id.Name], n.Sel.Name, fn); ok {
				out = append(out, f.at(n, "%s.%s: %s", b.pkg, n.Sel.Name, b.cure))
			}
			if skips(id.Name, n.Sel.Name) {
				out = append(out, f.at(n, "%s.%s: a test is never skipped", id.Name, n.Sel.Name))
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				out = append(out, f.at(n, "%s: a trace that was left behind", id.Name))
			}
		}
		return true
	})
	return out
}

// skips reports whether x.name skips a test, a benchmark or a fuzz target.
func skips(x, name string) bool {
	switch name {
	case "SkipNow", "Skipf":
		return true
	case "Skip":
		return slices.Contains([]string{"t", "b", "f", "tb", "testing"}, x)
	}
	return false
}

// banned finds the ban that holds for pkg.name in f, within function fn.
func banned(f *source, pkg, name, fn string) (ban, bool) {
	for _, b := range bans {
		if b.pkg != pkg || !slices.Contains(strings.Fields(b.names), name) || mayCall[f.path+" "+pkg+"."+name] != "" {
			continue
		}
		switch b.where {
		case everywhere:
			return b, true
		case inProduct:
			return b, !f.inTests()
		case notInMain:
			return b, !f.isMain() && !(f.isTest() && fn == "TestMain")
		case notForShow:
			return b, !f.inTests() && !strings.HasPrefix(f.path, "cmd/")
		}
	}
	return ban{}, false
}
