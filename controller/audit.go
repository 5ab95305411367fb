package controller

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/trail"
	"stead/mesh/wire"
)

const (
	// auditQueue is how many commits wait for their events to be stored; whoever
	// has more waits too.
	auditQueue = 16
	// auditPause is between two attempts to store events.
	auditPause = time.Second
	// auditFor bounds one attempt, and what a controller that ends still tries.
	auditFor = 5 * time.Second
	// auditBack is how far back from the last commit a controller that starts looks
	// for events that are missing, and auditPages how far it reads for that.
	auditBack  = 15 * time.Minute
	auditPages = 1000
)

// records are the audit stream.
type records interface {
	Append(ctx context.Context, events ...wire.Event) error
	Page(ctx context.Context, r wire.EventsRequest) (wire.EventsReply, error)
}

// audit puts what controllers did into the audit stream, behind the answers: who
// applies does not wait for a thousand lines. What is lost with a controller that
// is killed is found again by the next one that starts, since an event is made of
// nothing but what was committed, and its id is that of the commit.
type audit struct {
	to    records
	log   *slog.Logger
	queue chan []wire.Event
}

func newAudit(to records, log *slog.Logger) *audit {
	return &audit{to: to, log: log, queue: make(chan []wire.Event, auditQueue)}
}

// add hands events over. It waits while too many wait, until ctx ends.
func (a *audit) add(ctx context.Context, events ...wire.Event) {
	if len(events) == 0 {
		return
	}
	select {
	case a.queue <- events:
	case <-ctx.Done():
		a.log.Warn("audit events were not stored yet", "events", len(events), "first", events[0].ID)
	}
}

// run stores what is missing of the commits before now, then events as they
// come, until ctx ends, and then those that wait.
func (a *audit) run(ctx context.Context, now *assign.State) error {
	a.catchUp(ctx, now)
	for {
		select {
		case events := <-a.queue:
			a.store(ctx, events)
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditFor)
			defer cancel()
			for {
				select {
				case events := <-a.queue:
					a.store(bound, events)
				default:
					return nil
				}
			}
		}
	}
}

// store tries until it is done or ctx ends.
func (a *audit) store(ctx context.Context, events []wire.Event) {
	for some := range slices.Chunk(events, trail.MaxAppend) {
		for {
			// An attempt is not cut short by the end of the controller.
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditFor)
			err := a.to.Append(bound, some...)
			cancel()
			if err == nil {
				break
			}
			if !fault.ClassOf(err).Retry() {
				a.log.Error("audit events are lost", "error", err, "events", len(some), "first", some[0].ID)
				break
			}
			a.log.Warn("audit events are not stored", "error", err, "events", len(some), "retry", auditPause)
			select {
			case <-time.After(auditPause):
			case <-ctx.Done():
				return
			}
		}
	}
}

// catchUp stores the events of the last commits that the stream does not have.
func (a *audit) catchUp(ctx context.Context, st *assign.State) {
	recent, since := recentOf(st)
	if len(recent) == 0 {
		return
	}
	has := map[string]bool{}
	r := wire.EventsRequest{Since: since}
	for n := 0; ; n++ {
		page, err := a.to.Page(ctx, r)
		if err != nil || n == auditPages {
			// Better an event that is missing than all of them twice.
			a.log.Warn("audit events were not looked at", "error", err, "pages", n)
			return
		}
		for _, e := range page.Events {
			has[e.ID] = has[e.ID] || e.Source == source
		}
		if r.After = page.Next; !page.More {
			break
		}
	}
	missing := slices.DeleteFunc(recent, func(e wire.Event) bool { return has[e.ID] })
	if len(missing) > 0 {
		a.log.Info("audit events of a controller that was killed are stored", "events", len(missing))
		a.store(ctx, missing)
	}
}

