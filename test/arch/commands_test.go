package arch

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
)

// commandWords are the words that begin a Use: of a command in cmd/stead/cli.
func commandWords(t *tree) map[string]bool {
	all := map[string]bool{"help": true, "completion": true}
	for _, f := range t.goFiles() {
		if f.isTest() || !strings.HasPrefix(f.path, "cmd/stead/cli/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, _ := kv.Key.(*ast.Ident)
			lit, _ := kv.Value.(*ast.BasicLit)
			if key == nil || key.Name != "Use" || lit == nil || lit.Kind != token.STRING {
				return true
			}
			if use, err := strconv.Unquote(lit.Value); err == nil {
				word, _, _ := strings.Cut(use, " ")
				all[word] = true
			}
			return true
		})
	}
	return all
}

// unknownPath says why words, which stood behind "stead", are no command.
func unknownPath(t *tree, args []string) string {
	have := commandWords(t)
	if !strings.HasPrefix(args[0], "-") && !have[args[0]] {
		return "stead has no command " + args[0]
	}
	return ""
}
