package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"stead/mesh/wire"
)

func newWithdraw(r *reach) *cobra.Command {
	var o applyOptions
	c := asks(&cobra.Command{
		Use:   "withdraw NAME...",
		Short: "end declarations, and put back what stood on the nodes before",
		Long: "withdraw ends declarations by their names: all of them, in one step, or none.\n" +
			"Each node puts back what stood there before the declaration came, unless it\n" +
			"says on_withdraw: release.\n\n" +
			"What somebody else changed since it was last applied or shown here is a\n" +
			"conflict; --force withdraws it all the same. What would take many declarations\n" +
			"from their nodes wants --yes. --dry-run and --wait are those of apply.",
		Example: "  stead withdraw web\n  stead withdraw web worker --wait",
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) == 0 {
				return errors.New("NAME is missing: it is that of a declaration")
			}
			return nil
		},
		ValidArgsFunction: r.completeNames(wire.Declarations),
		RunE: func(c *cobra.Command, args []string) error {
			if o.dryRun && o.wait > 0 {
				return usageError{errors.New("--wait waits for a change, and --dry-run makes none"), "leave one of them out"}
			}
			return r.withdraw(c, o, args)
		},
	})
	f := c.Flags()
	f.BoolVar(&o.dryRun, "dry-run", false, "change nothing, and show what each node would do")
	f.Var(&o.wait, "wait", "wait until all nodes gave it up, up to `TIME`")
	f.Lookup("wait").NoOptDefVal = rolloutText
	f.BoolVar(&o.force, "force", false, "withdraw also what others changed")
	f.BoolVar(&o.yes, "yes", false, "agree to take many declarations from their nodes")
	formatFlag(c, &o.output)
	complete(c, "wait", cobra.NoFileCompletions)
	return c
}

func (r *reach) withdraw(c *cobra.Command, o applyOptions, names []string) error {
	l, err := r.dial(c.Context())
	if err != nil {
		return err
	}
	defer l.conn.Close()
	marks := l.marks(c.ErrOrStderr())
	seen := map[string]wire.Mark{}
	for _, name := range names {
		if m, ok := marks.Seen[name]; ok {
			seen[name] = m
		}
	}
	ctx, cancel := r.bound(c.Context())
	defer cancel()
	reply, err := l.Withdraw(ctx, wire.WithdrawRequest{Names: names, Seen: seen, Epoch: marks.Epoch, Force: o.force, Yes: o.yes || o.dryRun, DryRun: o.dryRun})
	if err != nil {
		return l.explain("withdraw", err)
	}
	return r.conclude(c, l, change{reply, o.dryRun, o.wait, o.output, "withdrawn"})
}