// recentOf are the events of the commits up to auditBack before the last one, and
// since when that is.
func recentOf(st *assign.State) (events []wire.Event, since time.Time) {
	var last time.Time
	for _, d := range st.Declarations {
		last = latest(last, d.At)
	}
	for _, n := range st.Nodes {
		last = latest(last, n.At)
	}
	for _, one := range catalogued(st) {
		last = latest(last, one.At)
	}
	since = last.Add(-auditBack)
	for _, name := range sortedKeys(st.Declarations) {
		if d := st.Declarations[name]; !d.At.Before(since) {
			events = append(events, ofDeclaration(st.Epoch, d, ""))
		}
	}
	for _, name := range sortedKeys(st.Nodes) {
		if n := st.Nodes[name]; !n.At.Before(since) {
			events = append(events, ofNode(st.Epoch, nil, n))
		}
	}
	for _, one := range catalogued(st) {
		if !one.At.Before(since) {
			events = append(events, one.event(st.Epoch))
		}
	}
	slices.SortFunc(events, func(a, b wire.Event) int { return cmp.Compare(a.Revision, b.Revision) })
	return events, since
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// auditOf are the events of a commit.
func auditOf(before, after *assign.State, what []wire.Change) []wire.Event {
	how := make(map[string]string, len(what))
	for _, c := range what {
		text := c.How
		if len(c.Fields) > 0 {
			text += ": " + strings.Join(c.Fields, ", ")
		}
		how[c.Name] = text
	}
	var events []wire.Event
	for _, name := range sortedKeys(after.Declarations) {
		if d := after.Declarations[name]; d != before.Declarations[name] && d.Revision > before.Revision {
			events = append(events, ofDeclaration(after.Epoch, d, how[name]))
		}
	}
	for _, name := range sortedKeys(after.Nodes) {
		if n := after.Nodes[name]; n != before.Nodes[name] && n.Revision > before.Revision {
			events = append(events, ofNode(after.Epoch, before.Nodes[name], n))
		}
	}
	for _, one := range catalogued(after) {
		if one.Revision > before.Revision {
			events = append(events, one.event(after.Epoch))
		}
	}
	return events
}

func ofDeclaration(epoch string, d *assign.Declaration, how string) wire.Event {
	e := wire.Event{
		ID: auditID(epoch, d.Revision), At: d.At, Source: source, Who: d.By, Kind: "apply",
		Declaration: d.Name, Generation: d.Generation, Revision: d.Revision, Text: how,
	}
	switch {
	case d.Withdrawn:
		e.Kind, e.Text = "withdraw", "withdrawn"
	case d.Service != nil:
		e.Unit, e.Scope = string(d.Service.Object()), string(d.Service.Scope)
	}
	if e.Text == "" {
		e.Text = "declared"
	}
	return e
}

func ofNode(epoch string, before, n *assign.Node) wire.Event {
	e := wire.Event{
		ID: auditID(epoch, n.Revision), At: n.At, Source: source, Who: n.By, Kind: "node",
		Node: n.Name, Revision: n.Revision, Text: nodeText(before, n),
	}
	if kind, p := pausing(before, n); p != nil {
		e.Kind, e.Declaration, e.Unit, e.Scope, e.Text = kind, p.Declaration, string(p.Unit), string(p.Scope), p.String()
		if kind == resumed {
			e.Text = "it was paused " + e.Text
		}
	}
	return e
}

// nodeText says what became of a node.
func nodeText(before, n *assign.Node) string {
	var parts []string
	switch {
	case n.Removed:
		return "removed"
	case before == nil:
		parts = append(parts, "known")
	case before.Removed:
		parts = append(parts, "known again")
	}
	if before == nil {
		before = &assign.Node{}
	}
	for _, key := range sortedKeys(n.Labels) {
		if old, had := before.Labels[key]; !had || old != n.Labels[key] {
			parts = append(parts, "label "+key+"="+n.Labels[key])
		}
	}
	for _, key := range sortedKeys(before.Labels) {
		if _, has := n.Labels[key]; !has {
			parts = append(parts, "no label "+key)
		}
	}
	for _, capability := range n.Capabilities {
		if !before.Has(capability) {
			parts = append(parts, "reports "+capability)
		}
	}
	for _, capability := range before.Capabilities {
		if !n.Has(capability) {
			parts = append(parts, "reports no "+capability)
		}
	}
	if n.Account == "" && before.Account != "" {
		parts = append(parts, "no account")
	} else if n.Account != before.Account {
		parts = append(parts, fmt.Sprintf("account %q", n.Account))
	}
	if n.Linger != before.Linger {
		parts = append(parts, "linger "+n.Linger)
	}
	return strings.Join(parts, ", ")
}

// source is who tells of what was committed.
const source = "controller"

// auditID is that of what was committed at a revision.
func auditID(epoch string, revision uint64) string { return fmt.Sprintf("%s.%d", epoch, revision) }
