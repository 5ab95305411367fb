package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"stead/test/lab"
)

// patience bounds what a boot or a shutdown may take.
const patience = 2 * time.Minute

func newCommand() *cobra.Command {
	var dir string
	root := &cobra.Command{
		Use:   "node NAME COMMAND | node list | node sweep | node net",
		Short: "Boot throw-away machines with a real systemd",
		Long: `Boots lab nodes: throw-away machines with a real systemd as PID 1, in namespaces over an overlay of this machine's own
root file system, which is never written to. Needs root. The name comes first: node NAME up.`,
		Example: `  go run ./test/lab/node ws1 up
  go run ./test/lab/node ws1 exec systemctl status
  go run ./test/lab/node ws1 down`,
		SilenceErrors: true, SilenceUsage: true,
		Args: unknown("node"),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().StringVar(&dir, "dir", lab.DefaultDir, "where the state of nodes lies")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(
		up(&dir),
		execute(&dir),
		onNode(&dir, "reboot", "Shut it down in good order and boot it again; its disk is kept", (*lab.Node).Reboot),
		onNode(&dir, "off", "Shut it down in good order; up boots it again", (*lab.Node).PowerOff),
		onNode(&dir, "cut", "Cut its power: kill everything at one blow; up boots it again", (*lab.Node).PowerCut),
		onNode(&dir, "down", "Remove it, disk and all", (*lab.Node).Down),
		list(&dir),
		sweep(&dir),
		network(&dir),
	)
	return root
}

// unknown says what is wrong with arguments in which no command was found.
func unknown(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return nil
		case 1:
			return usageError{fmt.Errorf("%s %q: what to do with it is missing", what, args[0])}
		}
		return usageError{fmt.Errorf("%s %q: unknown command %q", what, args[0], args[1])}
	}
}

// nameLast turns NAME COMMAND …, as people write it, into COMMAND NAME …, as cobra reads it.
func nameLast(root *cobra.Command, args []string) []string {
	for i := 0; i+1 < len(args); i++ {
		if args[i] == "--dir" {
			i++
			continue
		}
		if strings.HasPrefix(args[i], "-") {
			continue
		}
		if group := command(root, args[i]); group != nil && group.HasSubCommands() {
			return append(slices.Clone(args[:i+1]), nameLast(group, args[i+1:])...)
		}
		if command(root, args[i]) == nil && command(root, args[i+1]) != nil {
			args = slices.Clone(args)
			args[i], args[i+1] = args[i+1], args[i]
		}
		break
	}
	return args
}

func command(root *cobra.Command, name string) *cobra.Command {
	for _, c := range root.Commands() {
		if c.Name() == name {
			return c
		}
	}
	return nil
}

func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("want one name, have %q", args)}
	}
	return nil
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) != 0 {
		return usageError{fmt.Errorf("want no arguments, have %q", args)}
	}
	return nil
}

func up(dir *string) *cobra.Command {
	o := lab.Options{Keep: true}
	var nets []string
	c := &cobra.Command{
		Use: "up NAME", Short: "Boot it, and make it first if there is none of this name", Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			begun := time.Now()
			o.Name, o.Dir = args[0], *dir
			for _, name := range nets {
				w, err := openNetwork(*dir, name)
				if err != nil {
					return err
				}
				o.Networks = append(o.Networks, w)
			}
			n, err := lab.Open(*dir, o.Name)
			if err == nil && n.Condition() == lab.Off {
				for _, w := range o.Networks {
					if w.Link(n) == "" {
						err = errors.Join(err, w.Attach(ctx, n))
					}
				}
				err = errors.Join(err, n.PowerOn(ctx))
			} else {
				n, err = lab.Boot(ctx, o)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "%s is up after %.2f s, PID 1 is %d here\n", o.Name, time.Since(begun).Seconds(), n.PID())
			return nil
		},
	}
	c.Flags().StringVar(&o.Root, "root", "/", "the root file system that its disk begins as (mmdebstrap makes others)")
	c.Flags().StringVar(&o.Hostname, "hostname", "", "its hostname (default NAME)")
	c.Flags().StringArrayVar(&nets, "net", nil, "a network to attach it to (net NAME up makes one); may be repeated")
	c.Flags().BoolVar(&o.ShareNet, "share-net", false, "leave it in this machine's network")
	return c
}

func execute(dir *string) *cobra.Command {
	c := &cobra.Command{
		Use: "exec NAME CMD...", Short: "Run a command inside, as root; its exit status is ours",
		Args: nameAndMore("a node's name and a command"),
		RunE: func(c *cobra.Command, args []string) error {
			n, err := open(*dir, args[0])
			if err != nil {
				return err
			}
			// An interrupt reaches the command by the terminal, and it is for the command to say what that means.
			signal.Notify(make(chan os.Signal, 1), os.Interrupt)
			cmd := n.Command(context.WithoutCancel(c.Context()), args[1:]...)
			cmd.SysProcAttr = nil
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			if term := os.Getenv("TERM"); term != "" {
				cmd.Env = append(cmd.Env, "TERM="+term)
			}
			err = cmd.Run()
			var exit *exec.ExitError
			if err == nil {
				return nil
			}
			if errors.As(err, &exit) {
				return exitStatus(lab.ExitCode(exit.ProcessState))
			}
			if n.Condition() == lab.Off {
				return fmt.Errorf("%w\nhint: go run ./test/lab/node %s up", err, args[0])
			}
			return err
		},
	}
	c.Flags().SetInterspersed(false) // what stands behind the name is the command's
	return c
}

func onNode(dir *string, name, short string, do func(*lab.Node, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME", Short: short, Args: oneName,
		RunE: func(c *cobra.Command, args []string) error {
			n, err := open(*dir, args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), patience)
			defer cancel()
			return do(n, ctx)
		},
	}
}

// open finds a node; where there is none, the error says which there are.
func open(dir, name string) (*lab.Node, error) {
	n, err := lab.Open(dir, name)
	if !errors.Is(err, fs.ErrNotExist) {
		return n, err
	}
	hint := "there are none: go run ./test/lab/node " + name + " up"
	if nodes, _ := lab.List(dir); len(nodes) > 0 {
		var names []string
		for _, i := range nodes {
			names = append(names, i.Name)
		}
		hint = "there are " + strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("%w\nhint: %s", err, hint)
}

func list(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the nodes, those of running tests too", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			nodes, err := lab.List(*dir)
			if len(nodes) > 0 {
				w := tabwriter.NewWriter(c.OutOrStdout(), 0, 8, 2, ' ', 0)
				fmt.Fprintln(w, "NAME\tIS\tPID\tHOSTNAME\tROOT\tBOOTS\tCREATED\tENDS")
				for _, i := range nodes {
					fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%d\t%s\t%s\n", i.Name, i.Condition, i.PID, i.Hostname, i.Root, i.Boots,
						i.Created.Local().Format(time.DateTime), ends(i.Keep, i.Owner))
				}
				w.Flush()
			}
			return err
		},
	}
}

func sweep(dir *string) *cobra.Command {
	return &cobra.Command{
		Use: "sweep", Short: "Remove the nodes and networks that dead processes left behind", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := lab.Sweep(c.Context(), *dir)
			for _, name := range names {
				fmt.Fprintln(c.OutOrStdout(), name)
			}
			return err
		},
	}
}
