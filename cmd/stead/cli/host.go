package cli

import "github.com/spf13/cobra"

// defaultSocket is where a host answers.
const defaultSocket = "/run/stead/host.sock"

func newHost(o Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "run this machine's host, or ask it how things stand",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newHostRun(o), newHostStatus(), newHostCheck())
	return c
}
