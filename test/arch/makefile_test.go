package arch

import (
	"regexp"
	"slices"
	"strings"
)

var (
	targetLine = regexp.MustCompile(`^([a-z][a-z0-9-]*):( [^#=]*)?(## (.*))?$`)
	phonyLine  = regexp.MustCompile(`^\.PHONY:(.*)$`)
)

// targets are the Makefile's targets and the help line of each.
func targets(t *tree) map[string]string {
	all := map[string]string{}
	f := t.file("Makefile")
	if f == nil {
		return all
	}
	for line := range strings.Lines(f.text) {
		if m := targetLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			all[m[1]] = m[4]
		}
	}
	return all
}

// wantedTargets are those that people and the README rely on.
var wantedTargets = strings.Fields("help build test race lint fuzz bench demo check install clean lab-count lab-sweep")

// checkMakefile wants the known targets, each with its line of help and phony,
// and help first.
func checkMakefile(t *tree) []finding {
	f := t.file("Makefile")
	if f == nil {
		return []finding{{"Makefile", 0, "it is missing"}}
	}
	var out []finding
	have := targets(t)
	for _, name := range wantedTargets {
		if have[name] == "" {
			out = append(out, finding{"Makefile", 0, "no target " + name + " with a line of help"})
		}
	}
	var phony []string
	first := ""
	for line := range strings.Lines(f.text) {
		line = strings.TrimSuffix(line, "\n")
		if m := phonyLine.FindStringSubmatch(line); m != nil {
			phony = append(phony, strings.Fields(m[1])...)
		}
		if m := targetLine.FindStringSubmatch(line); m != nil && first == "" {
			first = m[1]
		}
	}
	if first != "help" {
		out = append(out, finding{"Makefile", 0, "help is not the first target"})
	}
	for name := range have {
		if !slices.Contains(phony, name) {
			out = append(out, finding{"Makefile", 0, "target " + name + " is not .PHONY"})
		}
	}
	return out
}
