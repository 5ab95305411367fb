package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"stead/mesh/subject"
	"stead/seats"
)

func newEnable(r *reach) *cobra.Command {
	return r.enabling(seats.Enable, &cobra.Command{
		Use:   "enable UNIT...",
		Short: "let units be started at boot on nodes",
		Long: "enable makes the links with which a unit is started at boot, as its [Install]\n" +
			"section asks for them; with --now it is started too.",
		Example: "  stead enable backup.timer --now -n ws1",
	})
}

func newDisable(r *reach) *cobra.Command {
	return r.enabling(seats.Disable, &cobra.Command{
		Use:   "disable UNIT...",
		Short: "let units not be started at boot on nodes",
		Long: "disable removes the links with which a unit is started at boot; with --now it is\n" +
			"stopped too.",
		Example: "  stead disable backup.timer --now -n ws1",
	})
}

// enabling makes c change the links of units.
func (r *reach) enabling(verb subject.Verb, c *cobra.Command) *cobra.Command {
	var a address
	var now bool
	var output format
	asks(c)
	a.whereFlags(r, c)
	c.Flags().BoolVar(&now, "now", false, map[bool]string{true: "start them too", false: "stop them too"}[verb == seats.Enable])
	a.scopeFlags(c)
	formatFlag(c, &output)
	c.Args = someUnits
	c.ValidArgsFunction = r.completeUnits(&a, unitFiles)
	c.RunE = func(c *cobra.Command, args []string) error {
		return r.tour(c, &a, jobFor+jobMargin, func(ctx context.Context, t *tour) error {
			s := linkTeller{w: r.o.screen(c.OutOrStdout()), log: c.ErrOrStderr(), of: deeds()[verb], format: output}
			return s.tour(ctx, t, seats.EnableArguments{Now: now, Scope: a.scope()}, args)
		})
	}
	return c
}

// linkTeller writes which links changed, as the answers come.
type linkTeller struct {
	w      screen
	log    io.Writer
	of     deed
	format format
}

func (s linkTeller) tour(ctx context.Context, t *tour, q seats.EnableArguments, units []string) error {
	v := manager(subject.Write, s.of.verb)
	for _, unit := range units {
		q.Unit = unit
		err := t.ask(ctx, v, q, func(node subject.Node, text json.RawMessage) error {
			reply, err := read[seats.EnableReply](t, v, node, text)
			if err != nil {
				return err
			}
			if err := s.tell(t, node, reply); err != nil {
				return err
			}
			return t.keep(node, reply)
		})
		if err != nil {
			return err
		}
	}
	if s.format.coded() {
		if err := t.coded(s.w, s.format); err != nil {
			return err
		}
	}
	return t.end(false)
}

func (s linkTeller) tell(t *tour, node subject.Node, reply seats.EnableReply) error {
	if !s.format.coded() {
		if err := flush(s.w, func(w screen) { w.linked(s.of, node, reply) }); err != nil {
			return err
		}
	}
	if reply.NoInstall {
		warn(s.log, []string{fmt.Sprintf("%s on %s: its [Install] section asks for no link; it is started by what wants it", reply.Unit, string(node)+inUser(reply.Scope))})
	}
	warn(s.log, reply.Passed)
	noted(s.log, s.of, reply.Note, about{reply.Unit, node, reply.Scope, reply.DeclaredBy})
	if reply.Acted == nil {
		return nil
	}
	job := seats.Stop
	if s.of.verb == seats.Enable {
		job = seats.Start
	}
	return actTeller{s.w, s.log, deeds()[job], s.format}.tell(t, node, *reply.Acted)
}

// linked says which links of a unit changed.
func (w screen) linked(of deed, node subject.Node, r seats.EnableReply) {
	where := string(node) + inUser(r.Scope)
	if len(r.Made)+len(r.Removed) == 0 {
		fmt.Fprintf(w, "%s %s on %s: no link changed\n", of.done, r.Unit, where)
		return
	}
	fmt.Fprintf(w, "%s %s on %s\n", of.done, r.Unit, where)
	var rows [][]string
	for _, l := range r.Made {
		rows = append(rows, []string{"made", l.Path + " → " + l.To})
	}
	for _, path := range r.Removed {
		rows = append(rows, []string{"removed", path})
	}
	table(w, "  ", nil, rows)
}
