package cli

import "github.com/spf13/cobra"

// defaultSocket is where a host answers.
const defaultSocket = "/run/stead/host.sock"

func newHost(o Options) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "host",
		Short: "run this machine's host, or ask it how things stand",
		Long: "host is what keeps one machine: a process that applies a folder of\n" +
			"declarations through systemd, and answers how each of them stands.",
	})
	c.AddCommand(newHostRun(o), newHostStatus(o), newHostCheck(), newHostDelegate())
	return c
}
