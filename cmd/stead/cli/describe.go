package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"stead/host/report"
)

// stepsShown is how many of the last steps a description has; -o json has all.
const stepsShown = 12

// describe tells all that is known of one declaration.
func (w screen) describe(r *report.Report) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "● %s   declaration %s, generation %d\n", r.Unit, r.Name, r.Generation)
	line("outcome", "%s since %s (%s)", r.Outcome, w.when(r.Since), w.ago(r.Since))
	w.because(r)
	line("state", "%s", strings.Join(known(string(r.State.Load), state(r.State), r.State.Enabled), ", "))
	if r.State.ID != "" {
		line("alias of", "%s", r.State.ID)
	}
	if r.State.MainPID != 0 {
		line("process", "%d", r.State.MainPID)
	}
	if r.State.Restarts > 0 {
		line("restarts", "%d by systemd", r.State.Restarts)
	}
	if r.Origin != "" {
		line("declared", "%s", r.Origin)
	}
	if !r.Looked.IsZero() {
		line("looked", "%s", w.when(r.Looked))
	}
	w.happened(r)
}

// because says why a report is as it is, in full, and what is to come.
func (w screen) because(r *report.Report) {
	if why := reason(r); why != "" {
		w.fact("reason", "%s", why)
	}
	if r.Hint != "" {
		w.fact("hint", "%s", r.Hint)
	}
	if !r.Retry.IsZero() {
		w.fact("retry", "at %s", w.when(r.Retry))
	}
}

// happened says what was done, and what there is to read about it.
func (w screen) happened(r *report.Report) {
	w.steps(r.Steps)
	list(w, "warnings", r.Warnings)
	list(w, "last lines", r.Lines)
}

// known leaves out what is empty; nothing at all is a dash.
func known(all ...string) []string {
	var out []string
	for _, s := range all {
		if s != "" {
			out = append(out, s)
		}
	}
	if out == nil {
		return []string{dash("")}
	}
	return out
}

func (w screen) steps(all []report.Step) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "  steps\n")
	if more := len(all) - stepsShown; more > 0 {
		fmt.Fprintf(w, "    … and %d before, see -o json\n", more)
		all = all[more:]
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		why := s.Reason
		if s.Took > 0 {
			why += fmt.Sprintf(" (%s)", took(s.Took))
		}
		if s.Error != "" {
			why += "; failed: " + s.Error
		}
		rows = append(rows, []string{w.format(s.At, "15:04:05.000"), s.Action, s.Object, why})
	}
	w.flow("    ", rows)
}

// flow writes a table like table does. Where that is wider than the screen, the
// last cell of a row follows the one before it, or stands below it.
func (w screen) flow(indent string, rows [][]string) {
	wide := widths(rows)
	last := len(wide) - 1
	if w.fits(len(indent) + sum(wide) - gap) {
		table(w, indent, nil, rows)
		return
	}
	lead := len(indent) + sum(wide[:last-1])
	var out [][]string
	for _, row := range rows {
		joined := row[last-1] + strings.Repeat(" ", gap) + row[last]
		if w.fits(lead + text.StringWidthWithoutEscSequences(joined)) {
			out = append(out, append(row[:last-1:last-1], joined))
			continue
		}
		out = append(out, row[:last], append(make([]string, last-1), row[last]))
	}
	table(w, indent, nil, out)
}

func list(w io.Writer, label string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\n", label)
	for _, l := range lines {
		fmt.Fprintf(w, "    %s\n", l)
	}
}

// took writes a duration as people do: 12 ms, 1.4 s.
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
