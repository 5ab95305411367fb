package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stead/test/lab"
)

func network(dir *string) *cobra.Command {
	root := &cobra.Command{
		Use:   "net NAME COMMAND | net list",
		Short: "Make networks between nodes, and cut them",
		Long: `Makes networks that nodes are attached to, each in a namespace of its own that nothing leads out of. The name comes first:
net NAME up. A node finds the others by their hostnames.`,
		Example: `  go run ./test/lab/node net lan up
  go run ./test/lab/node ws1 up --net lan
  go run ./test/lab/node net lan cut ws1
  go run ./test/lab/node net lan join ws1
  go run ./test/lab/node net lan down`,
		Args: unknown("net"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(
		netUp(dir),
		netExecute(dir),
		netList(dir),
		onPorts(dir, "attach", "Attach nodes, up or off", func(w *lab.Network, ctx context.Context, nodes ...*lab.Node) error {
			return each(nodes, func(n *lab.Node) error { return w.Attach(ctx, n) })
		}),
		onPorts(dir, "detach", "Detach nodes for good", func(w *lab.Network, ctx context.Context, nodes ...*lab.Node) error {
			return each(nodes, func(n *lab.Node) error { return w.Detach(ctx, n) })
		}),
		onPorts(dir, "cut", "Pull the cables of nodes: what they send and what is sent to them vanishes", (*lab.Network).Cut),
		onPorts(dir, "refuse", "Let what nodes send be answered by a reset; what is sent to them vanishes", (*lab.Network).Refuse),
		onPorts(dir, "join", "Undo cut and refuse", (*lab.Network).Join),
		&cobra.Command{
			Use: "down NAME", Short: "Remove it; its nodes live on", Args: oneName,
			RunE: func(c *cobra.Command, args []string) error {
				w, err := openNetwork(*dir, args[0])
				if err != nil {
					return err
				}
				return w.Down(c.Context())
			},
		},
	)
	return root
}

func netUp(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "up NAME", Short: "Make it", Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			w, err := lab.MakeNetwork(ctx, lab.NetworkOptions{Name: args[0], Dir: *dir, Keep: true})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "network %s is up, its addresses are %s\n", args[0], w.Prefix())
			return nil
		},
	}
}

func netExecute(dir *string) *cobra.Command {
	c := &cobra.Command{
		Use: "exec NAME CMD...", Short: "Run a command of this machine on the network; its exit status is ours", Args: nameAndMore("a network's name and a command"),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := openNetwork(*dir, args[0])
			if err != nil {
				return err
			}
			signal.Notify(make(chan os.Signal, 1), os.Interrupt)
			cmd := w.Command(context.WithoutCancel(c.Context()), args[1:]...)
			cmd.SysProcAttr = nil
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			err = cmd.Run()
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exitStatus(lab.ExitCode(exit.ProcessState))
			}
			return err
		},
	}
	c.Flags().SetInterspersed(false) // what stands behind the name is the command's
	return c
}

func onPorts(dir *string, name, short string, do func(*lab.Network, context.Context, ...*lab.Node) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME NODE...", Short: short, Args: nameAndMore("a network's name and nodes"),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := openNetwork(*dir, args[0])
			if err != nil {
				return err
			}
			var nodes []*lab.Node
			for _, name := range args[1:] {
				n, err := open(*dir, name)
				if err != nil {
					return err
				}
				nodes = append(nodes, n)
			}
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			return do(w, ctx, nodes...)
		},
	}
}

func each(nodes []*lab.Node, do func(*lab.Node) error) error {
	for _, n := range nodes {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func nameAndMore(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return usageError{fmt.Errorf("want %s, have %q", what, args)}
		}
		return nil
	}
}

// openNetwork finds a network; where there is none, the error says which there are.
func openNetwork(dir, name string) (*lab.Network, error) {
	w, err := lab.OpenNetwork(dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	hint := "there are none: go run ./test/lab/node net " + name + " up"
	if nets, _ := lab.Networks(dir); len(nets) > 0 {
		var names []string
		for _, i := range nets {
			names = append(names, i.Name)
		}
		hint = "there are " + strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("%w\nhint: %s", err, hint)
}

func netList(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the networks and their nodes, those of running tests too", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			nets, err := lab.Networks(*dir)
			if len(nets) > 0 {
				w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tIS\tADDRESSES\tNODE\tHOSTNAME\tADDRESS\tLINK\tCREATED\tENDS")
				for _, i := range nets {
					first := fmt.Sprintf("%s\t%s\t%s", i.Name, i.Condition, i.Prefix)
					last := fmt.Sprintf("%s\t%s", i.Created.Local().Format(time.DateTime), ends(i.Keep, i.Owner))
					if len(i.Ports) == 0 {
						fmt.Fprintf(w, "%s\t\t\t\t\t%s\n", first, last)
					}
					for _, p := range i.Ports {
						fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", first, p.Node, p.Hostname, p.Address, p.Link, last)
						first, last = "\t\t", "\t"
					}
				}
				w.Flush()
			}
			return err
		},
	}
}

// ends says when a node or a network goes.
func ends(keep bool, owner int) string {
	if keep {
		return "when taken down"
	}
	return fmt.Sprintf("with process %d", owner)
}
