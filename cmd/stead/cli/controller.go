package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"stead/controller"
)

func newController(o Options) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "controller",
		Short: "the process that owns the state of the mesh",
		Long: "controller is the process that owns the state of the mesh: it takes what people\n" +
			"declare, tells each node what it is to have, and takes the nodes' reports.",
	})
	c.AddCommand(newControllerRun(o))
	return c
}

func newControllerRun(o Options) *cobra.Command {
	run := controller.Options{Version: o.Version}
	level := logLevel(slog.LevelInfo)
	c := &cobra.Command{
		Use:   "run",
		Short: "own the state of a mesh, and answer its nodes and people",
		Long: "run answers the nodes and the people of one mesh until it is ended. In an empty\n" +
			"folder it makes the keys of a new mesh; a NATS server comes with it. Ending it\n" +
			"changes nothing on any node: hosts go on with what they hold.\n\n" +
			"It does not begin on a store that is not the one it knows, since nodes would\n" +
			"be told that what they run is not declared: an empty disk, an old copy. With\n" +
			"--begin-epoch it does, takes over what is there, and no node withdraws\n" +
			"anything for it.",
		Example: "  stead controller run --state /var/lib/stead-controller --host mesh.example.org",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			run.Logger = slog.New(slog.NewTextHandler(c.ErrOrStderr(), &slog.HandlerOptions{Level: slog.Level(level)}))
			one, err := controller.New(run)
			if err != nil {
				return err
			}
			return one.Run(c.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&run.Dir, "state", controller.DefaultDir, "keep keys and state of the mesh in `DIR`")
	f.StringVar(&run.Listen, "listen", controller.DefaultListen, "listen at `HOST:PORT`")
	f.StringSliceVar(&run.Hosts, "host", nil, "be reached as `NAME`, a DNS name or address (default: the name and addresses of this machine)")
	f.StringVar(&run.Name, "name", "", "be called `NAME` (default: the name of this machine)")
	f.BoolVar(&run.BeginEpoch, "begin-epoch", false, "begin a new epoch when the store is not the one that is known")
	f.Var(&level, "log-level", "log from `LEVEL` on: debug, info, warn or error")
	complete(c, "state", folders)
	complete(c, "log-level", cobra.FixedCompletions(levels(), cobra.ShellCompDirectiveNoFileComp))
	return c
}
