package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stead/host/report"
	"stead/host/shape"
	"stead/mesh/wire"
)

func newDescribe(r *reach) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "describe",
		Short: "tell all that the mesh knows of one thing",
		Long:  "describe tells all that the mesh knows of one declaration or node.",
	})
	c.AddCommand(newDescribeDeclaration(r), newDescribeNode(r))
	return c
}

func newDescribeDeclaration(r *reach) *cobra.Command {
	var output format
	var nodes []string
	c := asks(&cobra.Command{
		Use:   "declaration NAME",
		Short: "what one declaration declares, and how it stands on all its nodes",
		Long: "declaration shows what is declared under a name, who changed it last, and how\n" +
			"it stands on all its nodes, side by side; where it is not as declared, with the\n" +
			"steps that were taken, warnings and last log lines. It counts as seen: an apply\n" +
			"after it is no conflict with what it showed.",
		Example:           "  stead describe declaration web\n  stead describe declaration web -n web6",
		Args:              one("NAME"),
		ValidArgsFunction: r.completeNames(wire.Declarations),
		RunE: func(c *cobra.Command, args []string) error {
			return r.run(c.Context(), func(ctx context.Context, l *link) error {
				q := wire.GetRequest{Kind: wire.Declarations, Names: args, Content: true}
				d, reports, err := r.both(ctx, l, q, nodes...)
				if err != nil {
					return err
				}
				l.sight(ctx, c, d)
				if err := missing(q, d); err != nil {
					return err
				}
				out := r.o.screen(c.OutOrStdout())
				if output.coded() {
					return encode(out, string(output), declarationOnNodes{d.Declarations[0], reports})
				}
				return flush(out, func(w screen) { w.describeDeclaration(d.Declarations[0], reports, len(nodes) > 0) })
			})
		},
	})
	c.Flags().StringSliceVarP(&nodes, "node", "n", nil, "how it stands on `NODE` alone; may be given again")
	complete(c, "node", r.completeNames(wire.Nodes))
	formatFlag(c, &output)
	return c
}

func newDescribeNode(r *reach) *cobra.Command {
	var output format
	c := asks(&cobra.Command{
		Use:   "node NAME",
		Short: "what is known of one node, and how everything stands on it",
		Long: "node shows the facts that a node's host reported, what people set of it, which\n" +
			"revision of the mesh is in force there, and how each declaration stands.",
		Example:           "  stead describe node web1",
		Args:              one("NAME"),
		ValidArgsFunction: r.completeNames(wire.Nodes),
		RunE: func(c *cobra.Command, args []string) error {
			return r.run(c.Context(), func(ctx context.Context, l *link) error {
				q := wire.GetRequest{Kind: wire.Nodes, Nodes: args}
				n, reports, err := r.both(ctx, l, q)
				if err != nil {
					return err
				}
				if err := missing(q, n); err != nil {
					return err
				}
				out := r.o.screen(c.OutOrStdout())
				if output.coded() {
					return encode(out, string(output), nodeWithReports{n.Nodes[0], reports})
				}
				return flush(out, func(w screen) { w.describeNode(n.Nodes[0], reports) })
			})
		},
	})
	formatFlag(c, &output)
	return c
}

// declarationOnNodes and nodeWithReports are the answers for programs.
type declarationOnNodes struct {
	Declaration wire.Declaration  `json:"declaration"`
	Reports     []wire.NodeReport `json:"reports"`
}

type nodeWithReports struct {
	Node    wire.Node         `json:"node"`
	Reports []wire.NodeReport `json:"reports"`
}

// both asks for one thing, and for the reports that are of it, on nodes alone where
// some are named.
func (r *reach) both(ctx context.Context, l *link, q wire.GetRequest, nodes ...string) (wire.GetReply, []wire.NodeReport, error) {
	thing, err := r.collect(ctx, l, q)
	if err != nil {
		return thing, nil, l.explain("describe", err)
	}
	of := wire.GetRequest{Kind: wire.Reports, Names: q.Names, Nodes: append(nodes, q.Nodes...)}
	reports, err := r.collect(ctx, l, of)
	if err == nil && len(nodes) > 0 {
		err = missing(of, reports)
	}
	return thing, reports.Reports, l.explain("describe", err)
}

func (w screen) fact(label, format string, args ...any) {
	fmt.Fprintf(w, "  %-9s %s\n", label, fmt.Sprintf(format, args...))
}

// describeDeclaration tells all of one declaration; whole: of each node too, also
// where it is as declared.
func (w screen) describeDeclaration(d wire.Declaration, reports []wire.NodeReport, whole bool) {
	fmt.Fprintf(w, "● %s   declaration %s, generation %d\n", d.Unit, d.Name, d.Generation)
	w.fact("stands", "%s", stands(d.On, d.Outcomes))
	w.fact("for", "%s: %s", addressed(d), count(d.On, "node"))
	w.fact("scope", "%s", d.Scope)
	w.fact("changed", "%s by %s, revision %d", w.since(d.At), d.By, d.Revision)
	w.fact("uid", "%s", dash(d.UID))
	if text := declares(d.Canonical); text != "" {
		fmt.Fprintf(w, "  declares\n%s", text)
	}
	if len(reports) == 0 {
		return
	}
	fmt.Fprintln(w, "  nodes")
	file := strings.HasPrefix(d.Name, shape.FilePrefix) // it runs nowhere
	rows := make([][]string, 0, len(reports))
	for _, r := range reports {
		why := reason(&r.Report)
		if r.Generation != d.Generation || r.UID != d.UID {
			why = strings.TrimSuffix(fmt.Sprintf("of generation %d: %s", r.Generation, why), ": ")
		}
		row := []string{r.Node, string(r.Outcome), w.ago(r.Since)}
		if !file {
			row = append(row, dash(state(r.State)), dash(r.State.Enabled), pid(r.State))
		}
		rows = append(rows, append(row, why))
	}
	head := []string{"NODE", "OUTCOME", "SINCE", "REASON"}
	if !file {
		head = slices.Insert(head, 3, "ACTIVE", "ENABLED", "PID")
	}
	w.narrowed(4).cut(head, rows)
	table(w, "    ", head, rows)
	for i := range reports {
		w.nodeDetails(&reports[i], whole)
	}
}

