package cli

import (
	"fmt"
	"io"
	"time"

	"stead/host/report"
)

// describe tells all that is known of one declaration.
func describe(w io.Writer, r *report.Report) {
	line := func(label, format string, args ...any) {
		fmt.Fprintf(w, "  %-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "● %s   %s, generation %d\n", r.Unit, r.Name, r.Generation)
	line("outcome", "%s since %s, %s", r.Outcome, when(r.Since), ago(r.Since))
	if why := reason(r); why != "" {
		line("reason", "%s", why)
	}
	if !r.Retry.IsZero() {
		line("retry", "%s", when(r.Retry))
	}
	line("state", "%s, %s, %s", r.State.Load, state(r.State), r.State.Enabled)
	if r.State.ID != "" {
		line("is", "%s", r.State.ID)
	}
	if r.State.MainPID != 0 {
		line("process", "%d, restarts %d", r.State.MainPID, r.State.Restarts)
	}
	if r.Origin != "" {
		line("declared", "%s", r.Origin)
	}
	list(w, "steps", steps(r.Steps))
	list(w, "warnings", r.Warnings)
	list(w, "last lines", r.Lines)
}

func steps(all []report.Step) []string {
	var out []string
	for _, s := range all {
		text := fmt.Sprintf("%s  %-12s %s   %s", s.At.Local().Format("15:04:05.000"), s.Action, s.Object, s.Reason)
		if s.Took > 0 {
			text += fmt.Sprintf(" (%s)", s.Took.Round(time.Millisecond))
		}
		if s.Error != "" {
			text += ": " + s.Error
		}
		out = append(out, text)
	}
	return out
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
