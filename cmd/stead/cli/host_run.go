package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"stead/host"
)

func newHostRun(o Options) *cobra.Command {
	h := host.Options{Version: o.Version}
	level := logLevel(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "run --declarations DIR",
		Short: "apply a folder of declarations to this machine and keep it so",
		Long: "run applies every declaration below a folder to this machine's systemd, and\n" +
			"keeps it so until it is ended: a unit that is stopped is started, a file that\n" +
			"is edited is put back. The folder is watched; a declaration that goes from it\n" +
			"is withdrawn, and what stood there before comes back. A folder that is missing\n" +
			"or emptied withdraws nothing, and one with a mistake in it changes nothing.\n\n" +
			"It needs root and systemd as PID 1. Ending it leaves every unit as it is.",
		Example: "  stead host run --declarations /etc/stead/declarations",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			if h.Folder == "" {
				return usageError{fmt.Errorf("--declarations is missing: it names the folder of declarations"), "stead host run --declarations /etc/stead/declarations"}
			}
			h.Logger = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.Level(level)}))
			run, err := host.New(h)
			if err != nil {
				return err
			}
			return run.Run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&h.Folder, "declarations", "", "read declarations (*.yaml, *.yml) from `DIR`, and watch it")
	f.StringVar(&h.State, "state", host.DefaultState, "keep in `DIR` what must be remembered")
	f.StringVar(&h.Socket, "socket", defaultSocket, "answer at `PATH`")
	f.Var(&level, "log-level", "log from `LEVEL` on: debug, info, warn or error")
	complete(c, "declarations", folders)
	complete(c, "state", folders)
	complete(c, "log-level", cobra.FixedCompletions(levels(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
