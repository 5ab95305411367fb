package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

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
	if why := reason(r); why != "" {
		line("reason", "%s", why)
	}
	if !r.Retry.IsZero() {
		line("retry", "at %s", w.when(r.Retry))
	}
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
	table(w, "    ", nil, rows)
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
