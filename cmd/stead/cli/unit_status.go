package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/seats"
)

func newStatus(r *reach) *cobra.Command {
	var a address
	var lines int
	var output format
	c := asks(&cobra.Command{
		Use:   "status UNIT...",
		Short: "say all that is known of a unit",
		Long: "status says how a unit stands on nodes: its state, what is declared of it, its\n" +
			"process, its files and its last log lines. The exit code is 3 when one has\n" +
			"failed, or is not as its declaration has it.",
		Example: "  stead status web\n  stead status web --lines 50 -l role=web\n  stead status reload-watcher --user -n ws1",
		Args:    someUnits,
		RunE: func(c *cobra.Command, args []string) error {
			q := seats.StatusArguments{Scope: a.scope()}
			if c.Flags().Changed("lines") {
				q.Lines = &lines
			}
			return r.tour(c, &a, gatherFor, func(ctx context.Context, t *tour) error {
				s := statusTeller{w: r.o.screen(c.OutOrStdout()), format: output, grid: gridOf(t.nodes)}
				return s.tour(ctx, t, q, args)
			})
		},
	})
	a.whereFlags(r, c)
	c.Flags().IntVar(&lines, "lines", 10, "with the last `N` log lines, 0 to 1000")
	a.scopeFlags(c)
	formatFlag(c, &output)
	complete(c, "lines", cobra.NoFileCompletions)
	c.ValidArgsFunction = r.completeUnits(&a, loadedUnits|unitFiles)
	return c
}

// someUnits wants one unit or more.
func someUnits(_ *cobra.Command, given []string) error {
	if len(given) == 0 {
		return fmt.Errorf("UNIT is missing")
	}
	return nil
}

// statusTeller writes how units stand, as the answers come.
type statusTeller struct {
	w      screen
	format format
	grid   grid
	told   bool // something was written
	bad    bool // a unit is not as it is wanted
}

func (s *statusTeller) tour(ctx context.Context, t *tour, q seats.StatusArguments, units []string) error {
	v := manager(subject.Read, seats.Status)
	for _, unit := range units {
		q.Unit = unit
		err := t.ask(ctx, v, q, func(node subject.Node, text json.RawMessage) error {
			reply, err := read[seats.StatusReply](t, v, node, text)
			if err != nil {
				return err
			}
			if err := t.keep(node, reply); err != nil {
				return err
			}
			if len(reply.Units) == 0 && len(reply.Unreadable) > 0 { // of no scope is there an answer
				b := reply.Unreadable[0]
				t.fail(t.onNode(v, node, fault.New(fault.Failed, "", unit, fmt.Errorf("scope %s: %s", b.Scope, b.Reason))))
				return nil
			}
			return s.tell(node, reply)
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
	return t.end(s.bad)
}

// tell writes the units of one answer, each in a paragraph, or as a line.
func (s *statusTeller) tell(node subject.Node, reply seats.StatusReply) error {
	for _, u := range reply.Units {
		s.bad = s.bad || unwanted(u)
	}
	if s.format.coded() {
		return nil
	}
	return flush(s.w, func(w screen) {
		if s.format == "wide" {
			s.grid.write(w, statusHead(), w.statusRows(node, reply.Units))
			return
		}
		for _, u := range reply.Units {
			if s.told {
				fmt.Fprintln(w)
			}
			s.told = true
			w.unitStatus(node, u)
		}
		for _, b := range reply.Unreadable {
			fmt.Fprintf(w, "  %s scope: %s\n", b.Scope, b.Reason)
		}
	})
}

// unwanted reports whether a unit failed, or is not as its declaration has it. One
// that is paused is as somebody wants it.
func unwanted(u seats.UnitStatus) bool {
	up := u.Active == "active" || u.Active == "activating" || u.Active == "reloading" || u.Active == "refreshing"
	if u.Active == "failed" {
		return true
	}
	if d := u.DeclaredBy; d != nil && d.Paused == nil {
		return (d.Ensure == "running" || d.Ensure == "restarted") && !up || d.Ensure == "stopped" && up
	}
	return false
}

func statusHead() []string {
	return []string{"NODE", "SCOPE", "UNIT", "LOAD", "STATE", "SINCE", "RESULT", "ENABLED", "PID", "TASKS", "MEMORY", "CPU", "RESTARTS", "DECLARED BY"}
}

func (w screen) statusRows(node subject.Node, units []seats.UnitStatus) [][]string {
	rows := make([][]string, 0, len(units))
	for _, u := range units {
		by, since := declarer(u.DeclaredBy), ""
		if u.Since != nil {
			since = w.ago(*u.Since)
		}
		rows = append(rows, []string{string(node), u.Scope, u.ID, dash(u.Load), dash(stateOf(u.Active, u.Sub)), dash(since), dash(u.Result), dash(u.Enablement),
			figure(u.MainPID), figure(u.Tasks), dash(memory(u.Memory)), dash(cpu(u.CPU)), figure(u.Restarts), dash(by)})
	}
	return rows
}

func figure[T any](n *T) string {
	if n == nil {
		return dash("")
	}
	return fmt.Sprint(*n)
}

// memory writes bytes as people do.
func memory(n *uint64) string {
	if n == nil {
		return ""
	}
	size, units := float64(*n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1024 && len(units) > 1 {
		size, units = size/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%d B", *n)
	}
	return fmt.Sprintf("%.1f %s", size, units[0])
}

// cpu writes nanoseconds of processor time.
func cpu(n *uint64) string {
	if n == nil {
		return ""
	}
	d := time.Duration(min(*n, 1<<62))
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return took(d)
}
