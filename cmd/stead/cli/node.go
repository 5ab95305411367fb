package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"stead/mesh/wire"
)

func newNode(r *reach) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "node",
		Short: "set what the mesh knows of a node: labels, account, linger",
		Long: "node sets what people say of a machine of the mesh. A declaration that is\n" +
			"addressed to labels comes to a node with them, and leaves it without them.",
	})
	c.AddCommand(newNodeAdd(r), newNodeLabel(r), newNodeAccount(r), newNodeLinger(r), newNodeRemove(r))
	return c
}

// nodeCommand makes c change a node: its arguments, the first of which is the
// node, are what read makes a request of. The flags are those of all of them.
func (r *reach) nodeCommand(c *cobra.Command, done string, read func(args []string) (wire.SettingsRequest, error)) *cobra.Command {
	var yes bool
	var output format
	asks(c)
	c.Flags().BoolVar(&yes, "yes", false, "agree to take many declarations from the node")
	formatFlag(c, &output)
	c.ValidArgsFunction = func(c *cobra.Command, before []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(before) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.completeNames(wire.Nodes)(c, before, start)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := nodeNames(args[:1]); err != nil {
			return err
		}
		q, err := read(args[1:])
		if err != nil {
			return usageError{err, c.CommandPath() + " --help"}
		}
		q.Node, q.Yes = args[0], yes
		return r.run(c.Context(), func(ctx context.Context, l *link) error { return r.settle(ctx, c, l, setting{q, done, output}) })
	}
	return c
}

// setting is one change of a node.
type setting struct {
	q      wire.SettingsRequest
	done   string // "labelled"
	output format
}

func (r *reach) settle(ctx context.Context, c *cobra.Command, l *link, s setting) error {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	reply, err := l.Settings(ctx, s.q)
	if err != nil {
		return l.explain(c.CommandPath()[len("stead "):], err)
	}
	warn(c.ErrOrStderr(), reply.Warnings)
	out := r.o.screen(c.OutOrStdout())
	refused := out.refusal(reply, "nothing was changed")
	switch {
	case s.output.coded():
		err = encode(out, string(s.output), reply)
	case refused == nil:
		err = flush(out, func(w screen) { w.settled(s, reply) })
	}
	if err != nil {
		return err
	}
	return refused
}

// settled says what a node is now, and which declarations come and go by it.
func (w screen) settled(s setting, r wire.ChangeReply) {
	now := ""
	if r.Node != nil {
		now = strings.Join(known(append(settings(*r.Node), ruled(*r.Node)...)...), ", ")
	}
	if s.q.Remove {
		now = fmt.Sprintf("revision %d", r.Revision)
	}
	if now == dash("") {
		now = "nothing is set"
	}
	fmt.Fprintf(w, "%s %s: %s\n", s.done, s.q.Node, now)
	var rows [][]string
	for _, c := range r.Changes {
		switch {
		case c.Gains > 0:
			rows = append(rows, []string{c.Name, "comes", c.Unit})
		case c.Loses > 0:
			rows = append(rows, []string{c.Name, "leaves", c.Unit})
		}
	}
	if more := len(rows) - manyAlike; more > 0 {
		rows = append(rows[:manyAlike:manyAlike], []string{fmt.Sprintf("… and %s", count(more, "more declaration"))})
	}
	table(w, "  ", nil, rows)
}

// ruled are the settings of a node that are not as they are by themselves.
func ruled(n wire.Node) []string {
	var parts []string
	if n.Account != "" {
		parts = append(parts, "account "+n.Account)
	}
	if n.Linger != "" && n.Linger != wire.Lingers()[0] {
		parts = append(parts, "linger "+n.Linger)
	}
	return parts
}

// atLeast wants a node and so many arguments more, which what names.
func atLeast(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, given []string) error {
		switch {
		case len(given) == 0:
			return errors.New("NODE is missing")
		case len(given) <= n:
			return fmt.Errorf("%s is missing", what)
		}
		return nil
	}
}

// exactly wants a node and so many arguments more, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, given []string) error {
		if len(given) > n+1 {
			return fmt.Errorf("%q is one argument too many", given[n+1])
		}
		return atLeast(n, what)(c, given)
	}
}

