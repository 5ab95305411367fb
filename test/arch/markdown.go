package arch

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The tags of blocks that hold commands. Both are run by the end-to-end tests.
//
// In a console block a line "$ COMMAND" is run by sh, lines "> …"
// that follow it directly go on with the command, and all lines up to the next
// "$ " are what it prints, standard output and standard error together. In the
// output a line "…" stands for any number of lines, also none, and "…" within a
// line for any text.
//
// A sh block is a script that is run whole by sh -e. What it prints does not
// matter.
//
// A demo block is a part of what the demonstration prints, with ellipses as in
// the output of a console block. A test of its own compares the two.
//
// Behind the tag may stand "exit=N": the exit status of the block's last
// command, 0 where it is not given. All other commands must end with 0.
const (
	Console = "console"
	Script  = "sh"
	Demo    = "demo"
)

// Ellipsis elides output in a console block.
const Ellipsis = "…"

// Block is one fenced block of a document.
type Block struct {
	File string // as it was given to Blocks
	Line int    // of the opening fence, from 1
	Tag  string // first word behind the fence, "" where there is none
	Exit int    // wanted exit status of the last command
	Text string // the lines between the fences, each with its newline
}

// Command is one command of a block.
type Command struct {
	Line   int    // where it begins in the document, from 1
	Text   string // what the shell is given
	Output string // what it must print, with ellipses; empty for a Script
	Exit   int
}

var fence = regexp.MustCompile("^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)$")

// Blocks returns the fenced blocks of a Markdown document, in order. The error
// names the line of a fence that is never closed or of an attribute that is not
// known.
func Blocks(file string, text string) ([]Block, error) {
	var (
		all    []Block
		open   *Block
		indent string
		mark   string
		line   int
	)
	for raw := range strings.Lines(text) {
		line++
		m := fence.FindStringSubmatch(strings.TrimRight(raw, "\r\n"))
		switch {
		case open == nil && m != nil:
			b := Block{File: file, Line: line}
			if err := b.describe(m[3]); err != nil {
				return nil, err
			}
			open, indent, mark = &b, m[1], m[2]
		case open == nil:
		case m != nil && strings.HasPrefix(m[2], mark) && strings.TrimSpace(m[3]) == "":
			all, open = append(all, *open), nil
		default:
			open.Text += strings.TrimPrefix(raw, indent)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s:%d: block is never closed", file, open.Line)
	}
	return all, nil
}

func (b *Block) describe(info string) error {
	words := strings.Fields(info)
	if len(words) == 0 {
		return nil
	}
	b.Tag = words[0]
	for _, w := range words[1:] {
		n, err := strconv.Atoi(strings.TrimPrefix(w, "exit="))
		if err != nil || !strings.HasPrefix(w, "exit=") || !b.Run() {
			return fmt.Errorf("%s:%d: %q is no attribute of a %s block", b.File, b.Line, w, b.Tag)
		}
		b.Exit = n
	}
	return nil
}

// Run reports whether b is of a kind that the end-to-end tests run.
func (b Block) Run() bool { return b.Tag == Console || b.Tag == Script }

// Commands returns the commands of a block that is run, in order; none for other
// blocks. The error names the line of a console block that does not begin with a
// command.
func (b Block) Commands() ([]Command, error) {
	switch b.Tag {
	case Script:
		return []Command{{Line: b.Line + 1, Text: b.Text, Exit: b.Exit}}, nil
	case Console:
	default:
		return nil, nil
	}
	var all []Command
	line, more := b.Line, false
	for text := range strings.Lines(b.Text) {
		line++
		switch {
		case strings.HasPrefix(text, "$ "):
			all, more = append(all, Command{Line: line, Text: text[2:]}), true
		case len(all) == 0:
			return nil, fmt.Errorf("%s:%d: a console block begins with %q and a command", b.File, line, "$ ")
		case more && strings.HasPrefix(text, "> "):
			all[len(all)-1].Text += text[2:]
		default:
			all[len(all)-1].Output += text
			more = false
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s:%d: a console block without a command", b.File, b.Line)
	}
	all[len(all)-1].Exit = b.Exit
	return all, nil
}

// Matches reports whether got is what c must print. White space at the end of
// lines, and empty lines at the end, do not count.
func (c Command) Matches(got string) bool {
	return matchLines(tidy(c.Output), tidy(got))
}

func tidy(s string) []string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \t\r")
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// matchLines compares greedily: behind an elided run the next wanted line takes
// the first line that fits, and when the rest does not fit, a later one.
func matchLines(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if strings.TrimSpace(want[0]) == Ellipsis {
		for i := range len(got) + 1 {
			if matchLines(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && matchLine(want[0], got[0]) && matchLines(want[1:], got[1:])
}

func matchLine(want, got string) bool {
	parts := strings.Split(want, Ellipsis)
	if len(parts) == 1 {
		return want == got
	}
	last := parts[len(parts)-1]
	rest, ok := strings.CutPrefix(got, parts[0])
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, p)
		if !ok || i < 0 {
			return false
		}
		rest = rest[i+len(p):]
	}
	return ok && strings.HasSuffix(rest, last)
}

// Documents returns the paths of the documents for people, whose command blocks
// are run: README.md and everything below docs that ends in .md, sorted.
func Documents(root fs.FS) ([]string, error) {
	var all []string
	if _, err := fs.Stat(root, "README.md"); err == nil {
		all = append(all, "README.md")
	}
	if _, err := fs.Stat(root, "docs"); errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	err := fs.WalkDir(root, "docs", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(p) == ".md" {
			all = append(all, p)
		}
		return err
	})
	slices.Sort(all)
	return all, err
}
