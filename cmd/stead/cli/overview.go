package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"stead/host"
	"stead/host/report"
)

// The reason in the narrow table is cut where the terminal ends, in columns, and
// at reasonWidth where there is none; at least reasonLeast are left of it. The
// wide table and the description have all of it.
const (
	reasonWidth = 100
	reasonLeast = 24
)

// source says what is the matter with the folder of declarations or the mesh, if
// anything is. Reported says that something is in force all the same.
func (w screen) source(s host.Source, reported bool) {
	said := false
	line := func(label, text string) {
		said = true
		fmt.Fprintf(w, "%-10s %s\n", label, text)
	}
	if s.Trouble != "" {
		line(from(s))
		line("trouble", s.Trouble)
		for _, p := range s.Problems {
			line("", p)
		}
		line("in force", w.inForce(s, reported))
	}
	if len(s.Kept) > 0 {
		line("kept", some(s.Kept))
		line("", keptBecause(s))
	}
	for _, text := range s.Warnings {
		line("warning", text)
	}
	if said {
		fmt.Fprintln(w)
	}
}

// from names where the declarations come from.
func from(s host.Source) (label, text string) {
	if s.Mesh == nil {
		return "folder", s.Folder
	}
	return "mesh", cmp.Or(s.Mesh.Mesh, "by the credentials in "+s.Mesh.Credentials)
}

func (w screen) inForce(s host.Source, reported bool) string {
	switch {
	case !s.Accepted.IsZero():
		return "what was accepted at " + w.when(s.Accepted)
	case reported && len(s.Kept) == 0:
		return "what was accepted before this host started"
	case s.Mesh == nil && reported:
		return "what is kept of before: no reading was accepted yet"
	case s.Mesh == nil:
		return "nothing: no reading was accepted yet"
	case len(s.Kept) > 0:
		return "what is kept of before: nothing of the mesh was accepted yet"
	}
	return "nothing: nothing of the mesh was accepted yet"
}

// keptBecause says what the names that are kept are, and the cure.
func keptBecause(s host.Source) string {
	if s.Mesh == nil {
		return "a mesh declared them, and the folder does not: to have them withdrawn, declare them in it, and take them out again"
	}
	return "in force, and not of this epoch of the mesh: declare them again, or: stead withdraw NAME"
}

// membership is one line on how it stands with the mesh.
func (w screen) membership(m host.Membership) {
	text := "no connection to the mesh"
	if m.Connected {
		text = "connected to the mesh"
	}
	if !m.Since.IsZero() {
		text += " since " + w.when(m.Since)
	}
	if m.Revision > 0 {
		text += fmt.Sprintf(", revision %d in force", m.Revision)
	}
	if m.Events > 0 {
		text += ", " + count(m.Events, "event") + " to be sent"
	}
	fmt.Fprintln(w, text)
}

// overview is one line for each declaration, and one for all.
func (w screen) overview(st host.Status, wide bool) {
	if m := st.Source.Mesh; m != nil {
		defer w.membership(*m)
	}
	if len(st.Reports) == 0 {
		switch {
		case !st.Source.Read.IsZero():
			fmt.Fprintln(w, "nothing is declared on this machine")
		case st.Source.Mesh != nil:
			fmt.Fprintln(w, "no controller has answered yet")
		default:
			fmt.Fprintf(w, "%s has not been read yet\n", st.Source.Folder)
		}
		return
	}
	head, row := []string{"UNIT", "DECLARATION", "OUTCOME", "SINCE", "REASON"}, w.narrowRow
	if wide {
		head, row = []string{"UNIT", "DECLARATION", "GEN", "SCOPE", "LOAD", "ACTIVE", "ENABLED", "PID", "OUTCOME", "SINCE", "REASON"}, w.wideRow
	}
	rows := make([][]string, 0, len(st.Reports))
	for _, r := range st.Reports {
		rows = append(rows, row(r))
	}
	if !wide {
		w.cut(head, rows)
	}
	table(w, "", head, rows)
	fmt.Fprintln(w, tally(st.Reports))
	if st.Source.Taking {
		label, _ := from(st.Source)
		fmt.Fprintf(w, "the %s was changed, and is being taken over\n", label)
	}
	if gone := st.Source.Leaving; len(gone) > 0 {
		fmt.Fprintf(w, "gone from the folder, and about to be withdrawn: %s\n", some(gone))
	}
}

func (w screen) narrowRow(r *report.Report) []string {
	return []string{string(r.Unit), r.Name, string(r.Outcome), w.ago(r.Since), reason(r)}
}

// some names the first few.
func some(names []string) string {
	const most = 6
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// cut shortens the last column to what the screen has room for.
func (w screen) cut(head []string, rows [][]string) {
	room, last := reasonWidth, len(head)-1
	if w.width > 0 {
		room = max(w.width-sum(widths(append(rows, head))[:last]), reasonLeast)
	}
	for _, r := range rows {
		r[last] = text.Snip(r[last], room, "…")
	}
}

func (w screen) wideRow(r *report.Report) []string {
	return []string{string(r.Unit), r.Name, fmt.Sprint(r.Generation), string(r.Scope), dash(string(r.State.Load)), dash(state(r.State)),
		dash(r.State.Enabled), pid(r.State), string(r.Outcome), w.ago(r.Since), reason(r)}
}

// tally counts the outcomes.
func tally(reports []*report.Report) string {
	n := map[report.Outcome]int{}
	for _, r := range reports {
		n[r.Outcome]++
	}
	switch {
	case n[report.Converged] < len(reports):
	case len(reports) == 1:
		return "1 declared, converged"
	default:
		return fmt.Sprintf("%d declared, all converged", len(reports))
	}
	var parts []string
	for _, o := range []report.Outcome{report.Failed, report.Refused, report.Contested, report.Waiting, report.Paused, report.Converged} {
		if n[o] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
		}
	}
	return fmt.Sprintf("%d declared: %s", len(reports), strings.Join(parts, ", "))
}

// reason says why a report is as it is.
func reason(r *report.Report) string { return because(string(r.Reason), r.Text) }

// because joins the code of a reason with its sentence, unless that begins with
// the same words.
func because(code, sentence string) string {
	switch {
	case sentence == "":
		return code
	case code == "" || strings.HasPrefix(sentence, code) || strings.HasPrefix(sentence, strings.ReplaceAll(code, "-", " ")):
		return sentence
	}
	return code + ": " + sentence
}

func state(s report.State) string {
	if s.Active == "" {
		return ""
	}
	return fmt.Sprintf("%s (%s)", s.Active, s.Sub)
}

func pid(s report.State) string {
	if s.MainPID == 0 {
		return dash("")
	}
	return fmt.Sprint(s.MainPID)
}

// dash stands for what there is not.
func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