// nodeDetails tells what the line of a node has no room for: of one that is not as
// declared all of it, of others what systemd warned of, or all too.
func (w screen) nodeDetails(r *wire.NodeReport, whole bool) {
	var b bytes.Buffer
	inner := screen{&b, w.now, w.narrowed(4).width}
	if r.Outcome == report.Converged && !whole {
		list(inner, "warnings", r.Warnings)
	} else {
		inner.because(&r.Report)
		if !r.Looked.IsZero() {
			inner.fact("looked", "%s", inner.since(r.Looked))
		}
		inner.happened(&r.Report)
	}
	if b.Len() == 0 {
		return
	}
	fmt.Fprintf(w, "  %s\n", r.Node)
	for line := range strings.Lines(b.String()) {
		fmt.Fprint(w, "  "+line)
	}
}

// narrowed is w with so many columns taken by an indent.
func (w screen) narrowed(by int) screen {
	if w.width > 0 {
		w.width = max(1, w.width-by)
	}
	return w
}

// declares is the canonical form for people: as YAML, behind an indent. What
// stands by default is left out of none of it.
func declares(canonical json.RawMessage) string {
	if len(canonical) == 0 {
		return ""
	}
	var indented bytes.Buffer
	text := []byte(canonical)
	if json.Indent(&indented, canonical, "", "  ") == nil {
		if y, err := asYAML(indented.Bytes()); err == nil {
			text = y
		}
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// describeNode tells all of one node.
func (w screen) describeNode(n wire.Node, reports []wire.NodeReport) {
	fmt.Fprintf(w, "● %s   %s\n", n.Name, w.nodeState(n))
	w.fact("seen", "%s", w.since(n.Seen))
	if n.Trouble != "" {
		w.fact("trouble", "%s", n.Trouble)
	}
	w.fact("labels", "%s", dash(strings.Join(settings(n), ", ")))
	w.account(n)
	if p := n.Profile; p != nil {
		w.fact("systemd", "%s", dash(p.Systemd))
		w.fact("system", "%s", strings.Join(known(p.OS, prefixed("kernel ", p.Kernel)), ", "))
		w.fact("stead", "%s, started %s", dash(p.Version), w.since(p.Started))
		w.fact("can", "%s", dash(strings.Join(p.Capabilities, ", ")))
	}
	if s := n.Source; s != nil {
		w.fact("in force", "revision %d, accepted %s", s.Revision, w.since(s.Accepted))
		if s.Trouble != "" {
			w.fact("trouble", "%s", s.Trouble)
		}
		if len(s.Kept) > 0 {
			w.fact("kept", "%s: of an epoch or mesh before; declare them again, or: stead withdraw %s", some(s.Kept), s.Kept[0])
		}
	}
	if n.By != "" {
		w.fact("changed", "%s by %s, revision %d", w.since(n.At), n.By, n.Revision)
	}
	w.fact("declared", "%s", declaredHere(n))
	for i, p := range n.Pauses {
		w.fact([]string{"paused", ""}[min(i, 1)], "%s%s until %s by %s", p.Unit, inUser(string(p.Scope)), w.when(p.Until), p.By+prefixed(": ", p.Reason))
	}
	if len(reports) == 0 {
		return
	}
	rows := make([][]string, 0, len(reports))
	for _, r := range reports {
		rows = append(rows, []string{r.Name, string(r.Unit), string(r.Scope), string(r.Outcome), w.ago(r.Since), reason(&r.Report)})
	}
	head := []string{"DECLARATION", "UNIT", "SCOPE", "OUTCOME", "SINCE", "REASON"}
	w.narrowed(4).cut(head, rows)
	table(w, "    ", head, rows)
}

// account tells what people set of a node's operator account, and how its host finds
// it.
func (w screen) account(n wire.Node) {
	w.fact("account", "%s", strings.Join(known(dash(n.Account), prefixed("linger ", n.Linger)), ", "))
	if n.Profile == nil || n.Profile.Account == nil {
		return
	}
	a := n.Profile.Account
	var parts []string
	if a.Name != n.Account {
		parts = append(parts, "still of "+a.Name)
	}
	if a.UID != 0 {
		parts = append(parts, fmt.Sprintf("uid %d", a.UID))
	}
	if a.Lingers {
		parts = append(parts, "runs without a login")
	}
	w.fact("manager", "%s", strings.Join(known(strings.Join(parts, ", "), because(a.State, a.Text)), "; "))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// declaredHere counts what is declared for a node by how it stands.
func declaredHere(n wire.Node) string {
	switch {
	case n.Declared == 0:
		return "nothing"
	case n.Outcomes[report.Converged] == n.Declared:
		return fmt.Sprintf("%d, all converged", n.Declared)
	}
	parts := []string{fmt.Sprintf("%d converged", n.Outcomes[report.Converged])}
	heard := n.Outcomes[report.Converged]
	for _, o := range outcomes() {
		if k := n.Outcomes[o]; k > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k, o))
			heard += k
		}
	}
	if rest := n.Declared - heard; rest > 0 {
		parts = append(parts, fmt.Sprintf("%d not heard of", rest))
	}
	return fmt.Sprintf("%d: %s", n.Declared, strings.Join(parts, ", "))
}
