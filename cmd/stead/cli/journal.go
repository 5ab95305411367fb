package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/spf13/cobra"

	"stead/host/fault"
	"stead/mesh/client"
	"stead/mesh/subject"
	"stead/seats"
)

const (
	// newestRead and newestFollowed are how many entries are shown when nothing is
	// said.
	newestRead     = 100
	newestFollowed = 10
)

// bootValue is what may stand behind -b as another argument.
var bootValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([+-]?[0-9]+|[0-9a-f]{32}([+-][0-9]+)?|all)$`) })

// journalOptions are the flags of journal.
type journalOptions struct {
	address
	q      seats.JournalArguments
	lines  int
	output format
}

func newJournal(r *reach) *cobra.Command {
	var o journalOptions
	c := asks(&cobra.Command{
		Use:   "journal",
		Short: "read the journal of nodes, and follow it",
		Long: "journal shows log entries of nodes, the oldest first: the newest 100, or all\n" +
			"since a time. Those of several nodes are put in order of time, with the name of\n" +
			"the node in each. With -f it goes on with what comes, until it is interrupted;\n" +
			"what a loss of the connection holds up comes later, and once.\n\n" +
			"What a process sends to syslog or the journal itself, and ends at once, may be\n" +
			"there without its unit: systemd did not find it in time. Without -u it is shown.",
		Example: "  stead journal -u web -n web1\n  stead journal -u web -f -l role=web\n  stead journal -p err -S yesterday --all\n  stead journal -u web --boot=-1 -g refused -o json -n web1",
		Args: func(_ *cobra.Command, given []string) error {
			if err := none(nil, given); err != nil {
				return usageError{err, "entries of a unit: stead journal -u " + given[0]}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("lines") {
				o.q.Lines = &o.lines
			}
			return r.journal(c, o)
		},
	})
	o.whereFlags(r, c)
	f := c.Flags()
	f.StringVarP(&o.q.Unit, "unit", "u", "", "only of `UNIT`, or of those that a glob means")
	f.BoolVarP(&o.q.Follow, "follow", "f", false, "go on with what comes")
	f.IntVar(&o.lines, "lines", 0, "the newest `N`, 0 to 10000 (default 100, with -f 10)")
	f.StringVarP(&o.q.Since, "since", "S", "", "since `TIME`, as journalctl has it: -1h, yesterday, 2006-01-02 15:04")
	f.StringVarP(&o.q.Until, "until", "U", "", "until `TIME`")
	f.StringVarP(&o.q.Priority, "priority", "p", "", "of `PRIORITY` and above: 0 to 7, a name such as err, or a range")
	f.StringVarP(&o.q.Grep, "grep", "g", "", "whose message matches `PATTERN`")
	f.StringVarP(&o.q.Boot, "boot", "b", "", "of `BOOT`: an offset, an id or all; alone, of this one")
	f.Lookup("boot").NoOptDefVal = "0"
	f.StringVar(&o.q.Cursor, "cursor", "", "behind the entry with `CURSOR`, of one node")
	o.scopeFlags(c)
	formatFlag(c, &o.output)
	complete(c, "priority", cobra.FixedCompletions(priorities(), cobra.ShellCompDirectiveNoFileComp))
	complete(c, "unit", r.completeUnits(&o.address, loadedUnits|unitFiles))
	for _, flag := range []string{"lines", "since", "until", "grep", "boot", "cursor"} {
		complete(c, flag, cobra.NoFileCompletions)
	}
	c.ValidArgsFunction = cobra.NoFileCompletions
	return c
}

func priorities() []string {
	return []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"}
}

func (r *reach) journal(c *cobra.Command, o journalOptions) error {
	q := o.q
	q.Scope = o.scope()
	if q.Lines == nil && q.Since == "" && q.Cursor == "" {
		lines := newestRead
		if q.Follow {
			lines = newestFollowed
		}
		q.Lines = &lines
	}
	if q.Follow && q.Until != "" {
		return usageError{errors.New("--follow goes on for ever, and --until ends"), "stead journal --help"}
	}
	return r.tour(c, &o.address, patience, func(ctx context.Context, t *tour) error {
		if q.Cursor != "" && len(t.nodes) > 1 {
			return usageError{fmt.Errorf("a cursor is of one node, and %d are asked", len(t.nodes)), "-n NODE"}
		}
		p := &entryPrinter{w: r.o.screen(c.OutOrStdout()), format: o.output, named: len(t.nodes) > 1}
		if q.Follow {
			return t.follow(ctx, p, q)
		}
		return t.journal(ctx, p, q)
	})
}

// source is the journal of one node, as far as it was read.
type source struct {
	node  subject.Node
	reply seats.JournalReply
	left  int // entries that are wanted still; below 0: all
}

// journal reads the journals of all nodes page by page, and prints them in order
// of time.
func (t *tour) journal(ctx context.Context, p *entryPrinter, q seats.JournalArguments) error {
	v := manager(subject.Read, seats.Journal)
	var all []*source
	err := t.ask(ctx, v, q, func(node subject.Node, text json.RawMessage) error {
		s := &source{node: node, left: -1}
		if q.Lines != nil {
			s.left = *q.Lines
		}
		all = append(all, s)
		return t.page(v, s, text)
	})
	if err != nil {
		return err
	}
	for {
		for _, s := range all {
			if err := t.refill(ctx, v, s, q); err != nil {
				return err
			}
		}
		next := earliest(all)
		if next == nil {
			break
		}
		entry := next.reply.Entries[0]
		next.reply.Entries = next.reply.Entries[1:]
		if err := p.print(next.node, entry, next.reply.Omitted); err != nil {
			return err
		}
	}
	if !t.told && len(t.silent) == 0 {
		if err := p.end(); err != nil {
			return err
		}
	}
	return t.end(false)
}

// page takes one page of a source.
func (t *tour) page(v client.Verb, s *source, text json.RawMessage) error {
	reply, err := read[seats.JournalReply](t, v, s.node, text)
	if err != nil {
		return err
	}
	if reply.More && reply.Cursor == s.reply.Cursor {
		return t.onNode(v, s.node, fault.New(fault.Internal, "", "", fmt.Errorf("the page behind %q leads to itself", reply.Cursor)))
	}
	t.lost(s.node, reply)
	if s.reply = reply; s.left >= 0 {
		s.left = max(0, s.left-len(reply.Entries))
	}
	return nil
}

// lost says where entries may be missing.
func (t *tour) lost(node subject.Node, reply seats.JournalReply) {
	if reply.Lost {
		warn(t.log, []string{fmt.Sprintf("journal on %s: the entry of the cursor is no longer there; what came behind it may be missing", node)})
	}
}

// refill reads the next page of a source that is empty and has more.
func (t *tour) refill(ctx context.Context, v client.Verb, s *source, q seats.JournalArguments) error {
	for len(s.reply.Entries) == 0 && s.reply.More && s.left != 0 {
		if q.Cursor, q.Lines = s.reply.Cursor, nil; s.left > 0 {
			q.Lines = &s.left
		}
		s.reply.More = false // unless the answer says so
		err := t.again(ctx, v, s.node, q, func(_ subject.Node, text json.RawMessage) error { return t.page(v, s, text) })
		if err != nil {
			return err
		}
	}
	return nil
}

// earliest is the source with the oldest entry; of equal ones the first.
func earliest(all []*source) *source {
	var first *source
	var at int64
	for _, s := range all {
		if len(s.reply.Entries) == 0 {
			continue
		}
		if now := moments(s.reply.Entries[0]); first == nil || now < at {
			first, at = s, now
		}
	}
	return first
}

// follow prints the journals of all nodes as they come, until ctx ends.
func (t *tour) follow(ctx context.Context, p *entryPrinter, q seats.JournalArguments) error {
	v := manager(subject.Read, seats.Journal)
	arguments := func(cursor string) any {
		if now := q; cursor != "" {
			now.Cursor, now.Lines = cursor, nil
			return now
		}
		return q
	}
	return t.streams(ctx, v, arguments, func(node subject.Node, text json.RawMessage) error {
		reply, err := read[seats.JournalReply](t, v, node, text)
		if err != nil {
			return err
		}
		t.lost(node, reply)
		for _, e := range reply.Entries {
			if err := p.print(node, e, reply.Omitted); err != nil {
				return err
			}
		}
		return nil
	})
}
