package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stead/host"
	"stead/mesh/wire"
)

// defaultDeclarations is the folder of a machine that is in no mesh.
const defaultDeclarations = "/etc/stead/declarations"

func newHostRun(o Options) *cobra.Command {
	h := host.Options{Version: o.Version}
	level := logLevel(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "run [--declarations DIR | --credentials DIR] [--account LOGIN]",
		Short: "apply what is declared to this machine and keep it so",
		Long: "run applies declarations to this machine's systemd, and keeps it so until it is\n" +
			"ended: a unit that is stopped is started, a file that is edited is put back.\n\n" +
			"With --credentials they come from a mesh. What was accepted once is kept also\n" +
			"while the mesh is out of reach, and is withdrawn by nothing but an explicit\n" +
			"withdrawal in the mesh.\n\n" +
			"With --declarations they come from a folder, which is watched; a declaration\n" +
			"that goes from it is withdrawn, and what stood there before comes back. A folder\n" +
			"that is missing or emptied withdraws nothing, and one with a mistake in it\n" +
			"changes nothing.\n\n" +
			"With neither it is the mesh when " + host.DefaultCredentials + " exists, or when this\n" +
			"machine holds something of a mesh, and otherwise the folder\n" +
			defaultDeclarations + ".\n\n" +
			"Units of scope user are those of the operator account's own manager. A folder's\n" +
			"host is told whose by --account; in a mesh it is stead node account that says so.\n\n" +
			"It needs root and systemd as PID 1. Ending it leaves every unit as it is.",
		Example: "  stead host run\n  stead host run --declarations /etc/stead/declarations",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case h.Folder != "" && h.Credentials != "":
				return usageError{errors.New("--declarations and --credentials are given, and a host has one of them"), "stead host run --help"}
			case h.Credentials != "" && (h.Account != "" || c.Flags().Changed("linger")):
				return usageError{errors.New("--account and --linger are for a folder, and in a mesh its record of the node says both"), "stead node account NODE LOGIN"}
			case !slices.Contains(wire.Lingers(), h.Linger):
				return usageError{fmt.Errorf("--linger %q is none of %s", h.Linger, strings.Join(wire.Lingers(), ", ")), "stead host run --help"}
			case h.Folder == "" && h.Credentials == "":
				h.Folder, h.Credentials = defaultDeclarations, host.DefaultCredentials
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
	f.StringVar(&h.Credentials, "credentials", "", "take part in a mesh with the credentials in `DIR`")
	f.StringVar(&h.Account, "account", "", "keep units of scope user as those of `LOGIN`")
	f.StringVar(&h.Linger, "linger", wire.Lingers()[0], "`WHEN` the account's manager runs without a login: auto, on or off")
	f.StringVar(&h.State, "state", host.DefaultState, "keep in `DIR` what must be remembered")
	f.StringVar(&h.Socket, "socket", defaultSocket, "answer at `PATH`")
	f.Var(&level, "log-level", "log from `LEVEL` on: debug, info, warn or error")
	complete(c, "declarations", folders)
	complete(c, "credentials", folders)
	complete(c, "state", folders)
	complete(c, "linger", cobra.FixedCompletions(wire.Lingers(), cobra.ShellCompDirectiveNoFileComp))
	complete(c, "log-level", cobra.FixedCompletions(levels(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
