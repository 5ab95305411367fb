package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/seats"
)

// deed is one of the verbs that ask for a job.
type deed struct {
	verb subject.Verb
	done string // "stopped"
	// kept is how what was done is called while it stays so, and declare what has it
	// so for good, when a declaration contradicts it.
	kept, declare string
}

// deeds are start, stop and restart.
func deeds() map[subject.Verb]deed {
	return map[subject.Verb]deed{
		seats.Start:   {seats.Start, "started", "running", "ensure: running"},
		seats.Stop:    {seats.Stop, "stopped", "stopped", "ensure: stopped"},
		seats.Restart: {seats.Restart, "restarted", "running", "ensure: running"},
		seats.Enable:  {seats.Enable, "enabled", "enabled", "enabled: true"},
		seats.Disable: {seats.Disable, "disabled", "disabled", "enabled: false"},
	}
}

func newStart(r *reach) *cobra.Command {
	return r.act(seats.Start, &cobra.Command{
		Use:   "start UNIT...",
		Short: "start units on nodes",
		Long: "start starts units, and waits for systemd's word of how that ended. UNIT is a\n" +
			"name, or a glob over loaded units.",
		Example: "  stead start backup -n ws1\n  stead start web --all --no-block\n  stead start reload-watcher --user -n ws1",
	})
}

func newStop(r *reach) *cobra.Command {
	return r.act(seats.Stop, &cobra.Command{
		Use:   "stop UNIT...",
		Short: "stop units on nodes",
		Long: "stop stops units, and waits for systemd's word of how that ended. UNIT is a\n" +
			"name, or a glob over loaded units. What the mesh declares to run is started\n" +
			"again by the host.",
		Example: "  stead stop web -n web1\n  stead stop 'worker@*' -n web1 --yes",
	})
}

func newRestart(r *reach) *cobra.Command {
	return r.act(seats.Restart, &cobra.Command{
		Use:   "restart UNIT...",
		Short: "restart units on nodes",
		Long: "restart restarts units, and waits for systemd's word of how that ended. UNIT is\n" +
			"a name, or a glob over loaded units.",
		Example: "  stead restart web -l role=web\n  stead restart web -n web1 --timeout 5m",
	})
}

// act makes c ask for the jobs of a verb.
func (r *reach) act(verb subject.Verb, c *cobra.Command) *cobra.Command {
	var a address
	var noBlock, yes bool
	var output format
	asks(c)
	a.whereFlags(r, c)
	c.Flags().BoolVar(&noBlock, "no-block", false, "do not wait for the end of the jobs")
	c.Flags().BoolVar(&yes, "yes", false, "agree that a glob acts on more than ten units")
	a.scopeFlags(c)
	formatFlag(c, &output)
	c.Args = someUnits
	c.ValidArgsFunction = r.completeUnits(&a, loadedUnits)
	if verb == seats.Start {
		c.ValidArgsFunction = r.completeUnits(&a, loadedUnits|unitFiles)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q := seats.ActArguments{Yes: yes, Scope: a.scope()}
		if noBlock {
			wait := false
			q.Wait = &wait
		}
		return r.tour(c, &a, jobFor, func(ctx context.Context, t *tour) error {
			if c.Flags().Changed("timeout") {
				q.Timeout = t.limit.String()
			}
			t.limit += jobMargin
			s := actTeller{w: r.o.screen(c.OutOrStdout()), log: c.ErrOrStderr(), of: deeds()[verb], format: output}
			return s.tour(ctx, t, q, args)
		})
	}
	return c
}

// actTeller writes what became of units, as the answers come.
type actTeller struct {
	w      screen
	log    io.Writer
	of     deed
	format format
}

func (s actTeller) tour(ctx context.Context, t *tour, q seats.ActArguments, units []string) error {
	v := manager(subject.Write, s.of.verb)
	for _, unit := range units {
		q.Unit = unit
		err := t.ask(ctx, v, q, func(node subject.Node, text json.RawMessage) error {
			reply, err := read[seats.ActReply](t, v, node, text)
			if err != nil {
				return err
			}
			for _, a := range reply.Units {
				if err := s.tell(t, node, a); err != nil {
					return err
				}
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

// tell writes what became of one unit: the answer, or the error, and in each case
// what will undo it.
func (s actTeller) tell(t *tour, node subject.Node, a seats.Acted) error {
	if err := unsettled(s.of, node, a); err != nil {
		t.fail(err)
	} else if !s.format.coded() {
		if err := flush(s.w, func(w screen) { w.acted(s.of, node, a) }); err != nil {
			return err
		}
	}
	noted(s.log, s.of, a.Note, about{a.Unit, node, a.Scope, a.DeclaredBy})
	return nil
}

// unsettled is the error of an act that did not come to its end.
func unsettled(of deed, node subject.Node, a seats.Acted) error {
	why := a.Error
	switch a.Result {
	case "done", "queued", "skipped":
	case "":
		why = cmp.Or(why, "there was no job")
	default:
		why = cmp.Or(why, "its job ended with result "+a.Result)
	}
	if why == "" {
		return nil
	}
	if now := stateOf(a.After.Active, a.After.Sub); now != "" {
		why += "; it is " + now
	}
	return fault.New(fault.Failed, fmt.Sprintf("%s %s on %s%s", of.verb, a.Unit, node, inUser(a.Scope)), "", errors.New(why)).
		WithHint(fmt.Sprintf("stead status %s -n %s%s", a.Unit, node, userFlag(a.Scope)))
}

func userFlag(scope string) string {
	if scope == "user" {
		return " --user"
	}
	return ""
}

// inUser stands behind the node of what is of user scope.
func inUser(scope string) string {
	if scope == "user" {
		return ", user scope"
	}
	return ""
}

// about is the unit that was acted on.
type about struct {
	unit  string
	node  subject.Node
	scope string
	by    *seats.DeclaredBy
}

// noted writes what will undo an act, and how it is kept.
func noted(log io.Writer, of deed, note string, u about) {
	if note == "" {
		return
	}
	fmt.Fprintf(log, "note: %s\n", note)
	if u.by == nil || u.by.Paused != nil {
		return
	}
	fmt.Fprintf(log, "hint: to keep it %s for a while: stead pause %s -n %s%s --for 30m; for good: %s, or stead withdraw %s\n",
		of.kept, u.unit, u.node, userFlag(u.scope), of.declare, u.by.Name)
}

// acted is the line of a unit that was acted on.
func (w screen) acted(of deed, node subject.Node, a seats.Acted) {
	where := string(node) + inUser(a.Scope)
	switch a.Result {
	case "queued":
		fmt.Fprintf(w, "%s of %s on %s is queued (it is %s)\n", of.verb, a.Unit, where, stateOf(a.After.Active, a.After.Sub))
		return
	case "skipped":
		fmt.Fprintf(w, "%s of %s on %s was skipped by systemd (it is %s)\n", of.verb, a.Unit, where, stateOf(a.After.Active, a.After.Sub))
		return
	}
	change := a.Before.Active + " → " + a.After.Active
	if a.Before.Active == a.After.Active {
		change = stateOf(a.After.Active, a.After.Sub)
	}
	fmt.Fprintf(w, "%s %s on %s (%s, %s)\n", of.done, a.Unit, where, change, took(time.Duration(a.Took*float64(time.Second))))
}
