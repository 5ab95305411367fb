package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"stead/host"
)

func newHostCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR",
		Short: "read a folder of declarations and name every mistake, changing nothing",
		Long: "check reads a folder as a host would, and names every mistake in it: file,\n" +
			"line, field, rule and cure. It asks no host and changes nothing, so that it\n" +
			"can stand in front of a commit. The exit code is 0 when there is no mistake,\n" +
			"and 1 when there is one.",
		Example:           "  stead host check /etc/stead/declarations",
		Args:              one("DIR"),
		ValidArgsFunction: folders,
		RunE: func(c *cobra.Command, args []string) error {
			services, warnings, err := host.Check(c.Context(), args[0], slog.New(slog.DiscardHandler))
			for _, w := range warnings {
				fmt.Fprintf(c.ErrOrStderr(), "warning: %s\n", w)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s in %s, no mistakes\n", count(len(services), "declaration"), args[0])
			return err
		},
	}
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
