package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"stead/host/unit"
	"stead/mesh/wire"
)

// lastEvents is how many events are shown when nothing is said.
const lastEvents = 50

// mostEvents is how many a controller reads from the end (mesh/trail).
const mostEvents = 1000

// eventsOptions are the flags of events.
type eventsOptions struct {
	follow bool
	q      wire.EventsRequest
	since  string
	output format
}

func newEvents(r *reach) *cobra.Command {
	var o eventsOptions
	c := asks(&cobra.Command{
		Use:   "events",
		Short: "what happened in the mesh: who changed what, and what hosts did",
		Long: "events lists what people changed and what hosts did about it, the oldest first:\n" +
			"the newest 50, or all since a time. With --follow it goes on with what happens,\n" +
			"until it is interrupted.",
		Example: "  stead events --follow\n  stead events --declaration web --since 2h\n  stead events -n web1 --unit web.service --last 200",
		Args:    none,
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := o.request(r.o.Now())
			if err != nil {
				return err
			}
			return r.run(c.Context(), func(ctx context.Context, l *link) error { return r.events(ctx, c, l, q, o) })
		},
	})
	f := c.Flags()
	f.BoolVar(&o.follow, "follow", false, "go on with what happens")
	f.StringVarP(&o.q.Node, "node", "n", "", "only of `NODE`")
	f.StringVar(&o.q.Declaration, "declaration", "", "only of declaration `NAME`")
	f.StringVar(&o.q.Unit, "unit", "", "only of `UNIT`")
	f.StringVar(&o.since, "since", "", "since `TIME`: 2h ago, 15:04 today, or 2006-01-02 15:04")
	f.IntVar(&o.q.Last, "last", 0, "the newest `N` (default 50)")
	formatFlag(c, &o.output)
	complete(c, "node", r.completeNames(wire.Nodes))
	complete(c, "declaration", r.completeNames(wire.Declarations))
	for _, flag := range []string{"unit", "since", "last"} {
		complete(c, flag, cobra.NoFileCompletions)
	}
	return c
}

func (o eventsOptions) request(now time.Time) (wire.EventsRequest, error) {
	q := o.q
	q.Unit = unit.Full(q.Unit)
	if o.since != "" {
		at, err := moment(o.since, now)
		if err != nil {
			return q, usageError{fmt.Errorf("--since %s: %w", o.since, err), "such as 2h, 15:04, 2006-01-02, 2006-01-02 15:04 or 2006-01-02T15:04:05Z"}
		}
		q.Since = at
	}
	switch {
	case q.Last > mostEvents:
		return q, usageError{fmt.Errorf("--last %d: at most %d are read from the end", q.Last, mostEvents), "stead events --since 24h reads as many as there are"}
	case q.Last < 0:
		return q, usageError{errors.New("--last is a number of events"), "stead events --last 200"}
	case q.Last == 0 && q.Since.IsZero():
		q.Last = lastEvents
	}
	return q, nil
}

// moment reads a time as people write it: how long ago, or when.
func moment(s string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	now = now.Local()
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.Local), nil
		}
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("it is no time")
}

// events shows pages of events as they come.
func (r *reach) events(ctx context.Context, c *cobra.Command, l *link, q wire.EventsRequest, o eventsOptions) error {
	t := teller{w: r.o.screen(c.OutOrStdout()), format: o.output, lines: o.follow}
	if o.follow {
		err := l.Follow(ctx, q, func(page wire.EventsReply) error { return t.tell(page.Events) }, func(err error) {
			warn(c.ErrOrStderr(), []string{l.explain("events", err).Error() + "; asking on"})
		})
		return l.explain("events", err)
	}
	for {
		bound, cancel := r.bound(ctx)
		page, err := l.Events(bound, q)
		cancel()
		if err != nil {
			return l.explain("events", err)
		}
		if err := t.tell(page.Events); err != nil {
			return err
		}
		if !page.More {
			return t.end()
		}
		q.After = page.Next
	}
}

// teller writes events, page after page, in columns that only grow.
type teller struct {
	w      screen
	format format
	lines  bool // one JSON object a line, as they come
	all    []wire.Event
	wide   []int
	told   bool
}

func (t *teller) tell(page []wire.Event) error {
	switch {
	case len(page) == 0:
		return nil
	case t.format.coded() && !t.lines:
		t.all = append(t.all, page...)
		return nil
	case t.format.coded():
		e := json.NewEncoder(t.w)
		e.SetEscapeHTML(false)
		for _, event := range page {
			if err := e.Encode(event); err != nil {
				return err
			}
		}
		return nil
	}
	t.told = true
	rows := make([][]string, 0, len(page))
	for _, e := range page {
		rows = append(rows, t.w.event(e, t.format == "wide"))
	}
	for i, n := range widths(rows) {
		if i == len(t.wide) {
			t.wide = append(t.wide, 0)
		}
		t.wide[i] = max(t.wide[i], n)
	}
	return flush(t.w, func(w screen) {
		for _, row := range rows {
			fmt.Fprintln(w, aligned("", t.wide, row))
		}
	})
}

// end is after the last page.
func (t *teller) end() error {
	switch {
	case t.format.coded():
		if t.all == nil {
			t.all = []wire.Event{}
		}
		return encode(t.w, string(t.format), t.all)
	case !t.told:
		_, err := io.WriteString(t.w, "no events\n")
		return err
	}
	return nil
}

// event is one line: when, who, where, of what, what happened, and why.
func (w screen) event(e wire.Event, wide bool) []string {
	who := e.Source
	if e.Who != "" {
		who = person(e.Who)
	}
	what := e.Unit
	if what == "" {
		what = e.Declaration
	}
	if wide {
		return []string{w.format(e.At, "15:04:05.000"), dash(e.Source), dash(e.Who), dash(e.Node), dash(e.Declaration), dash(e.Unit), e.Kind, saying(e)}
	}
	return []string{w.when(e.At), text.Snip(who, 24, "…"), dash(e.Node), dash(what), e.Kind, saying(e)}
}

// saying is the sentence of an event behind its outcome, or what there is in its
// place.
func saying(e wire.Event) string {
	if e.Text != "" {
		return because(e.Outcome, e.Text)
	}
	return because(e.Outcome, e.Reason)
}
