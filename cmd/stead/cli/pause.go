package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// heedFor is how long nodes are waited for until they say that a unit is paused: who
// stops something right behind the command must not be put right.
const heedFor = 10 * time.Second

// pauseOptions are the flags of pause and resume.
type pauseOptions struct {
	a      address
	q      wire.PauseRequest
	length length
	output format
}

func newPause(r *reach) *cobra.Command {
	var o pauseOptions
	c := asks(&cobra.Command{
		Use:   "pause UNIT --for TIME",
		Short: "leave a unit as it is for a while: nothing of it is changed by stead",
		Long: "pause has the host of a node leave a declared unit as it is: it is not put right,\n" +
			"and nothing that is declared of it meanwhile, or withdrawn, is done. The pause\n" +
			"ends by itself, by the clock of the node, also when that is cut off; then all of\n" +
			"it is done. UNIT is one that something is declared of; --for is 1m to 7d. A unit\n" +
			"that is paused already is paused anew. The command returns when the node says so.",
		Example: "  stead pause web -n web1 --for 30m --reason 'a new disk'\n  stead pause reload-watcher --user -n ws1 --for 2d",
		Args:    one("UNIT"),
		RunE: func(c *cobra.Command, args []string) error {
			if o.length == 0 {
				return usageError{errors.New("--for is missing: a pause ends by itself"), "stead pause " + args[0] + " --for 30m"}
			}
			if at := time.Duration(o.length); at < wire.MinPause || at > wire.MaxPause {
				return usageError{fmt.Errorf("--for %s is out of bounds", c.Flag("for").Value),
					"a pause is 1m to 7d long; what is to rest for longer is declared so (ensure: stopped), or withdrawn"}
			}
			o.q.Unit, o.q.Seconds = args[0], int64(time.Duration(o.length)/time.Second)
			return r.pause(c, o)
		},
	})
	c.ValidArgsFunction = r.completeDeclaredUnits(&o.a)
	f := c.Flags()
	f.Var(&o.length, "for", "for `TIME`: 1m to 7d")
	f.StringVar(&o.q.Reason, "reason", "", "say why, in `WORDS` for others to read")
	complete(c, "for", cobra.NoFileCompletions)
	complete(c, "reason", cobra.NoFileCompletions)
	o.a.whereFlags(r, c)
	o.a.scopeFlags(c)
	formatFlag(c, &o.output)
	return c
}

func newResume(r *reach) *cobra.Command {
	o := pauseOptions{q: wire.PauseRequest{End: true}}
	c := asks(&cobra.Command{
		Use:   "resume UNIT",
		Short: "end the pause of a unit before its time",
		Long: "resume ends the pause of a unit, whoever asked for it: the host does at once what\n" +
			"it held back. What is paused on a node is in: stead describe node NODE.",
		Example: "  stead resume web -n web1",
		Args:    one("UNIT"),
		RunE: func(c *cobra.Command, args []string) error {
			o.q.Unit = args[0]
			return r.pause(c, o)
		},
	})
	c.ValidArgsFunction = r.completePaused(&o.a)
	o.a.whereFlags(r, c)
	o.a.scopeFlags(c)
	formatFlag(c, &o.output)
	return c
}

