package arch

import (
	"regexp"
	"strings"
)

// unsaid is text that the tree does not hold.
type unsaid struct {
	re   *regexp.Regexp
	cure string
}

// unsaidWords are written so that none of them matches its own line.
var unsaidWords = []unsaid{
	{regexp.MustCompile(`\b(TO[D]O|FIX[M]E|XX[X])\b`), "do it, or say in a sentence what does not hold"},
	{regexp.MustCompile(`(?i)\b(co[d]ing agent|agent[ ]session|language[ ]model)`), "the project speaks of itself alone"},
	{regexp.MustCompile(`(^|[\s"'(=])/(work|tmp/brief|home/[a-z]+)(/|\b)`), "no path of somebody's machine"},
	{regexp.MustCompile(`\b(proxy\.golan[g]\.org|registry\.np[m]js\.org|deb\.debia[n]\.org)\b`), "no registry's host"},
	{regexp.MustCompile(`<<<<<<[<] |>>>>>>[>] `), "an unresolved merge"},
	{regexp.MustCompile(`errors\.New\("(failed t[o]|error) |fault\.New\([^\n]*"failed t[o] |Errorf\("(failed t[o]|error) `),
		"operation: object: cause, without \"failed to\""},
}

func checkWords(t *tree) []finding {
	var out []finding
	for _, f := range t.files {
		if strings.HasPrefix(f.path, "test/arch/testdata/") || strings.Contains(f.text, "\x00") {
			continue
		}
		line := 0
		for text := range strings.Lines(f.text) {
			line++
			for _, u := range unsaidWords {
				if m := u.re.FindString(text); m != "" {
					out = append(out, finding{f.path, line, strings.TrimSpace(m) + ": " + u.cure})
				}
			}
		}
	}
	return out
}
