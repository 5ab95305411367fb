package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"stead/host"
)

func newHostCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check DIR",
		Short:   "read a folder of declarations and name every mistake, changing nothing",
		Example: "  stead host check mesh/",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			services, err := host.Check(c.Context(), args[0], slog.New(slog.DiscardHandler))
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
