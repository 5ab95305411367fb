package arch

import (
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// maker is one function of cmd/stead/cli that makes a command.
type maker struct {
	word     string          // the first word of its Use:
	makers   []string        // the functions whose commands it adds
	literals map[string]bool // all texts in it and in what gives it flags, its flags' names among them
	calls    []string        // the functions and methods that it calls
	persists bool            // its flags are also those of the commands below it
	gives    bool            // it gives a command flags
}

// commands reads cmd/stead/cli: every function that fills in Use: of a command,
// by its name. They are read and not called, so that the rules can be run while
// the program does not compile.
func commands(t *tree) map[string]maker {
	all, helpers := map[string]maker{}, map[string]maker{}
	for _, f := range t.goFiles() {
		if f.isTest() || !strings.HasPrefix(f.path, "cmd/stead/cli/") {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				switch c := commandOf(fn); {
				case c.word != "":
					all[fn.Name.Name] = c
				case c.gives:
					helpers[fn.Name.Name] = c
				}
			}
		}
	}
	for _, c := range all {
		for _, name := range c.calls {
			maps.Copy(c.literals, helpers[name].literals)
			for _, deeper := range helpers[name].calls {
				maps.Copy(c.literals, helpers[deeper].literals)
			}
		}
	}
	return all
}

func commandOf(fn *ast.FuncDecl) maker {
	c := maker{literals: map[string]bool{}}
	for _, p := range fn.Type.Params.List {
		star, _ := p.Type.(*ast.StarExpr)
		if star != nil {
			sel, _ := star.X.(*ast.SelectorExpr)
			c.gives = c.gives || sel != nil && sel.Sel.Name == "FlagSet"
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			key, _ := n.Key.(*ast.Ident)
			if use := text(n.Value); key != nil && key.Name == "Use" && use != "" {
				c.word, _, _ = strings.Cut(use, " ")
			}
		case *ast.BasicLit:
			c.literals[text(n)] = true
		case *ast.CallExpr:
			switch f := n.Fun.(type) {
			case *ast.Ident:
				c.calls = append(c.calls, f.Name)
			case *ast.SelectorExpr:
				c.calls = append(c.calls, f.Sel.Name)
				c.persists = c.persists || f.Sel.Name == "PersistentFlags"
				c.gives = c.gives || f.Sel.Name == "Flags"
			}
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "AddCommand" {
				for _, arg := range n.Args {
					if call, ok := arg.(*ast.CallExpr); ok {
						if id, ok := call.Fun.(*ast.Ident); ok {
							c.makers = append(c.makers, id.Name)
						}
					}
				}
			}
		}
		return true
	})
	return c
}

// text is the value of a literal text, "" for anything else.
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}

// ownFlags are those that every command has from the library, and its commands.
var (
	ownFlags    = []string{"h", "help", "version", "v"}
	ownCommands = []string{"help", "completion"}
)

// unknownPath says why args, which stood behind "stead", are no command: a word
// where only the names of commands may stand, or a flag that no command on the
// way has.
func unknownPath(t *tree, args []string) string {
	all := commands(t)
	var at maker
	for _, c := range all {
		if c.word == "stead" {
			at = c
		}
	}
	path, flags, leaf := []string{"stead"}, at.literals, false
	inherited := map[string]bool{}
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if name != "" && !flags[name] && !inherited[name] && !slices.Contains(ownFlags, name) {
				return strings.Join(path, " ") + " has no flag " + arg
			}
			leaf = true
			continue
		}
		i := slices.IndexFunc(at.makers, func(m string) bool { return all[m].word == arg })
		switch {
		case leaf:
		case i >= 0:
			if at.persists {
				maps.Copy(inherited, at.literals)
			}
			at = all[at.makers[i]]
			path, flags = append(path, arg), at.literals
		case len(at.makers) == 0 && len(path) > 1, slices.Contains(ownCommands, arg):
			leaf = true
		default:
			return strings.Join(path, " ") + " has no command " + arg
		}
	}
	return ""
}
