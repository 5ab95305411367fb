package cli

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/host/unit"
	"stead/mesh/client"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

// completeFor is how long a shell that completes is kept waiting.
const completeFor = 2 * time.Second

// unitSource is where the names of units come from that a shell completes.
type unitSource int

const (
	loadedUnits unitSource = 1 << iota
	unitFiles
)

// brief calls f with a connection, for a shell that completes: it is told nothing
// of errors, and not kept waiting.
func (r *reach) brief(c *cobra.Command, f func(context.Context, *link) error) {
	r.timeout = waitTime(min(time.Duration(r.timeout), completeFor))
	ctx, cancel := context.WithTimeout(c.Context(), completeFor)
	defer cancel()
	_ = r.run(ctx, f)
}

// completeUnits completes the names of units, of the nodes that a means.
func (r *reach) completeUnits(a *address, from unitSource) cobra.CompletionFunc {
	return func(c *cobra.Command, before []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if strings.ContainsAny(start, `*?[\`) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := map[string]bool{}
		r.brief(c, func(ctx context.Context, l *link) error {
			nodes := a.named()
			if nodes == nil {
				var err error
				if nodes, err = a.find(ctx, r, l); err != nil {
					return err
				}
			}
			for _, q := range from.questions(start, a.scope()) {
				client.NewVerbs(l.conn).CallEach(ctx, manager(subject.Read, seats.Units), nodes, q, func(a client.Answer) { take(names, a) })
			}
			return nil
		})
		maps.DeleteFunc(names, func(n string, _ bool) bool { return slices.Contains(before, n) })
		return slices.Sorted(maps.Keys(names)), cobra.ShellCompDirectiveNoFileComp
	}
}

func (s unitSource) questions(start, scope string) (all []seats.UnitsArguments) {
	q := seats.UnitsArguments{Patterns: []string{start + "*"}, Scope: scope}
	if s&loadedUnits != 0 {
		loaded := q
		loaded.All = true
		all = append(all, loaded)
	}
	if s&unitFiles != 0 {
		files := q
		files.Files = true
		all = append(all, files)
	}
	return all
}

// take adds the names of units that a shell may complete to.
func take(names map[string]bool, a client.Answer) {
	var reply seats.UnitsReply
	if a.Err != nil || json.Unmarshal(a.Reply, &reply) != nil {
		return
	}
	for _, u := range reply.Units {
		if u.Load != "not-found" && !unit.Name(u.Name).IsTemplate() {
			names[u.Name] = true
		}
	}
}

// completeCall completes SEAT.VERB, the nodes behind an @, and then the arguments
// of the verb.
func (r *reach) completeCall(c *cobra.Command, before []string, start string) ([]cobra.Completion, cobra.ShellCompDirective) {
	what, _, on := strings.Cut(start, "@")
	if len(before) == 0 && on {
		nodes, directive := r.completeNames(wire.Nodes)(c, nil, "")
		for i, n := range nodes {
			nodes[i] = what + "@" + n
		}
		return append(nodes, what+"@all"), directive
	}
	var names []string
	r.brief(c, func(ctx context.Context, l *link) error {
		reply, err := r.collect(ctx, l, wire.GetRequest{Kind: wire.Seats})
		for _, s := range reply.Seats {
			for _, v := range s.Verbs {
				if len(before) == 0 {
					names = append(names, string(s.Name)+"."+string(v.Name))
				} else if of, _, _ := strings.Cut(before[0], "@"); of == string(s.Name)+"."+string(v.Name) {
					names = argumentNames(v)
				}
			}
		}
		return err
	})
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// argumentNames are the arguments of a verb, as they are begun.
func argumentNames(v seats.Verb) (names []string) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(v.Arguments, &schema) != nil {
		return nil
	}
	for name := range schema.Properties {
		names = append(names, name+"=")
	}
	return names
}
