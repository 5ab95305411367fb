package cli

import (
	"fmt"
	"io"

	"stead/mesh/subject"
	"stead/seats"
)

func unitHead(o unitsOptions) []string {
	switch {
	case o.q.Files:
		return []string{"NODE", "SCOPE", "UNIT FILE", "STATE", "PRESET", "DECLARED BY"}
	case o.output == "wide":
		return []string{"NODE", "SCOPE", "UNIT", "LOAD", "STATE", "SINCE", "RESULT", "ENABLED", "DECLARED BY", "GEN", "ENSURES", "DESCRIPTION"}
	case o.failed:
		return []string{"NODE", "SCOPE", "UNIT", "STATE", "SINCE", "RESULT", "DECLARED BY"}
	}
	return []string{"NODE", "SCOPE", "UNIT", "STATE", "ENABLED", "DECLARED BY"}
}

func (w screen) unitRows(node subject.Node, units []seats.UnitLine, o unitsOptions) [][]string {
	rows := make([][]string, 0, len(units))
	for _, u := range units {
		row := []string{string(node), u.Scope, u.Name}
		by, since := seats.DeclaredBy{}, ""
		if u.Since != nil {
			since = w.ago(*u.Since)
		}
		if u.DeclaredBy != nil {
			by = *u.DeclaredBy
		}
		switch {
		case o.q.Files:
			row = append(row, dash(u.Enablement), dash(u.Preset), dash(declarer(u.DeclaredBy)))
		case o.output == "wide":
			generation := ""
			if by.Generation > 0 {
				generation = fmt.Sprint(by.Generation)
			}
			row = append(row, dash(u.Load), dash(stateOf(u.Active, u.Sub)), dash(since), dash(u.Result), dash(u.Enablement), dash(declarer(u.DeclaredBy)), dash(generation), dash(by.Ensure), u.Description)
		case o.failed:
			row = append(row, dash(loaded(u)), dash(since), dash(u.Result), dash(declarer(u.DeclaredBy)))
		default:
			row = append(row, dash(loaded(u)), dash(u.Enablement), dash(declarer(u.DeclaredBy)))
		}
		rows = append(rows, row)
	}
	return rows
}

// loaded is the state of a unit, or why it is not loaded.
func loaded(u seats.UnitLine) string {
	if u.Load != "" && u.Load != "loaded" {
		return u.Load
	}
	return stateOf(u.Active, u.Sub)
}

// stateOf is active and sub state, the latter where it says more.
func stateOf(active, sub string) string {
	if sub == "" || sub == active {
		return active
	}
	return fmt.Sprintf("%s (%s)", active, sub)
}

// grid is a table that is written in parts, in columns that only grow.
type grid struct {
	wide   []int
	headed bool
}

// gridOf leaves room in the first column for every node, and in the others for
// what mostly stands there, when there are several.
func gridOf(nodes []subject.Node) grid {
	if len(nodes) < 2 {
		return grid{}
	}
	wide := []int{0, len("system") + gap, len("systemd-networkd.service") + gap}
	for _, n := range nodes {
		wide[0] = max(wide[0], len(n)+gap)
	}
	return grid{wide: wide}
}

const (
	// nameColumn is where names of units stand, and nameLeast how much of one is
	// shown on the narrowest terminal.
	nameColumn = 2
	nameLeast  = 24
)

// narrow takes the middle out of names that keep lines from fitting a terminal of
// so many columns.
func (g *grid) narrow(columns int, head []string, rows [][]string) {
	if columns == 0 {
		return
	}
	wide := widths(append([][]string{head}, rows...))
	for i, n := range g.wide {
		if i != nameColumn {
			wide[i] = max(wide[i], n)
		}
	}
	room := max(columns-sum(wide)+wide[nameColumn], nameLeast)
	for _, r := range rows {
		if name := r[nameColumn]; len(name) > room { // names of units are ASCII
			tail := (room - 1) * 2 / 3
			r[nameColumn] = name[:room-1-tail] + "…" + name[len(name)-tail:]
		}
	}
}

func (g *grid) write(w io.Writer, head []string, rows [][]string) {
	all := rows
	if head != nil && !g.headed {
		g.headed = true
		all = append([][]string{head}, rows...)
	}
	for i, n := range widths(all) {
		if i == len(g.wide) {
			g.wide = append(g.wide, 0)
		}
		g.wide[i] = max(g.wide[i], n)
	}
	for _, row := range all {
		fmt.Fprintln(w, aligned("", g.wide, row))
	}
}
