package arch

import (
	"fmt"
	"path"
	"strings"
)

// longest is how many lines a Go file has before it must give a reason.
const longest = 450

// mayBeLong are the files over the limit, and why each is one thing.
var mayBeLong = map[string]string{}

func checkLength(t *tree) []finding {
	var out []finding
	for _, f := range t.files {
		if path.Ext(f.path) != ".go" || mayBeLong[f.path] != "" {
			continue
		}
		if n := strings.Count(f.text, "\n"); n > longest {
			out = append(out, finding{f.path, 0, fmt.Sprintf("%d lines: split it, or give the reason in test/arch/length_test.go", n)})
		}
	}
	return out
}
