package cli

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"stead/host/delegate"
)

// newHostDelegate is what a host starts to read and write as an account, or to run
// a program as one. It is not for people.
func newHostDelegate() *cobra.Command {
	var as string
	c := &cobra.Command{
		Use:    "delegate --as LOGIN [PROGRAM [ARGUMENT]...]",
		Short:  "read and write files for the host, or run a program, as an account",
		Hidden: true,
		RunE: func(c *cobra.Command, program []string) error {
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return delegate.Be(c.Context(), as, program, log)
		},
	}
	c.Flags().StringVar(&as, "as", "", "become `LOGIN`, which is NAME:UID:GID:GROUPS:HOME")
	return c
}
