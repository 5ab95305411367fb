package arch

import (
	"path"
	"slices"
	"strings"
)

// top are the entries that the top level of the tree may hold.
var top = strings.Fields("go.mod go.sum host seats modules runtime controller mesh decisions docs cmd test " +
	"Makefile README.md LICENSE .ci .gitignore .golangci.yml")

// vague are names that say nothing of what a package is for.
var vague = strings.Fields("util utils common helper helpers types base core lib api impl pkg misc shared internal")

// hollow are folders that hold packages and no Go file of their own: a package
// named runtime would shadow the standard one.
var hollow = []string{"runtime", "test"}

// deepest is how many folders below the top a Go package may lie.
const deepest = 3

func checkTop(t *tree) []finding {
	var out []finding
	for _, f := range t.files {
		first, _, _ := strings.Cut(f.path, "/")
		if !slices.Contains(top, first) {
			out = append(out, finding{f.path, 0, first + " is no entry of the top level"})
		}
		if f.syntax != nil && slices.Contains(hollow, path.Dir(f.path)) {
			out = append(out, finding{f.path, 0, path.Dir(f.path) + "/ holds only sub-packages"})
		}
	}
	return out
}

func checkNames(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		base := path.Base(p.dir)
		if slices.Contains(vague, base) {
			out = append(out, finding{p.dir, 0, base + " says nothing of what the package is for"})
		}
		if strings.Trim(base, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			out = append(out, finding{p.dir, 0, "a package name is lower-case letters and digits"})
		}
		for _, f := range p.all() {
			name := f.syntax.Name.Name
			if f.isTest() {
				name = strings.TrimSuffix(name, "_test")
			}
			if name != base && name != "main" {
				out = append(out, finding{f.path, 0, "package " + name + " does not bear the name of its folder"})
			}
			if name == "main" && !strings.HasPrefix(p.dir, "cmd/") && !strings.HasPrefix(p.dir, "test/") {
				out = append(out, finding{f.path, 0, "programs are in cmd/ and test/"})
			}
		}
	}
	return out
}

func checkDepth(t *tree) []finding {
	var out []finding
	for _, p := range t.packages {
		if n := strings.Count(p.dir, "/") + 1; n > deepest {
			out = append(out, finding{p.dir, 0, "packages lie at most three folders deep"})
		}
	}
	return out
}