// paused is what became of a pause on one node, as -o json has it.
type paused struct {
	Node string `json:"node"`
	wire.ChangeReply
	// Unconfirmed says that the node did not say yet that it heeds the pause.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}

// pause asks for one pause, or its end, on each node that is meant, and waits until
// all of them heed it.
func (r *reach) pause(c *cobra.Command, o pauseOptions) error {
	if err := o.a.check(c); err != nil {
		return err
	}
	o.q.Scope = o.a.scope()
	return r.run(c.Context(), func(ctx context.Context, l *link) error {
		nodes, err := o.a.find(ctx, r, l)
		if err != nil {
			return err
		}
		all := make([]paused, 0, len(nodes))
		for _, node := range nodes {
			var p paused
			if p, err = r.pauseOn(ctx, l, node, o.q); err != nil {
				break // those before it are paused, and told
			}
			all = append(all, p)
		}
		if !o.q.End {
			r.heed(ctx, l, all)
		}
		told := o.tellAll(c.ErrOrStderr(), r.o.screen(c.OutOrStdout()), all, len(nodes) == 1)
		if err != nil {
			return l.explain(c.Name(), err)
		}
		return told
	})
}

// pauseOn asks for a pause on one node.
func (r *reach) pauseOn(ctx context.Context, l *link, node subject.Node, q wire.PauseRequest) (paused, error) {
	q.Node = string(node)
	ctx, cancel := r.bound(ctx)
	defer cancel()
	reply, err := l.Pause(ctx, q)
	return paused{Node: q.Node, ChangeReply: reply, Unconfirmed: !q.End && reply.Pause != nil}, err
}

// heed waits until the nodes say that they heed their pauses, and notes which have.
func (r *reach) heed(ctx context.Context, l *link, all []paused) {
	ctx, cancel := context.WithTimeout(ctx, min(heedFor, time.Duration(r.timeout)))
	defer cancel()
	waits := func(p paused) bool { return p.Unconfirmed }
	for pause := firstLook; slices.ContainsFunc(all, waits) && pauseFor(ctx, pause); pause = min(pause*3/2, lastLook) {
		q := wire.GetRequest{Kind: wire.Reports}
		for _, p := range all {
			if p.Unconfirmed {
				q.Names, q.Nodes = append(q.Names, p.Pause.Declaration), append(q.Nodes, p.Node)
			}
		}
		reply, err := r.collect(ctx, l, q)
		for i := range all {
			all[i].Unconfirmed = all[i].Unconfirmed && (err != nil || !slices.ContainsFunc(reply.Reports, all[i].heeded))
		}
	}
}

// heeded reports whether n says that its host heeds p.
func (p paused) heeded(n wire.NodeReport) bool {
	return n.Node == p.Node && n.Paused != nil && n.Paused.Same(*p.Pause)
}

// tellAll says what became of the pauses; alone: one node was meant, whose refusal is
// the command's.
func (o pauseOptions) tellAll(log io.Writer, out screen, all []paused, alone bool) error {
	var end error
	for _, p := range all {
		switch refused := out.refusal(p.ChangeReply, "nothing was changed"); {
		case refused != nil && alone && !o.output.coded():
			return refused
		case refused != nil:
			complain(log, refused, "")
			end = errTold
		case p.Unconfirmed && end == nil:
			end = errSilent
		}
		if err := o.tell(log, out, p); err != nil {
			return err
		}
	}
	if o.output.coded() {
		if err := encode(out, string(o.output), all); err != nil {
			return err
		}
	}
	return end
}

// tell says what became of a pause.
func (o pauseOptions) tell(log io.Writer, out screen, p paused) error {
	warn(log, p.Warnings)
	if p.Pause == nil || o.output.coded() {
		return nil
	}
	where := p.Node + inUser(string(p.Pause.Scope))
	if o.q.End {
		_, err := fmt.Fprintf(out, "resumed %s on %s\n", p.Pause.Unit, where)
		return err
	}
	if _, err := fmt.Fprintf(out, "paused %s on %s until %s\n", p.Pause.Unit, where, out.when(p.Pause.Until)); err != nil {
		return err
	}
	if p.Unconfirmed {
		warn(log, []string{fmt.Sprintf("%s has not said yet that it heeds this: until then it may put the unit right (stead get reports %s -n %s)", p.Node, p.Pause.Declaration, p.Node)})
	}
	fmt.Fprintf(log, "hint: to end it before: stead resume %s -n %s%s\n", p.Pause.Unit, p.Node, userFlag(string(p.Pause.Scope)))
	return nil
}

// completeDeclaredUnits completes the units that something is declared of.
func (r *reach) completeDeclaredUnits(a *address) cobra.CompletionFunc {
	return func(c *cobra.Command, before []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		if len(before) == 0 {
			r.brief(c, func(ctx context.Context, l *link) error {
				reply, err := r.collect(ctx, l, wire.GetRequest{Kind: wire.Declarations, Nodes: a.nodes, Labels: a.labels})
				for _, d := range reply.Declarations {
					if (d.Scope == string(unit.User)) == a.user && unit.CheckName(d.Unit) == nil && !slices.Contains(names, d.Unit) {
						names = append(names, d.Unit)
					}
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePaused completes the units that are paused.
func (r *reach) completePaused(a *address) cobra.CompletionFunc {
	return func(c *cobra.Command, before []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		if len(before) == 0 {
			r.brief(c, func(ctx context.Context, l *link) error {
				reply, err := r.collect(ctx, l, wire.GetRequest{Kind: wire.Nodes, Nodes: a.nodes, Labels: a.labels})
				for _, n := range reply.Nodes {
					for _, p := range n.Pauses {
						if (p.Scope == unit.User) == a.user && !slices.Contains(names, string(p.Unit)) {
							names = append(names, string(p.Unit))
						}
					}
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
