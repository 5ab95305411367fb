package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stead/cmd/stead/contexts"
	"stead/mesh/wire"
)

// applyOptions are the flags of apply and diff.
type applyOptions struct {
	files      []string
	nodes      []string
	dryRun     bool
	force, yes bool
	wait       waitTime
	output     format
}

func newApply(r *reach) *cobra.Command {
	var o applyOptions
	c := asks(&cobra.Command{
		Use:   "apply -f FILE|DIR|-",
		Short: "declare what stands in files, on every node that they address",
		Long: "apply reads declarations from files, folders or standard input (-) and declares\n" +
			"them in the mesh: all of them, in one step, or none. It withdraws nothing that\n" +
			"it does not name.\n\n" +
			"What somebody else changed since it was last applied or shown here is a\n" +
			"conflict, and changes nothing; stead describe declaration shows it as it is\n" +
			"now, and --force applies over it. What would take many declarations from their\n" +
			"nodes wants --yes.\n\n" +
			"With --dry-run nothing changes, and every node says what it would do. With\n" +
			"--wait the answer comes when all is converged, and after TIME (5m) at the\n" +
			"latest; the exit code is then 3 when something is not, and 4 when nodes did\n" +
			"not answer.",
		Example: "  stead apply -f mesh/\n  stead apply -f web.yaml -f db.yaml --wait 2m\n  stead apply -f mesh/ --dry-run -n web1",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			_, err := r.apply(c, o)
			return err
		},
	})
	f := c.Flags()
	o.common(c)
	f.BoolVar(&o.dryRun, "dry-run", false, "change nothing, and show what each node would do")
	f.Var(&o.wait, "wait", "wait until all is converged, up to `TIME`")
	f.Lookup("wait").NoOptDefVal = rolloutText
	f.BoolVar(&o.force, "force", false, "apply also over what others changed")
	f.BoolVar(&o.yes, "yes", false, "agree to take many declarations from their nodes")
	complete(c, "wait", cobra.NoFileCompletions)
	return c
}

// common are the flags of apply and diff alike.
func (o *applyOptions) common(c *cobra.Command) {
	f := c.Flags()
	f.StringArrayVarP(&o.files, "file", "f", nil, "read declarations from `FILE|DIR|-`; may be given again")
	f.StringSliceVarP(&o.nodes, "node", "n", nil, "show what `NODE` would do, and no other; may be given again")
	formatFlag(c, &o.output)
}

func (o applyOptions) check() error {
	dashes := 0
	for _, path := range o.files {
		if path == "-" {
			dashes++
		}
	}
	switch {
	case len(o.files) == 0:
		return usageError{errors.New("-f is missing: it names the files or folders of declarations"), "stead apply -f mesh/"}
	case dashes > 1:
		return usageError{errors.New("standard input is read once, and -f - is given twice"), "stead apply --help"}
	case o.dryRun && o.wait > 0:
		return usageError{errors.New("--wait waits for a change, and --dry-run makes none"), "leave one of them out"}
	case len(o.nodes) > 0 && !o.dryRun:
		return usageError{errors.New("-n says whose plans are shown, and is for --dry-run: the declarations say which nodes they are for"), "stead apply -f … --dry-run -n " + o.nodes[0]}
	}
	return nil
}

// applied is the answer of apply as JSON.
type applied struct {
	wire.ChangeReply
	Progress *wire.ProgressReply `json:"progress,omitempty"`
}

// apply reads the files, asks for the change, and shows what became of it.
func (r *reach) apply(c *cobra.Command, o applyOptions) (wire.ChangeReply, error) {
	out := r.o.screen(c.OutOrStdout())
	t, err := readTexts(c.Context(), c.InOrStdin(), o.files)
	warn(c.ErrOrStderr(), t.warnings)
	if err != nil {
		return wire.ChangeReply{}, out.textFault(err, "nothing was applied")
	}
	l, err := r.dial(c.Context())
	if err != nil && len(t.problems) > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "note: no controller was asked: %s\n", err)
		return wire.ChangeReply{}, out.textFault(t.problems.Err(), "nothing was applied")
	}
	if err != nil {
		return wire.ChangeReply{}, err
	}
	defer l.conn.Close()
	marks := l.marks(c.ErrOrStderr())
	request := wire.ApplyRequest{Files: t.files, Seen: t.seen(marks), Epoch: marks.Epoch, Force: o.force, Yes: o.yes, DryRun: o.dryRun, Nodes: o.nodes}
	ctx, cancel := r.bound(c.Context())
	defer cancel()
	reply, err := l.Apply(ctx, request)
	if err != nil {
		return reply, l.explain("apply", err)
	}
	return reply, r.conclude(c, l, change{reply, o.dryRun, o.wait, o.output, "applied"})
}

