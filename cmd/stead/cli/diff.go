package cli

import "github.com/spf13/cobra"

func newDiff(r *reach) *cobra.Command {
	o := applyOptions{dryRun: true}
	c := asks(&cobra.Command{
		Use:   "diff -f FILE|DIR|-",
		Short: "show what an apply would change, and what each node would do",
		Long: "diff is stead apply --dry-run whose exit code says whether there is anything\n" +
			"to apply: 0 when nothing would change, 3 when something would, and 4 when some\n" +
			"nodes did not say what they would do.",
		Example: "  stead diff -f mesh/\n  stead diff -f mesh/ -n web1",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			reply, err := r.apply(c, o)
			if err == nil && changed(reply.Changes) {
				return errNotWanted
			}
			return err
		},
	})
	o.common(c)
	return c
}
