package arch

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// shells are the programs whose name at the beginning of a line makes it a
// command.
var shells = strings.Fields("stead make systemctl journalctl systemd-analyze apt-get apt sudo git go nats curl loginctl ssh")

var inlineCode = regexp.MustCompile("`([^`\n]+)`")

// checkDocuments wants every command that a document shows to be in a block that
// the end-to-end tests run, and every command that a sentence names to exist.
func checkDocuments(t *tree) []finding {
	var out []finding
	tested := func(by string) bool {
		return slices.ContainsFunc(t.files, func(f *source) bool {
			return f.isTest() && strings.HasPrefix(f.path, "test/system/") && strings.Contains(f.text, by)
		})
	}
	ran, compared := tested("arch.Documents("), tested("arch.Demo")
	for _, f := range t.files {
		if path.Ext(f.path) != ".md" || strings.Contains(f.path, "testdata/") {
			continue
		}
		blocks, err := Blocks(f.path, f.text)
		if err != nil {
			out = append(out, finding{f.path, 0, err.Error()})
			continue
		}
		run := f.path == "README.md" || strings.HasPrefix(f.path, "docs/")
		for _, b := range blocks {
			out = append(out, blockFaults(b, run)...)
			if b.Run() && run && !ran {
				out = append(out, finding{f.path, b.Line, "no test of test/system runs the documents' blocks (arch.Documents)"})
			}
			if b.Tag == Demo && !compared {
				out = append(out, finding{f.path, b.Line, "no test of test/system compares it with the demonstration (arch.Demo)"})
			}
		}
		out = append(out, proseFaults(t, f, blocks)...)
	}
	return out
}

func blockFaults(b Block, run bool) []finding {
	if b.Run() && run {
		if _, err := b.Commands(); err != nil {
			return []finding{{b.File, b.Line, err.Error()}}
		}
		return nil
	}
	if b.Run() {
		return []finding{{b.File, b.Line, "only the blocks of README.md and docs are run: this one is not"}}
	}
	if b.Tag == "" {
		return []finding{{b.File, b.Line, "the block does not say what it holds: console, sh, yaml, ini, text"}}
	}
	if b.Tag == Demo && b.File == "README.md" {
		return nil
	}
	var out []finding
	line := b.Line
	for text := range strings.Lines(b.Text) {
		line++
		if isCommand(text) {
			out = append(out, finding{b.File, line, "a command outside a tested block: use a console or sh block"})
		}
	}
	return out
}

// isCommand reports whether a line of a block that is not run shows a command:
// behind a prompt, or by the name that it begins with.
func isCommand(line string) bool {
	line = strings.TrimSpace(line)
	if strings.HasPrefix(line, "$ ") {
		return true
	}
	line, rooted := strings.CutPrefix(line, "# ")
	word, rest, _ := strings.Cut(line, " ")
	if rooted && (word == "make" || word == "go") {
		return false // a comment in a sentence's words
	}
	return rest != "" && slices.Contains(shells, word)
}

// proseFaults looks at everything outside the blocks: lines with a prompt,
// indented blocks, HTML blocks, and code within sentences.
func proseFaults(t *tree, f *source, blocks []Block) []finding {
	var out []finding
	line, indented, blank := 0, false, true
	for text := range strings.Lines(f.text) {
		line++
		if slices.ContainsFunc(blocks, func(b Block) bool { return line >= b.Line && line <= b.Line+1+strings.Count(b.Text, "\n") }) {
			blank = true
			continue
		}
		deep := strings.HasPrefix(text, "    ") || strings.HasPrefix(text, "\t")
		indented = deep && (blank || indented)
		blank = strings.TrimSpace(text) == ""
		switch {
		case strings.HasPrefix(strings.TrimSpace(text), "$ "), indented && isCommand(text):
			out = append(out, finding{f.path, line, "a command outside a tested block: use a console or sh block"})
		case strings.Contains(text, "<pre"):
			out = append(out, finding{f.path, line, "an HTML block: use a fenced one"})
		}
		for _, m := range inlineCode.FindAllStringSubmatch(text, -1) {
			if why := unknownCommand(t, m[1]); why != "" {
				out = append(out, finding{f.path, line, "`" + m[1] + "`: " + why})
			}
		}
	}
	return out
}

// unknownCommand says why code within a sentence names no command that exists,
// "" for everything that is no command of ours.
func unknownCommand(t *tree, code string) string {
	words := strings.Fields(code)
	switch {
	case len(words) < 2:
	case words[0] == "make":
		have := targets(t)
		for _, w := range words[1:] {
			if _, ok := have[w]; !ok && !strings.ContainsAny(w, "=-") {
				return "no such target in the Makefile"
			}
		}
	case words[0] == "stead":
		return unknownPath(t, words[1:])
	}
	return ""
}
