package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"stead/cmd/stead/contexts"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// getOptions are the flags of get.
type getOptions struct {
	nodes  []string
	labels labels
	output format
}

func newGet(r *reach) *cobra.Command {
	c := group(&cobra.Command{
		Use:   "get",
		Short: "list what is declared, the nodes, or how everything stands",
		Long:  "get lists what the mesh knows, one thing a line.",
	})
	c.AddCommand(newGetDeclarations(r), newGetNodes(r), newGetReports(r), newGetSeats(r), newGetModules(r), newGetHolders(r))
	return c
}

func newGetDeclarations(r *reach) *cobra.Command {
	return r.getter(wire.Declarations, &cobra.Command{
		Use:   "declarations [NAME]...",
		Short: "list what is declared, for which nodes, and how far it has come",
		Long: "declarations lists what is declared in the mesh: all of it, what is named, or\n" +
			"what -n or -l address. -o json and yaml hold what each of them declares.",
		Example: "  stead get declarations\n  stead get declarations web -o yaml\n  stead get declarations -n web1",
	})
}

func newGetNodes(r *reach) *cobra.Command {
	return r.getter(wire.Nodes, &cobra.Command{
		Use:   "nodes [NAME]...",
		Short: "list the nodes of the mesh",
		Long: "nodes lists the machines of the mesh: whether their host was heard of in the\n" +
			"last two minutes, their labels, and how much of what is declared there is so.",
		Example: "  stead get nodes\n  stead get nodes -l role=web -o wide",
	})
}

func newGetReports(r *reach) *cobra.Command {
	return r.getter(wire.Reports, &cobra.Command{
		Use:   "reports [NAME]...",
		Short: "list how every declaration stands on every node",
		Long: "reports lists what hosts say of each declaration on their node: its outcome,\n" +
			"since when, and why. NAME is that of a declaration.",
		Example: "  stead get reports\n  stead get reports web\n  stead get reports -n web1 -o wide",
	})
}

func newGetSeats(r *reach) *cobra.Command {
	return r.getter(wire.Seats, &cobra.Command{
		Use:   "seats [NAME]...",
		Short: "list what nodes can be asked: seats, and their verbs",
		Long: "seats lists the named roles of the mesh: their verbs, and on how many nodes a\n" +
			"module holds them. -o json and yaml hold the schemas of arguments and replies.",
		Example: "  stead get seats\n  stead get seats node-service-manager -o yaml",
	})
}

func newGetModules(r *reach) *cobra.Command {
	return r.getter(wire.Modules, &cobra.Command{
		Use:   "modules [NAME]...",
		Short: "list the modules of the mesh, and where they are",
		Long: "modules lists what serves verbs on nodes: which capability a module requires,\n" +
			"which seats it claims, and to how many nodes it is assigned.",
		Example: "  stead get modules\n  stead get modules -n web1",
	})
}

func newGetHolders(r *reach) *cobra.Command {
	return r.getter(wire.Holders, &cobra.Command{
		Use:   "holders [SEAT]...",
		Short: "list which module holds which seat on which node",
		Long: "holders lists the seats of each node, with the module whose claim to one was\n" +
			"accepted. A seat that nobody holds there answers no call.",
		Example: "  stead get holders\n  stead get holders node-service-manager -l role=web",
	})
}

// getter makes c list what is of kind.
func (r *reach) getter(kind string, c *cobra.Command) *cobra.Command {
	o := getOptions{labels: labels{}}
	asks(c)
	f := c.Flags()
	if kind != wire.Nodes && kind != wire.Seats {
		f.StringSliceVarP(&o.nodes, "node", "n", nil, "only of `NODE`; may be given again")
		complete(c, "node", r.completeNames(wire.Nodes))
	}
	if kind != wire.Seats {
		f.VarP(o.labels, "labels", "l", "only of nodes that carry `KEY=VALUE`; may be given again")
	}
	formatFlag(c, &o.output)
	c.ValidArgsFunction = r.completeNames(kind)
	switch kind {
	case wire.Reports:
		c.ValidArgsFunction = r.completeNames(wire.Declarations)
	case wire.Holders:
		c.ValidArgsFunction = r.completeNames(wire.Seats)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		q := wire.GetRequest{Kind: kind, Names: args, Nodes: o.nodes, Labels: o.labels}
		if kind == wire.Nodes {
			q.Names, q.Nodes = nil, args
		}
		q.Content = kind == wire.Declarations && o.output.coded()
		return r.run(c.Context(), func(ctx context.Context, l *link) error { return r.get(ctx, c, l, q, o.output) })
	}
	return c
}