// seen are the marks that a controller needs: of the names in the files, and all
// when some of them could not be read here.
func (t texts) seen(m contexts.Marks) map[string]wire.Mark {
	if len(t.problems) > 0 {
		return m.Seen
	}
	some := map[string]wire.Mark{}
	for _, name := range t.names {
		if mark, ok := m.Seen[name]; ok {
			some[name] = mark
		}
	}
	return some
}

// change is what a controller answered to apply or withdraw.
type change struct {
	reply  wire.ChangeReply
	dryRun bool
	wait   waitTime
	output format
	done   string // "applied", "withdrawn"
}

// conclude shows the answer, remembers what was done, and waits where that is
// asked for.
func (r *reach) conclude(c *cobra.Command, l *link, ch change) error {
	warn(c.ErrOrStderr(), ch.reply.Warnings)
	out := r.o.screen(c.OutOrStdout())
	refused := out.refusal(ch.reply, "nothing was "+ch.done)
	if refused == nil && !ch.dryRun {
		l.remember(c.Context(), c.ErrOrStderr(), sightOf(ch.reply))
	}
	answer := applied{ChangeReply: ch.reply}
	if !ch.output.coded() {
		if err := flush(out, func(w screen) { w.changeReply(ch, refused != nil) }); err != nil {
			return err
		}
	}
	var end error
	switch {
	case refused != nil:
		end = refused
	case ch.dryRun && silentPlans(ch.reply):
		end = errSilent
	case ch.wait > 0 && len(ch.reply.Changes) > 0:
		p, err := r.await(c, l, ch)
		if err != nil {
			return l.explain("wait", err)
		}
		answer.Progress, end = &p, verdict(p)
	}
	if ch.output.coded() {
		if err := encode(out, string(ch.output), answer); err != nil {
			return err
		}
	}
	return end
}

// await waits until the change has come to all nodes, and shows how far it is.
func (r *reach) await(c *cobra.Command, l *link, ch change) (wire.ProgressReply, error) {
	out := r.o.screen(c.OutOrStdout())
	if ch.output.coded() {
		out = r.o.screen(io.Discard)
		out.width = 0
	} else {
		fmt.Fprintln(out)
	}
	wait := rollout{of: l, bound: time.Duration(ch.wait), answer: time.Duration(r.timeout), out: out, log: c.ErrOrStderr(), now: r.o.Now}
	return wait.wait(c.Context(), concerned(ch.reply.Changes), ch.reply.Revision)
}

// changeReply is the answer to an operation for people.
func (w screen) changeReply(ch change, refused bool) {
	if refused && !ch.dryRun {
		return
	}
	w.changes(ch.reply.Changes)
	switch {
	case ch.dryRun:
		if len(ch.reply.Plans) > 0 {
			fmt.Fprintln(w)
			w.plans(ch.reply.Plans)
		}
		if ch.reply.More > 0 {
			fmt.Fprintf(w, "… and %s: ask for those of some nodes with -n\n", count(ch.reply.More, "more plan"))
		}
		w.unplanned(ch.reply.Unplanned)
		if !refused {
			fmt.Fprintln(w, planSummary(ch.reply, "be "+ch.done))
		}
	case !changed(ch.reply.Changes):
		fmt.Fprintf(w, "nothing to change, at revision %d\n", ch.reply.Revision)
	default:
		fmt.Fprintf(w, "%s as revision %d\n", ch.done, ch.reply.Revision)
	}
}

// flush writes an answer in one piece.
func flush(out screen, write func(screen)) error {
	var answer bytes.Buffer
	to := out
	to.Writer = &answer
	write(to)
	_, err := answer.WriteTo(out)
	return err
}

func warn(w io.Writer, warnings []string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
}

// marks are what the user last saw; none, with a warning, when that cannot be
// read.
func (l *link) marks(log io.Writer) contexts.Marks {
	m, err := l.store.Marks(l.at.Credentials)
	if err != nil {
		warn(log, []string{"what was seen before is not known: " + err.Error()})
	}
	return m
}

// remember keeps what was seen for the next command. Where it cannot, the answer
// stands all the same.
func (l *link) remember(ctx context.Context, log io.Writer, s contexts.Sight) {
	if err := l.store.Remember(context.WithoutCancel(ctx), l.at.Credentials, s); err != nil {
		warn(log, []string{"what was seen is not remembered: " + err.Error()})
	}
}

func sightOf(r wire.ChangeReply) contexts.Sight {
	s := contexts.Sight{Epoch: r.Epoch, Revision: r.Revision, Marks: map[string]wire.Mark{}}
	for _, c := range r.Changes {
		s.Marks[c.Name] = c.Mark
		if c.How == wire.Gone {
			s.Marks[c.Name] = ""
		}
	}
	return s
}
