package cli

import (
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"stead/host/delegate"
)

// newHostDelegate is what a host starts to read and write as an account. It is
// not for people.
func newHostDelegate() *cobra.Command {
	return &cobra.Command{
		Use:    "delegate",
		Short:  "read and write files for the host, as the account that it is started as",
		Hidden: true,
		Args:   none,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := delegate.Harden(); err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			return delegate.Serve(c.Context(), os.Stdin, os.Stdout, log)
		},
	}
}