// get shows the answer to q, and then what is the matter with it.
func (r *reach) get(ctx context.Context, c *cobra.Command, l *link, q wire.GetRequest, f format) error {
	reply, err := r.collect(ctx, l, q)
	if err != nil {
		return l.explain("get "+q.Kind, err)
	}
	if len(q.Names) > 0 {
		l.sight(ctx, c, reply)
	}
	out := r.o.screen(c.OutOrStdout())
	if f.coded() {
		err = encode(out, string(f), reply)
	} else {
		err = flush(out, func(w screen) { w.got(q.Kind, reply, f == "wide") })
	}
	if err != nil {
		return err
	}
	return missing(q, reply)
}

// collect puts all pages together. The error is that of the client.
func (r *reach) collect(ctx context.Context, l *link, q wire.GetRequest) (wire.GetReply, error) {
	ctx, cancel := r.bound(ctx)
	defer cancel()
	var all wire.GetReply
	err := l.Get(ctx, q, func(page wire.GetReply) error {
		all.Mesh, all.Epoch, all.Revision, all.Trouble = page.Mesh, page.Epoch, page.Revision, page.Trouble
		all.Declarations = append(all.Declarations, page.Declarations...)
		all.Nodes = append(all.Nodes, page.Nodes...)
		all.Reports = append(all.Reports, page.Reports...)
		all.Seats = append(all.Seats, page.Seats...)
		all.Modules = append(all.Modules, page.Modules...)
		all.Holders = append(all.Holders, page.Holders...)
		for _, name := range page.Missing {
			if !slices.Contains(all.Missing, name) {
				all.Missing = append(all.Missing, name)
			}
		}
		if all.Closest == nil {
			all.Closest = page.Closest
		}
		return nil
	})
	return all, err
}

// sight remembers the declarations that were asked for by name and shown with
// what they declare, and that others are not there.
func (l *link) sight(ctx context.Context, c *cobra.Command, reply wire.GetReply) {
	s := contexts.Sight{Epoch: reply.Epoch, Revision: reply.Revision, Marks: map[string]wire.Mark{}}
	for _, d := range reply.Declarations {
		if len(d.Canonical) > 0 {
			s.Marks[d.Name] = d.Mark
		}
	}
	for _, name := range reply.Missing {
		s.Marks[name] = ""
	}
	l.remember(ctx, c.ErrOrStderr(), s)
}

// missing is the error of an answer that cannot be trusted, or in which
// something lacks that was named.
func missing(q wire.GetRequest, reply wire.GetReply) error {
	if reply.Trouble != "" {
		return distrust(reply.Trouble)
	}
	if len(reply.Missing) == 0 {
		return nil
	}
	name := reply.Missing[0]
	what := map[string]string{wire.Seats: "seat", wire.Holders: "seat", wire.Modules: "module"}[q.Kind]
	what = cmp.Or(what, "declaration")
	if slices.Contains(q.Nodes, name) && !slices.Contains(q.Names, name) {
		what = "node"
	}
	f := unknown(what, name, reply.Closest[name], "stead get "+q.Kind)
	if len(reply.Missing) > 1 {
		return fault.New(fault.NotFound, "", "", fmt.Errorf("not known: %s", some(reply.Missing))).WithHint(f.Hint)
	}
	return f
}

// distrust is the error of mesh state that is not what controllers wrote.
func distrust(trouble string) error {
	return fault.New(fault.Failed, "mesh state cannot be trusted", "", fmt.Errorf("%s", trouble)).
		WithHint("nothing is told to nodes, which keep what they have; put a backup back, or: stead controller run --begin-epoch")
}

// completeNames completes what the mesh knows of a kind, where it answers at once.
func (r *reach) completeNames(kind string) cobra.CompletionFunc {
	return func(c *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var names []string
		r.brief(c, func(ctx context.Context, l *link) error {
			reply, err := r.collect(ctx, l, wire.GetRequest{Kind: kind})
			for _, d := range reply.Declarations {
				names = append(names, d.Name)
			}
			for _, n := range reply.Nodes {
				names = append(names, n.Name)
			}
			for _, s := range reply.Seats {
				names = append(names, string(s.Name))
			}
			for _, m := range reply.Modules {
				names = append(names, m.Name)
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// nodeNames wants the names of nodes.
func nodeNames(given []string) error {
	for _, name := range given {
		if _, err := subject.ParseNode(name); err != nil {
			return usageError{err, "the names of nodes are listed by: stead get nodes"}
		}
	}
	return nil
}
