package cli

import (
	"fmt"
	"slices"
	"strings"

	"stead/mesh/wire"
)

// plans says what nodes would do. Nodes that would do the same for a declaration
// are named together.
func (w screen) plans(all []wire.NodePlan) {
	type key struct{ name, steps string }
	at := map[key]int{}
	var groups [][]wire.NodePlan
	for _, p := range all {
		k := key{p.Name, fmt.Sprintf("%q", p.Plan)}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], p)
	}
	for _, g := range groups {
		nodes := make([]string, 0, len(g))
		for _, p := range g {
			nodes = append(nodes, p.Node)
		}
		w.plan(g[0].Plan, nodes)
	}
}

func (w screen) plan(p wire.Plan, nodes []string) {
	head := fmt.Sprintf("%s on %s", p.Name, some(nodes))
	switch {
	case len(p.Steps) > 0:
		fmt.Fprintf(w, "%s (%s)\n", head, count(len(p.Steps), "step"))
	case p.Outcome == "":
		fmt.Fprintf(w, "%s: nothing to do\n", head)
	default:
		fmt.Fprintf(w, "%s: %s\n", head, p.Outcome)
	}
	w.planSteps(p.Steps)
	if p.Outcome != "" {
		fmt.Fprintf(w, "  %s: %s\n", p.Outcome, because(string(p.Reason), p.Text))
	}
	if p.Hint != "" {
		fmt.Fprintf(w, "  hint: %s\n", p.Hint)
	}
	for _, warning := range p.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", warning)
	}
}

// planSteps is one line for each step, and below it the difference of files.
func (w screen) planSteps(steps []wire.PlanStep) {
	rows := make([][]string, 0, len(steps))
	for _, s := range steps {
		rows = append(rows, []string{s.Action, s.Object, s.Reason})
	}
	wide := widths(rows)
	for i, s := range steps {
		fmt.Fprintln(w, aligned("  ", wide, rows[i]))
		for _, line := range hunks(s.Diff) {
			fmt.Fprintln(w, strings.Repeat(" ", 2+wide[0])+line)
		}
	}
}

// hunks leaves out of a unified difference what the line above it says: the names
// of the files, and where it is when it is one piece.
func hunks(diff []string) []string {
	if len(diff) > 1 && strings.HasPrefix(diff[0], "--- ") && strings.HasPrefix(diff[1], "+++ ") {
		diff = diff[2:]
	}
	pieces := 0
	for _, line := range diff {
		if strings.HasPrefix(line, "@@ ") {
			pieces++
		}
	}
	if pieces == 1 && strings.HasPrefix(diff[0], "@@ ") {
		diff = diff[1:]
	}
	return diff
}

// silentPlans are the nodes of a dry run that gave no answer.
func silentPlans(r wire.ChangeReply) bool { return len(r.Unplanned) > 0 }

// planSummary is the last line of a dry run.
func planSummary(r wire.ChangeReply, done string) string {
	would := 0
	for _, c := range r.Changes {
		if c.How != wire.Unchanged {
			would++
		}
	}
	if would == 0 {
		return fmt.Sprintf("nothing would change; revision %d", r.Revision)
	}
	text := count(would, "declaration") + " would " + done
	var nodes []string
	for _, p := range r.Plans {
		if len(p.Steps) > 0 && !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	if len(nodes) > 0 {
		text += ", with steps on " + count(len(nodes), "node")
	}
	return text + "; nothing was done"
}
