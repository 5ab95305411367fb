package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"stead/runtime/server"
)

func newRuntime(o Options) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "runtime",
		Short: "the process that answers what people ask of this machine",
		Long: "runtime is the process that answers what people ask of this machine through the\n" +
			"mesh: how units stand, what they log, to start and stop them. It has no rights.",
	})
	c.AddCommand(newRuntimeRun(o))
	return c
}

func newRuntimeRun(o Options) *cobra.Command {
	run := server.Options{Version: o.Version}
	level := logLevel(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "run",
		Short: "answer what people ask of this machine through the mesh",
		Long: "run answers what people ask of this machine through the mesh, until it is ended:\n" +
			"the verbs of every seat that a module of this node holds. It does so also while\n" +
			"the host is down, and begins with what it served last while no controller answers.\n\n" +
			"It needs no rights, and is best run by its unit. What needs rights it asks of its\n" +
			"root helper, which serves the main process of stead-runtime.service alone.",
		Example: "  stead runtime run --credentials /etc/stead/credentials --state /var/lib/stead-runtime",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			run.Logger = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.Level(level)}))
			if run.Credentials == "" {
				run.Credentials = o.Env("CREDENTIALS_DIRECTORY") // systemd's, of LoadCredential=
			}
			one, err := server.New(run)
			if err != nil {
				return err
			}
			return one.Run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&run.Credentials, "credentials", "", "take part in a mesh with the credentials in `DIR` (default: $CREDENTIALS_DIRECTORY, or "+server.DefaultCredentials+")")
	f.StringVar(&run.State, "state", server.DefaultState, "keep in `DIR` what must be remembered")
	f.Var(&level, "log-level", "log from `LEVEL` on: debug, info, warn or error")
	complete(c, "credentials", folders)
	complete(c, "state", folders)
	complete(c, "log-level", cobra.FixedCompletions(levels(), cobra.ShellCompDirectiveNoFileComp))
	return c
}

func newEscalate() *cobra.Command {
	level := logLevel(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "escalate",
		Short: "the root helper of the runtime, which its socket starts",
		Long: "escalate does for the runtime what needs rights: it starts, stops, enables and\n" +
			"disables units by name. It serves the main process of stead-runtime.service and\n" +
			"nobody else, and logs every act. Its socket starts it; nobody does by hand.",
		Example: "  systemctl start stead-escalate.socket",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			return server.Help(c.Context(), slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.Level(level)})))
		},
	}
	c.Flags().Var(&level, "log-level", "log from `LEVEL` on: debug, info, warn or error")
	complete(c, "log-level", cobra.FixedCompletions(levels(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
