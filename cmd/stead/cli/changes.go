package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/wire"
)

// manyAlike is how many changes of one kind in one file are still listed one by
// one.
const manyAlike = 20

// changes is one line for each declaration that an operation concerns. Those of
// a file that stay as they are, and many of one kind, share a line.
func (w screen) changes(all []wire.Change) {
	var rows [][]string
	for _, g := range groupsOf(all) {
		if n := len(g); n > 1 && (g[0].How == wire.Unchanged || n > manyAlike) {
			rows = append(rows, []string{g[0].Origin.File, count(n, "declaration"), "", g[0].How, ""})
			continue
		}
		for _, c := range g {
			on := c.Nodes
			if c.How == wire.Gone {
				on = c.Loses
			}
			rows = append(rows, []string{c.Origin.File, c.Name, count(on, "node"), c.How, differs(c)})
		}
	}
	table(w, "", nil, withoutEmpty(rows))
}

// groupsOf are the changes of one kind in one file, in the order in which their
// first ones come.
func groupsOf(all []wire.Change) [][]wire.Change {
	type key struct{ file, how string }
	at := map[key]int{}
	var groups [][]wire.Change
	for _, c := range all {
		k := key{c.Origin.File, c.How}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// differs says in what a changed declaration differs, and where it comes and
// goes.
func differs(c wire.Change) string {
	parts := slices.Clone(c.Fields)
	if c.How == wire.Edited || c.How == wire.Moved {
		if c.Gains > 0 {
			parts = append(parts, fmt.Sprintf("comes to %d", c.Gains))
		}
		if c.Loses > 0 {
			parts = append(parts, fmt.Sprintf("leaves %d", c.Loses))
		}
	}
	return strings.Join(parts, ", ")
}

// withoutEmpty leaves out columns in which nothing stands.
func withoutEmpty(rows [][]string) [][]string {
	used := map[int]bool{}
	for _, row := range rows {
		for i, cell := range row {
			used[i] = used[i] || cell != ""
		}
	}
	out := make([][]string, len(rows))
	for r, row := range rows {
		for i, cell := range row {
			if used[i] {
				out[r] = append(out[r], cell)
			}
		}
	}
	return out
}

// changed reports whether an operation changes anything.
func changed(all []wire.Change) bool {
	return slices.ContainsFunc(all, func(c wire.Change) bool { return c.How != wire.Unchanged })
}

// refusal is the answer to an operation that a rule, somebody else's change, or
// its size held up. It is shown whole, not in one line.
type refusal struct {
	reply wire.ChangeReply
	w     screen // its clock
	kept  string // what follows from it: "nothing was applied"
}

// held is the refusal in a reply, nil when there is none.
func (w screen) refusal(r wire.ChangeReply, kept string) error {
	if len(r.Problems) == 0 && len(r.Conflicts) == 0 && r.Sure == "" {
		return nil
	}
	return refusal{r, w, kept}
}

// Error implements error.
func (r refusal) Error() string {
	switch {
	case len(r.reply.Problems) > 0:
		return r.reply.Problems.Error()
	case len(r.reply.Conflicts) > 0:
		return fmt.Sprintf("%s changed by others", count(len(r.reply.Conflicts), "declaration"))
	}
	return r.reply.Sure
}

// complain writes everything that holds the operation up, with its cures.
func (r refusal) complain(out io.Writer) {
	to := r.w
	to.Writer = out
	if len(r.reply.Problems) > 0 {
		to.problems(r.reply.Problems, r.kept)
	}
	if len(r.reply.Conflicts) > 0 {
		to.conflicts(r.reply.Conflicts, r.kept)
	}
	if r.reply.Sure != "" {
		fmt.Fprintf(out, "error: this takes much away, %s\n", r.kept)
		for line := range strings.Lines(r.reply.Sure) {
			fmt.Fprintf(out, "  %s\n", strings.TrimSpace(line))
		}
		fmt.Fprintln(out, "hint: the same command with --yes does it")
	}
}

// problems writes every problem. Those of no file are of what the command line
// names.
func (w screen) problems(all shape.Problems, kept string) {
	if slices.ContainsFunc(all, func(p shape.Problem) bool { return p.File != "" }) {
		fmt.Fprint(w, "error: ")
		// The terminal that cannot be written to has no other place to say so.
		_ = all.Format(w, kept)
		return
	}
	for _, p := range all {
		text := p.Rule
		if p.Path != "" {
			text = p.Path + ": " + text
		}
		fmt.Fprintf(w, "error: %s\n", text)
		if p.Cure != "" {
			fmt.Fprintf(w, "hint: %s\n", p.Cure)
		}
	}
}

// conflicts says who changed what, and how to go on.
func (w screen) conflicts(all []wire.Conflict, kept string) {
	was := "were"
	if len(all) == 1 {
		was = "was"
	}
	fmt.Fprintf(w, "error: %s %s changed by others since they were last seen here, %s\n", count(len(all), "declaration"), was, kept)
	rows := make([][]string, 0, len(all))
	for _, c := range all {
		rows = append(rows, []string{c.Name, c.How, "by " + c.By, w.since(c.At), yours(c)})
	}
	table(w, "  ", nil, rows)
	fmt.Fprintf(w, "hint: stead describe declaration %s shows it as it is now; after that the same command goes through, or at once with --force\n", all[0].Name)
}

func yours(c wire.Conflict) string {
	if len(c.Fields) == 0 {
		return ""
	}
	return "differs in " + strings.Join(c.Fields, ", ")
}

// textFault is the refusal of files that no controller had to see.
func (w screen) textFault(err error, kept string) error {
	var p shape.Problems
	if !errors.As(err, &p) {
		return err
	}
	return w.refusal(wire.ChangeReply{Problems: p}, kept)
}

// unplanned are the nodes that did not say what they would do, with the reason.
func (w screen) unplanned(of map[string]string) {
	for _, node := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(w, "no plan from %s: %s\n", node, of[node])
	}
}

// unknown is the error of a name that the mesh does not know.
func unknown(what, name, closest, command string) *fault.Error {
	f := fault.New(fault.NotFound, "", "", fmt.Errorf("no %s is called %q", what, name))
	if closest != "" {
		return f.WithHint("did you mean " + closest + "? " + command + " " + closest)
	}
	return f.WithHint("stead get " + what + "s")
}