func newNodeAdd(r *reach) *cobra.Command {
	return r.nodeCommand(&cobra.Command{
		Use:   "add NODE [KEY=VALUE]...",
		Short: "make a node known to the mesh before its host comes",
		Long: "add makes a node known, with labels, so that declarations can be addressed to\n" +
			"it; a node that was removed is known again. A host that comes with credentials\n" +
			"of the mesh is made known by itself.",
		Example: "  stead node add web1 role=web",
		Args:    atLeast(0, ""),
	}, "added", func(args []string) (wire.SettingsRequest, error) {
		set, unset, err := labelling(args)
		if err == nil && len(unset) > 0 {
			err = fmt.Errorf("%s-: a node that is added has no label to take away", unset[0])
		}
		return wire.SettingsRequest{Add: true, Labels: set}, err
	})
}

func newNodeLabel(r *reach) *cobra.Command {
	return r.nodeCommand(&cobra.Command{
		Use:   "label NODE KEY=VALUE|KEY-...",
		Short: "set labels of a node, and take them away",
		Long: "label sets a label by KEY=VALUE and takes one away by KEY-. Declarations that\n" +
			"are addressed to labels come and go with them.",
		Example: "  stead node label web1 role=web zone=a\n  stead node label web1 zone-",
		Args:    atLeast(1, "KEY=VALUE or KEY-"),
	}, "labelled", func(args []string) (wire.SettingsRequest, error) {
		set, unset, err := labelling(args)
		return wire.SettingsRequest{Labels: set, Unlabel: unset}, err
	})
}

// labelling reads KEY=VALUE and KEY-.
func labelling(args []string) (set map[string]string, unset []string, err error) {
	set = map[string]string{}
	for _, arg := range args {
		key, value, sets := strings.Cut(arg, "=")
		bare, takes := strings.CutSuffix(arg, "-")
		_, twice := set[key]
		switch {
		case sets && key != "" && !twice:
			set[key] = value
		case sets && twice:
			return nil, nil, fmt.Errorf("%q: the label %s is given twice", arg, key)
		case !sets && takes && bare != "":
			unset = append(unset, bare)
		default:
			return nil, nil, fmt.Errorf("%q is neither KEY=VALUE, which sets a label, nor KEY-, which takes one away", arg)
		}
	}
	for _, key := range unset {
		if _, both := set[key]; both {
			return nil, nil, fmt.Errorf("the label %s is set and taken away", key)
		}
	}
	slices.Sort(unset)
	return set, slices.Compact(unset), nil
}

func newNodeAccount(r *reach) *cobra.Command {
	return r.nodeCommand(&cobra.Command{
		Use:   "account NODE LOGIN|-",
		Short: "say whose units in user scope are kept on a node",
		Long: "account sets the operator account of a node: the Unix login whose user manager\n" +
			"runs its units in user scope. - takes it away.",
		Example: "  stead node account ws1 opal\n  stead node account ws1 -",
		Args:    exactly(1, "LOGIN"),
	}, "set", func(args []string) (wire.SettingsRequest, error) {
		login := args[0]
		if login == "-" {
			login = ""
		}
		return wire.SettingsRequest{Account: &login}, nil
	})
}

func newNodeLinger(r *reach) *cobra.Command {
	return r.nodeCommand(&cobra.Command{
		Use:   "linger NODE auto|on|off",
		Short: "say whether the account's units run while nobody is logged in",
		Long: "linger says whether the user manager of a node's account runs without a login:\n" +
			"on, off, or auto, which is on while something is declared in user scope.",
		Example: "  stead node linger ws1 on",
		Args:    exactly(1, "auto, on or off"),
	}, "set", func(args []string) (wire.SettingsRequest, error) {
		if !slices.Contains(wire.Lingers(), args[0]) {
			return wire.SettingsRequest{}, fmt.Errorf("%q is none of auto, on and off", args[0])
		}
		return wire.SettingsRequest{Linger: &args[0]}, nil
	})
}

func newNodeRemove(r *reach) *cobra.Command {
	return r.nodeCommand(&cobra.Command{
		Use:   "remove NODE",
		Short: "make a node unknown to the mesh",
		Long: "remove takes a node out of the mesh: nothing is addressed to it any more, and\n" +
			"its host is turned away. What is in force on it stays in force; withdraw first\n" +
			"what is to go. node add makes it known again.",
		Example: "  stead node remove ws9",
		Args:    exactly(0, ""),
	}, "removed", func([]string) (wire.SettingsRequest, error) { return wire.SettingsRequest{Remove: true}, nil })
}
