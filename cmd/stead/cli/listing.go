package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/host/report"
	"stead/mesh/wire"
)

// got is the table of what get answered.
func (w screen) got(kind string, r wire.GetReply, wide bool) {
	var head []string
	var rows [][]string
	switch kind {
	case wire.Declarations:
		head, rows = w.declarations(r.Declarations, wide)
	case wire.Nodes:
		head, rows = w.nodes(r.Nodes, wide)
	case wire.Reports:
		head, rows = w.reports(r.Reports, wide)
	case wire.Seats:
		head, rows = w.seats(r.Seats, wide)
	case wire.Modules:
		head, rows = w.modules(r.Modules, wide)
	case wire.Holders:
		head, rows = w.holders(r.Holders)
	}
	if len(rows) == 0 {
		if len(r.Missing) == 0 {
			fmt.Fprintf(w, "no %s\n", kind)
		}
		return
	}
	if !wide {
		w.cut(head, rows)
	}
	table(w, "", head, rows)
	for _, n := range r.Nodes {
		if n.Trouble != "" {
			fmt.Fprintf(w, "%s: %s\n", n.Name, n.Trouble)
		}
		if n.Source != nil && n.Source.Trouble != "" {
			fmt.Fprintf(w, "%s does not accept what controllers tell it: %s\n", n.Name, n.Source.Trouble)
		}
	}
}

func (w screen) declarations(all []wire.Declaration, wide bool) ([]string, [][]string) {
	head := []string{"DECLARATION", "UNIT", "SCOPE", "FOR", "NODES", "CHANGED", "BY", "STANDS"}
	if wide {
		head = []string{"DECLARATION", "UNIT", "SCOPE", "FOR", "NODES", "CHANGED", "BY", "GEN", "REVISION", "SIZE", "UID", "STANDS"}
	}
	rows := make([][]string, 0, len(all))
	for _, d := range all {
		row := []string{d.Name, d.Unit, d.Scope, addressed(d), fmt.Sprint(d.On), w.ago(d.At), person(d.By)}
		if wide {
			row = append(row, fmt.Sprint(d.Generation), fmt.Sprint(d.Revision), fmt.Sprint(d.Size), d.UID)
		}
		rows = append(rows, append(row, stands(d.On, d.Outcomes)))
	}
	return head, rows
}

// addressed says for whom a declaration is.
func addressed(d wire.Declaration) string {
	switch {
	case d.All:
		return "all"
	case len(d.Labels) > 0:
		return labels(d.Labels).String()
	case d.Capability != "":
		return "capability " + d.Capability
	}
	return some(d.Nodes)
}

// person is the name in "operator alice".
func person(by string) string {
	if _, name, ok := strings.Cut(by, " "); ok {
		return name
	}
	return dash(by)
}

// stands says how something stands on a number of nodes.
func stands(nodes int, outcomes map[report.Outcome]int) string {
	a := advanceOf([]wire.ProgressOfName{{Nodes: nodes, Outcomes: outcomes}})
	if nodes > 0 && a.done() {
		return "converged"
	}
	if nodes == 0 {
		return "on no node"
	}
	return a.String()
}

func (w screen) nodes(all []wire.Node, wide bool) ([]string, [][]string) {
	head := []string{"NODE", "STATE", "SYSTEMD", "ACCOUNT", "LABELS", "DECLARED", "CONVERGED", "SEEN"}
	if wide {
		head = append(head, "REVISION", "STEAD", "OS", "KERNEL", "LINGER")
	}
	rows := make([][]string, 0, len(all))
	for _, n := range all {
		p := n.Profile
		if p == nil {
			p = &wire.Profile{}
		}
		systemd := p.Systemd
		if !wide {
			systemd = number(systemd)
		}
		row := []string{n.Name, w.nodeState(n), dash(systemd), dash(account(n)), dash(labels(n.Labels).String()),
			fmt.Sprint(n.Declared), fmt.Sprint(n.Outcomes[report.Converged]), w.ago(n.Seen)}
		if wide {
			row = append(row, dash(inForce(n)), dash(p.Version), dash(p.OS), dash(p.Kernel), dash(n.Linger))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// account is the operator account of a node, with what keeps its units back.
func account(n wire.Node) string {
	p := n.Profile
	if p == nil || p.Account == nil || p.Account.Name != n.Account || p.Account.State == wire.AccountReady {
		return n.Account
	}
	return n.Account + " (" + p.Account.State + ")"
}

// number is the first number in a version: "252" of "252.39-1", or of "v252".
func number(version string) string {
	digit := func(c rune) bool { return c >= '0' && c <= '9' }
	version = version[max(0, strings.IndexFunc(version, digit)):]
	if end := strings.IndexFunc(version, func(c rune) bool { return !digit(c) }); end >= 0 {
		version = version[:end]
	}
	return version
}

func inForce(n wire.Node) string {
	if n.Source == nil || n.Source.Revision == 0 {
		return ""
	}
	return fmt.Sprint(n.Source.Revision)
}

// nodeState is the state of a node, with the time for which it is silent.
func (w screen) nodeState(n wire.Node) string {
	if n.State == wire.Silent && !n.Seen.IsZero() {
		return n.State + " " + w.ago(n.Seen)
	}
	return n.State
}

func (w screen) reports(all []wire.NodeReport, wide bool) ([]string, [][]string) {
	head := []string{"NODE", "SCOPE", "UNIT", "DECLARATION", "OUTCOME", "SINCE", "REASON"}
	if wide {
		head = []string{"NODE", "SCOPE", "UNIT", "DECLARATION", "GEN", "LOAD", "ACTIVE", "ENABLED", "PID", "OUTCOME", "SINCE", "REASON"}
	}
	rows := make([][]string, 0, len(all))
	for _, r := range all {
		row := []string{r.Node, string(r.Scope), string(r.Unit), r.Name}
		if wide {
			row = append(row, fmt.Sprint(r.Generation), dash(string(r.State.Load)), dash(state(r.State)), dash(r.State.Enabled), pid(r.State))
		}
		rows = append(rows, append(row, string(r.Outcome), w.ago(r.Since), reason(&r.Report)))
	}
	return head, rows
}

// settings are what people set of a node, as words.
func settings(n wire.Node) []string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		parts = append(parts, key+"="+n.Labels[key])
	}
	return parts
}
