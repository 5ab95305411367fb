package shape

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"stead/host/fault"
)

// MaxProblems is how many problems one answer lists; those beyond it are
// counted and not kept.
const MaxProblems = 1000

// Problem is one rule that a declaration breaks, where, and what to do.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"` // from 1; 0 when the problem is of the whole file or batch
	Path string `json:"path,omitempty"` // declaration and field: "web.dropins.10-x.conf"
	Rule string `json:"rule"`           // what is wrong, with the value
	Cure string `json:"cure,omitempty"` // what to write or do instead
}

// String returns "FILE:LINE: PATH: RULE; CURE".
func (p Problem) String() string {
	where := p.File
	if p.Line > 0 {
		where += ":" + strconv.Itoa(p.Line)
	}
	parts := make([]string, 0, 3)
	for _, s := range []string{where, p.Path, p.text()} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

func (p Problem) text() string {
	if p.Cure == "" {
		return p.Rule
	}
	return p.Rule + "; " + p.Cure
}

// Problems are all problems of one file, folder or batch, in the order of their
// places. It is an error; as other errors, only when it is not empty: see Err.
type Problems []Problem

// Err returns nil for no problems, and otherwise a *fault.Error of class
// invalid whose cause is p.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "read declarations", "", p)
}

// Error names the first three problems and counts the rest.
func (p Problems) Error() string {
	shown := make([]string, 0, 4)
	for i, one := range p {
		if i == 3 {
			shown = append(shown, fmt.Sprintf("and %d more", len(p)-i))
			break
		}
		shown = append(shown, one.String())
	}
	return p.count() + ": " + strings.Join(shown, "; ")
}

func (p Problems) count() string {
	if len(p) == 1 {
		return "1 problem"
	}
	return strconv.Itoa(len(p)) + " problems"
}

// Format writes p for a person: a head line ("3 problems in web.yaml, nothing
// was applied", with consequence for what stands after the comma), then one
// aligned line for each problem. It writes no "error:"; the caller does.
func (p Problems) Format(w io.Writer, consequence string) error {
	var b strings.Builder
	file, single := p.file()
	b.WriteString(p.count())
	if file != "" {
		b.WriteString(" in " + file)
	}
	if consequence != "" {
		b.WriteString(", " + consequence)
	}
	b.WriteByte('\n')
	rows := make([][2]string, len(p))
	var wide [2]int
	for i, one := range p {
		rows[i] = [2]string{one.where(single), one.Path}
		for c, cell := range rows[i] {
			wide[c] = max(wide[c], utf8.RuneCountInString(cell))
		}
	}
	for i, one := range p {
		b.WriteString("  ")
		for c, cell := range rows[i] {
			if wide[c] > 0 {
				b.WriteString(cell + strings.Repeat(" ", wide[c]-utf8.RuneCountInString(cell)+2))
			}
		}
		b.WriteString(one.text() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// file returns what the head line names, and whether all problems that are of a
// file are of that one.
func (p Problems) file() (string, bool) {
	files := map[string]bool{}
	name := ""
	for _, one := range p {
		if one.File != "" {
			name, files[one.File] = one.File, true
		}
	}
	if len(files) <= 1 {
		return name, true
	}
	return strconv.Itoa(len(files)) + " files", false
}

func (p Problem) where(single bool) string {
	switch {
	case !single && p.Line > 0:
		return p.File + ":" + strconv.Itoa(p.Line)
	case !single:
		return p.File
	case p.Line > 0:
		return "line " + strconv.Itoa(p.Line)
	}
	return ""
}

// collector gathers problems up to MaxProblems.
type collector struct {
	list Problems
	more int
}

func (c *collector) add(p Problem) {
	if len(c.list) >= MaxProblems {
		c.more++
		return
	}
	c.list = append(c.list, p)
}

// Limit cuts p to MaxProblems and says, in a last problem, how many were left
// out.
func (p Problems) Limit() Problems {
	if len(p) <= MaxProblems {
		return p
	}
	c := collector{list: p[:MaxProblems:MaxProblems], more: len(p) - MaxProblems}
	return c.all()
}

func (c *collector) all() Problems {
	if c.more == 0 {
		return c.list
	}
	last := c.list[len(c.list)-1]
	return append(c.list, Problem{File: last.File, Rule: fmt.Sprintf("%d further problems are not listed", c.more), Cure: "mend these first"})
}
