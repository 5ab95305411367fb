package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// strangersFor is how long is waited for a controller that knows the names of
// nodes, once one did not answer.
const strangersFor = 2 * time.Second

// address is which nodes a command asks, and in which scope.
type address struct {
	nodes  []string
	labels labels
	all    bool
	user   bool
	system bool
}

// whereFlags gives c those that say which nodes.
func (a *address) whereFlags(r *reach, c *cobra.Command) {
	a.labels = labels{}
	f := c.Flags()
	f.StringSliceVarP(&a.nodes, "node", "n", nil, "on `NODE`; may be given again")
	f.VarP(a.labels, "labels", "l", "on nodes that carry `KEY=VALUE`; may be given again")
	f.BoolVar(&a.all, "all", false, "on all nodes")
	complete(c, "node", r.completeNames(wire.Nodes))
	complete(c, "labels", cobra.NoFileCompletions)
}

// scopeFlags gives c the flags that say which scope.
func (a *address) scopeFlags(c *cobra.Command) {
	c.Flags().BoolVar(&a.user, "user", false, "of the user manager of the node's account")
	c.Flags().BoolVar(&a.system, "system", false, "of the system manager")
}

// check wants one way of addressing, and one scope.
func (a *address) check(c *cobra.Command) error {
	help := c.CommandPath() + " --help"
	switch {
	case a.all && (len(a.nodes) > 0 || len(a.labels) > 0):
		return usageError{errors.New("--all is every node, and others are named besides"), help}
	case a.user && a.system:
		return usageError{errors.New("--user and --system contradict each other"), help}
	}
	return nodeNames(a.nodes)
}

// scope is the argument of verbs, "" for what each of them has without one.
func (a *address) scope() string {
	switch {
	case a.user:
		return "user"
	case a.system:
		return "system"
	}
	return ""
}

// bare reports whether nothing says which nodes.
func (a *address) bare() bool { return !a.all && len(a.nodes) == 0 && len(a.labels) == 0 }

// named are the nodes that a names and nothing else picks from: they can be asked
// while no controller answers. Whether there are such nodes is not known.
func (a *address) named() []subject.Node {
	var nodes []subject.Node
	for _, name := range a.nodes {
		if n := subject.Node(name); len(a.labels) == 0 && !slices.Contains(nodes, n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// find asks the mesh which nodes a means: without a word the only one that there
// is.
func (a *address) find(ctx context.Context, r *reach, l *link) ([]subject.Node, error) {
	q := wire.GetRequest{Kind: wire.Nodes, Nodes: a.nodes, Labels: a.labels}
	reply, err := r.collect(ctx, l, q)
	if err != nil {
		return nil, l.explain("get nodes", err)
	}
	if err := missing(q, reply); err != nil {
		return nil, err
	}
	var nodes []subject.Node
	var names []string
	for _, n := range reply.Nodes {
		if n.State == wire.Removed {
			continue
		}
		nodes, names = append(nodes, subject.Node(n.Name)), append(names, n.Name)
	}
	switch {
	case len(nodes) == 0 && !a.bare() && !a.all:
		return nil, fault.New(fault.NotFound, "", "", fmt.Errorf("no node is meant by %s", a)).WithHint("stead get nodes")
	case len(nodes) == 0:
		return nil, fault.New(fault.NotFound, "", "", errors.New("the mesh has no node")).WithHint("stead get nodes")
	case a.bare() && len(nodes) > 1:
		return nil, usageError{fmt.Errorf("the mesh has %d nodes, and none is named", len(nodes)), "-n NODE, -l KEY=VALUE or --all; the nodes are " + some(names)}
	}
	return nodes, nil
}

// strangers is the error of a name that no node has. Where no controller says so
// soon, there is none.
func (a *address) strangers(ctx context.Context, r *reach, l *link) error {
	ctx, cancel := context.WithTimeout(ctx, strangersFor)
	defer cancel()
	q := wire.GetRequest{Kind: wire.Nodes, Nodes: a.nodes}
	reply, err := r.collect(ctx, l, q)
	if err != nil || len(reply.Missing) == 0 {
		return nil
	}
	return missing(q, reply)
}

func (a *address) String() string {
	var parts []string
	for _, n := range a.nodes {
		parts = append(parts, "-n "+n)
	}
	if len(a.labels) > 0 {
		parts = append(parts, "-l "+a.labels.String())
	}
	return strings.Join(parts, " ")
}
