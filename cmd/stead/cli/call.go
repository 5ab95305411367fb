package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/client"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

// callFor is how long an answer of an act is waited for that is called by name.
const callFor = 100 * time.Second

func newCall(r *reach) *cobra.Command {
	var a address
	var output format
	c := asks(&cobra.Command{
		Use:   "call SEAT.VERB[@NODE|@all] [KEY=VALUE|KEY:=JSON]...",
		Short: "call a verb of a seat with arguments of one's own",
		Long: "call asks whoever holds a seat for one of its verbs, and prints the replies as\n" +
			"they come. KEY=VALUE is read as the verb's schema has it: a number, true or\n" +
			"false, a text, a list with commas between; KEY:=JSON is taken as it stands.\n" +
			"A verb that follows prints one reply a line, until it is interrupted.",
		Example: "  stead call node-service-manager.status@web1 unit=web lines=20\n  stead call node-service-manager.units@all states=failed,activating\n  stead call node-service-manager.journal@web1 unit=web follow=true",
		Args: func(_ *cobra.Command, given []string) error {
			if len(given) == 0 {
				return errors.New("SEAT.VERB is missing")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			what, err := parseCall(args[0])
			if err != nil {
				return usageError{err, "such as node-service-manager.status@web1; the seats are listed by: stead get seats"}
			}
			to, err := what.to(a)
			if err != nil {
				return usageError{err, c.CommandPath() + " --help"}
			}
			return r.call(c, what, callOptions{to, args[1:], output})
		},
	})
	a.whereFlags(r, c)
	formatFlag(c, &output)
	c.ValidArgsFunction = r.completeCall
	return c
}

// callee is SEAT.VERB@NODE, read.
type callee struct{ seat, verb, node string }

func parseCall(s string) (callee, error) {
	what, node, on := strings.Cut(s, "@")
	seat, verb, ok := strings.Cut(what, ".")
	if !ok || seat == "" || verb == "" || on && node == "" {
		return callee{}, fmt.Errorf("%q is not SEAT.VERB, nor SEAT.VERB@NODE", s)
	}
	return callee{seat, verb, node}, nil
}

// to is which nodes are asked: by what stands behind the verb, or by flags.
func (w callee) to(a address) (address, error) {
	if w.node == "" {
		return a, nil
	}
	if !a.bare() {
		return a, fmt.Errorf("@%s says which node, and flags do so too", w.node)
	}
	if w.node == "all" {
		a.all = true
		return a, nil
	}
	a.nodes = strings.Split(w.node, ",")
	return a, nil
}

type callOptions struct {
	address
	arguments []string
	output    format
}

// verb asks the mesh for a verb by its names.
func (r *reach) verb(ctx context.Context, l *link, w callee) (seats.Seat, seats.Verb, error) {
	reply, err := r.collect(ctx, l, wire.GetRequest{Kind: wire.Seats})
	if err != nil {
		return seats.Seat{}, seats.Verb{}, l.explain("get seats", err)
	}
	var all []seats.Seat
	for _, s := range reply.Seats {
		all = append(all, s.Seat)
	}
	seat, err := seats.Find(all, w.seat)
	if err != nil {
		return seats.Seat{}, seats.Verb{}, err
	}
	verb, err := seat.Find(w.verb)
	return seat, verb, err
}

func (r *reach) call(c *cobra.Command, w callee, o callOptions) error {
	return r.tour(c, &o.address, gatherFor, func(ctx context.Context, t *tour) error {
		seat, verb, err := r.verb(ctx, t.l, w)
		if err != nil {
			return err
		}
		arguments, err := argumentsOf(seat, verb, o.arguments)
		if err != nil {
			return err
		}
		v := client.Verb{Class: verb.Class, Seat: seat.Name, Name: verb.Name}
		if v.Class == subject.Write && !c.Flags().Changed("timeout") {
			t.limit = callFor
		}
		p := replyPrinter{w: r.o.screen(c.OutOrStdout()), format: o.output, named: len(t.nodes) > 1}
		if string(arguments["follow"]) == "true" && verb.Follows {
			return t.streams(ctx, v, behind(arguments), p.line)
		}
		if err := t.ask(ctx, v, arguments, func(node subject.Node, text json.RawMessage) error { return p.reply(t, node, text) }); err != nil {
			return err
		}
		if o.output.coded() {
			if err := t.coded(p.w, o.output); err != nil {
				return err
			}
		}
		return t.end(false)
	})
}

// behind makes the arguments for a stream behind a cursor of those for its
// beginning.
func behind(arguments map[string]json.RawMessage) func(cursor string) any {
	return func(cursor string) any {
		if cursor == "" {
			return arguments
		}
		now := map[string]json.RawMessage{}
		for key, value := range arguments {
			if key != "lines" { // of its beginning
				now[key] = value
			}
		}
		// A text always encodes.
		now["cursor"], _ = json.Marshal(cursor)
		return now
	}
}

// replyPrinter writes replies as they are.
type replyPrinter struct {
	w      screen
	format format
	named  bool // which node it is of stands above each
	told   bool
}

func (p *replyPrinter) reply(t *tour, node subject.Node, text json.RawMessage) error {
	if p.format.coded() {
		return t.keep(node, text)
	}
	return flush(p.w, func(w screen) {
		if p.named {
			if p.told {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "● %s\n", node)
		}
		p.told = true
		// It was decoded before, and so can be encoded.
		_ = encode(w, "json", text)
	})
}

// line writes a reply of a stream on one line, with the node where there are
// several.
func (p *replyPrinter) line(node subject.Node, text json.RawMessage) error {
	if p.named {
		wrapped, err := encoded(nodeAnswer{Node: string(node), Reply: text})
		if err != nil {
			return err
		}
		text = wrapped
	}
	_, err := fmt.Fprintf(p.w, "%s\n", text)
	return err
}

// invalidArgument is the error of an argument that a verb cannot take.
func invalidArgument(verb seats.Verb, key, format string, args ...any) error {
	return fault.New(fault.Invalid, fmt.Sprintf("argument %q of %s", key, verb.Name), "", fmt.Errorf(format, args...))
}
