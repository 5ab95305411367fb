package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stead/mesh/subject"
	"stead/seats"
)

// unitsOptions are the flags of units.
type unitsOptions struct {
	address
	q      seats.UnitsArguments
	failed bool
	output format
}

func newUnits(r *reach) *cobra.Command {
	var o unitsOptions
	c := asks(&cobra.Command{
		Use:   "units [PATTERN]...",
		Short: "list the units of nodes",
		Long: "units lists the units of nodes, and which declaration each of them is of.\n" +
			"PATTERN is a glob over their names. Without -a those are left out that are\n" +
			"loaded, inactive and not declared, as systemctl does.",
		Example: "  stead units --failed --all\n  stead units 'web*' -n web1 -n web2\n  stead units -t timer -a -l role=web\n  stead units --files --state enabled -n web1",
		RunE:    func(c *cobra.Command, args []string) error { return r.units(c, args, o) },
	})
	o.whereFlags(r, c)
	f := c.Flags()
	f.StringSliceVarP(&o.q.Types, "type", "t", nil, "only of `TYPE`, such as service or timer; may be given again")
	f.StringSliceVar(&o.q.States, "state", nil, "only in `STATE`: a load, active or sub state; may be given again")
	f.BoolVar(&o.failed, "failed", false, "only those that failed: --state failed")
	f.BoolVarP(&o.q.All, "inactive", "a", false, "also those that are inactive or not found")
	f.BoolVar(&o.q.Files, "files", false, "unit files in place of units")
	f.BoolVar(&o.q.Declared, "declared", false, "only those that a declaration is of")
	o.scopeFlags(c)
	formatFlag(c, &o.output)
	complete(c, "type", cobra.FixedCompletions(unitTypes(), cobra.ShellCompDirectiveNoFileComp))
	complete(c, "state", cobra.NoFileCompletions)
	c.ValidArgsFunction = r.completeUnits(&o.address, loadedUnits)
	return c
}

func unitTypes() []string {
	return []string{"automount", "device", "mount", "path", "scope", "service", "slice", "socket", "swap", "target", "timer"}
}

func (r *reach) units(c *cobra.Command, patterns []string, o unitsOptions) error {
	q := o.q
	q.Patterns, q.Scope = patterns, o.scope()
	if o.failed {
		q.States = append(q.States, "failed")
	}
	q.Details = !q.Files && (o.failed || o.output == "wide")
	return r.tour(c, &o.address, gatherFor, func(ctx context.Context, t *tour) error {
		lister := unitLister{w: r.o.screen(c.OutOrStdout()), o: o, on: map[subject.Node]int{}, blind: map[string][]string{}, grid: gridOf(t.nodes)}
		if err := lister.collect(ctx, t, q); err != nil {
			return err
		}
		return lister.end(t)
	})
}

// unitLister writes units as they come, in columns that only grow.
type unitLister struct {
	w       screen
	o       unitsOptions
	grid    grid
	on      map[subject.Node]int // how many units were listed of it
	units   int
	replies []unitsOf
	blind   map[string][]string // why a scope was not read → nodes
	reasons []string
}

// unitsOf is all that one node answered, in pages.
type unitsOf struct {
	node  subject.Node
	reply seats.UnitsReply
}

// collect asks every node, and then those for more that have more.
func (u *unitLister) collect(ctx context.Context, t *tour, q seats.UnitsArguments) error {
	v := manager(subject.Read, seats.Units)
	var last seats.UnitsReply
	take := func(node subject.Node, text json.RawMessage) error {
		reply, err := read[seats.UnitsReply](t, v, node, text)
		if err != nil {
			return err
		}
		last = reply
		u.replies = append(u.replies, unitsOf{node, reply})
		return u.tell(node, reply)
	}
	if err := t.ask(ctx, v, q, take); err != nil {
		return err
	}
	for i := range u.replies {
		one := u.replies[i]
		for more, cursor := one.reply.More, one.reply.Cursor; more; more, cursor = last.More, last.Cursor {
			q.Cursor, last = cursor, seats.UnitsReply{}
			if err := t.again(ctx, v, one.node, q, take); err != nil {
				return err
			}
			if last.More && last.Cursor == cursor {
				return t.onNode(v, one.node, fmt.Errorf("the page behind %q leads to itself", cursor))
			}
		}
	}
	return u.keep(t)
}

// keep puts the pages of each node together, for -o json.
func (u *unitLister) keep(t *tour) error {
	whole := map[subject.Node]*seats.UnitsReply{}
	var order []subject.Node
	for _, p := range u.replies {
		if whole[p.node] == nil {
			whole[p.node] = &seats.UnitsReply{Units: []seats.UnitLine{}, Unreadable: p.reply.Unreadable}
			order = append(order, p.node)
		}
		whole[p.node].Units = append(whole[p.node].Units, p.reply.Units...)
	}
	for _, node := range order {
		if err := t.keep(node, whole[node]); err != nil {
			return err
		}
	}
	return nil
}

// tell writes one page.
func (u *unitLister) tell(node subject.Node, reply seats.UnitsReply) error {
	u.on[node] += len(reply.Units)
	u.units += len(reply.Units)
	for _, s := range reply.Unreadable {
		why := "scope " + s.Scope + ": " + s.Reason
		if u.blind[why] == nil {
			u.reasons = append(u.reasons, why)
		}
		if !slices.Contains(u.blind[why], string(node)) { // it is said on every page
			u.blind[why] = append(u.blind[why], string(node))
		}
	}
	if u.o.output.coded() || len(reply.Units) == 0 {
		return nil
	}
	return flush(u.w, func(w screen) {
		head, rows := unitHead(u.o), w.unitRows(node, reply.Units, u.o)
		if u.o.output != "wide" {
			u.grid.narrow(w.width, head, rows)
		}
		u.grid.write(w, head, rows)
	})
}

// end is the last line: what was listed, on how many nodes, who was silent.
func (u *unitLister) end(t *tour) error {
	switch {
	case u.o.output.coded():
		if err := t.coded(u.w, u.o.output); err != nil {
			return err
		}
	case len(u.on) == 0 || u.units == 0 && u.o.user && u.reasons != nil: // errors say it
	default:
		if err := flush(u.w, func(w screen) { u.summary(w, len(t.nodes), t.unheard()) }); err != nil {
			return err
		}
	}
	for _, why := range u.reasons {
		if u.o.user { // it alone was asked for
			t.told = true
			fmt.Fprintf(t.log, "error: units on %s: %s\n", some(u.blind[why]), why)
		}
	}
	if len(u.on) > 0 && t.silent != nil && !u.o.output.coded() && !t.told { // the summary names them
		return t.verdict(false)
	}
	return t.end(false)
}

func (u *unitLister) summary(w io.Writer, asked int, unheard []string) {
	what, on := "unit", 0
	for _, n := range u.on {
		if n > 0 {
			on++
		}
	}
	line := count(u.units, what)
	if u.o.failed {
		line = fmt.Sprintf("%d failed", u.units)
	}
	if u.o.q.Files {
		line = count(u.units, "unit file")
	}
	parts := []string{fmt.Sprintf("%s on %d of %s", line, on, count(asked, "node"))}
	parts = append(parts, unheard...)
	if !u.o.user {
		parts = append(parts, u.reasons...)
	}
	fmt.Fprintln(w, strings.Join(parts, " · "))
}
