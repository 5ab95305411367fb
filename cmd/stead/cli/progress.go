package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"stead/host/report"
	"stead/mesh/wire"
)

const (
	barWidth = 20
	// barsShown is how many declarations a screen of progress shows.
	barsShown = 12
)

// outcomes in the order in which they are told: what needs somebody first.
func outcomes() []report.Outcome {
	return []report.Outcome{report.Failed, report.Refused, report.Contested, report.Waiting, report.Paused}
}

// advance is how far a number of declarations have come, on all their nodes.
type advance struct {
	nodes    int
	outcomes map[report.Outcome]int
	unheard  int // nodes that did not report on it yet
	leaving  int // nodes that still have it, and are not to
	silent   []string
	declared bool // one of them is declared at all
}

func advanceOf(all []wire.ProgressOfName) advance {
	a := advance{outcomes: map[report.Outcome]int{}}
	for _, p := range all {
		a.nodes += p.Nodes
		a.leaving += p.Leaving
		a.declared = a.declared || p.Generation > 0 || p.Nodes > 0
		heard := 0
		for o, n := range p.Outcomes {
			a.outcomes[o] += n
			heard += n
		}
		a.unheard += max(0, p.Nodes-heard)
		a.silent = append(a.silent, p.Silent...)
	}
	slices.Sort(a.silent)
	a.silent = slices.Compact(a.silent)
	return a
}

func (a advance) converged() int { return a.outcomes[report.Converged] }

// done reports whether everything is as it is declared, and gone where it is
// not.
func (a advance) done() bool { return a.converged() == a.nodes && a.leaving == 0 }

// stuck reports whether waiting longer cannot help: everything that is missing
// was refused, or is paused.
func (a advance) stuck() bool {
	return !a.done() && a.leaving == 0 && a.converged()+a.outcomes[report.Refused]+a.outcomes[report.Paused] == a.nodes
}

// String is the last line of progress, without its time.
func (a advance) String() string {
	var parts []string
	for _, o := range outcomes() {
		if n := a.outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if a.unheard > 0 {
		parts = append(parts, fmt.Sprintf("%d not heard of", a.unheard))
	}
	if a.leaving > 0 {
		parts = append(parts, fmt.Sprintf("%d still to give up", a.leaving))
	}
	switch {
	case a.nodes == 0 && len(parts) == 0 && a.declared:
		return "on no node"
	case a.nodes == 0 && len(parts) == 0:
		return "given up everywhere"
	case a.nodes == 0:
		return strings.Join(parts, ", ")
	case len(parts) == 0:
		return fmt.Sprintf("converged on %d of %d", a.converged(), a.nodes)
	}
	return fmt.Sprintf("converged on %d of %d, %s", a.converged(), a.nodes, strings.Join(parts, ", "))
}

// bars is one line for each declaration. Where there are many it is for the first
// of those that are not done.
func (w screen) bars(all []wire.ProgressOfName) []string {
	shown, more := all, 0
	if len(all) > barsShown {
		shown = slices.DeleteFunc(slices.Clone(all), func(p wire.ProgressOfName) bool { return advanceOf([]wire.ProgressOfName{p}).done() })
		more = max(0, len(shown)-barsShown)
		shown = shown[:len(shown)-more]
	}
	rows := make([][]string, 0, len(shown))
	for _, p := range shown {
		rows = append(rows, w.bar(p))
	}
	rows = withoutEmpty(rows)
	wide := widths(rows)
	lines := make([]string, 0, len(rows)+1)
	for _, row := range rows {
		lines = append(lines, w.snip(aligned("  ", wide, row)))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("  … and %s", count(more, "more declaration")))
	}
	return lines
}

// snip cuts a line where the terminal ends.
func (w screen) snip(line string) string {
	if w.width == 0 {
		return line
	}
	return text.Snip(line, w.width, "…")
}

// bar is the line of one declaration: name, bar, count, and what is the matter.
// The bar is for terminals; its number says the same.
func (w screen) bar(p wire.ProgressOfName) []string {
	a := advanceOf([]wire.ProgressOfName{p})
	row := []string{p.Name}
	if w.width > 0 {
		row = append(row, stroke(a))
	}
	number := fmt.Sprintf("%d/%d", a.converged(), a.nodes)
	if a.nodes == 0 {
		number = ""
	}
	return append(row, number, matter(p, a))
}

func stroke(a advance) string {
	full := 0
	switch {
	case a.nodes > 0:
		full = barWidth * a.converged() / a.nodes
	case a.leaving == 0:
		full = barWidth
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// matter names what holds a declaration up, the worst first.
func matter(p wire.ProgressOfName, a advance) string {
	switch {
	case len(p.Notable) > 0:
		n := p.Notable[0]
		line := fmt.Sprintf("%s %s", n.Node, n.Outcome)
		if why := reason(&n.Report); why != "" {
			line += ": " + why
		}
		if more := a.nodes - a.converged() - a.unheard - 1; more > 0 {
			line += fmt.Sprintf(" (and %d more)", more)
		}
		return line
	case len(a.silent) > 0:
		return "no answer: " + some(a.silent)
	case a.unheard > 0:
		return fmt.Sprintf("%d not heard of", a.unheard)
	case a.leaving > 0:
		return fmt.Sprintf("%s still to give it up", count(a.leaving, "node"))
	case a.nodes == 0 && p.Generation > 0:
		return "on no node"
	case a.nodes == 0:
		return "given up everywhere"
	}
	return ""
}

// progress is a whole screen of it: a line for each, and one for all.
func (w screen) progress(all []wire.ProgressOfName, took time.Duration) []string {
	return append(w.bars(all), w.outcome(all, took))
}

func (w screen) outcome(all []wire.ProgressOfName, elapsed time.Duration) string {
	a := advanceOf(all)
	line := a.String() + " · " + took(elapsed)
	if len(a.silent) > 0 {
		line += " · no answer: " + some(a.silent)
	}
	return w.snip(line)
}

// painter draws a screen of lines over the one that it drew before.
type painter struct {
	w     io.Writer
	drawn int // lines
}

// paint puts lines in place of those of before. None of them may be wider than
// the terminal.
func (p *painter) paint(lines []string) {
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r\x1b[J", p.drawn)
	}
	for _, line := range lines {
		b.WriteString(strings.Map(shown, line) + "\n")
	}
	p.drawn = len(lines)
	// What cannot be written now is written whole at the end, with an error.
	_, _ = io.WriteString(past(p.w), b.String())
}
