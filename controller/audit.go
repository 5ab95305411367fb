package controller

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"stead/controller/assign"
	"stead/mesh/wire"
)

const (
	// auditQueue is how many events wait; whoever has more waits too.
	auditQueue = 16
	// auditPause is between two attempts to store events.
	auditPause = time.Second
	// auditEnd is how long a controller that ends goes on trying.
	auditEnd = 5 * time.Second
	// auditBack is how far back a controller that starts looks for commits whose
	// events a controller that was killed did not store. The stream knows for
	// longer what it has already.
	auditBack = 15 * time.Minute
)

// appender is the audit stream.
type appender interface {
	Append(ctx context.Context, events ...wire.Event) error
}

// audit puts what controllers did into the audit stream, behind the answers: who
// applies does not wait for a thousand lines. What is lost with a controller that
// is killed is found again by the next one that starts, since an event is made of
// nothing but what was committed, and its id is that of the commit.
type audit struct {
	to    appender
	log   *slog.Logger
	queue chan []wire.Event
}

func newAudit(to appender, log *slog.Logger) *audit {
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

// run stores events until ctx ends, and then those that wait.
func (a *audit) run(ctx context.Context) error {
	for {
		select {
		case events := <-a.queue:
			a.store(ctx, events)
		case <-ctx.Done():
			bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditEnd)
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
	for {
		// A commit that was cut short by the end is finished by it.
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditEnd)
		err := a.to.Append(bound, events...)
		cancel()
		if err == nil {
			return
		}
		a.log.Warn("audit", "error", err, "events", len(events), "retry", auditPause)
		select {
		case <-time.After(auditPause):
		case <-ctx.Done():
			return
		}
	}
}

// catchUp hands over what was committed in the time before now, once more.
func (a *audit) catchUp(ctx context.Context, st *assign.State, now time.Time) {
	since := now.Add(-auditBack)
	var events []wire.Event
	for _, name := range sortedKeys(st.Declarations) {
		if d := st.Declarations[name]; d.At.After(since) {
			events = append(events, ofDeclaration(st.Epoch, d, ""))
		}
	}
	for _, name := range sortedKeys(st.Nodes) {
		if n := st.Nodes[name]; n.At.After(since) {
			events = append(events, ofNode(st.Epoch, nil, n))
		}
	}
	a.add(ctx, events...)
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
	return events
}

func ofDeclaration(epoch string, d *assign.Declaration, how string) wire.Event {
	e := wire.Event{
		ID: auditID(epoch, d.Revision), At: d.At, Source: "controller", Who: d.By, Kind: "apply",
		Declaration: d.Name, Generation: d.Generation, Revision: d.Revision, Text: how,
	}
	switch {
	case d.Withdrawn:
		e.Kind, e.Text = "withdraw", "withdrawn"
	case d.Service != nil:
		e.Unit, e.Scope = string(d.Service.Unit), string(d.Service.Scope)
	}
	if e.Text == "" {
		e.Text = "declared"
	}
	return e
}

func ofNode(epoch string, before, n *assign.Node) wire.Event {
	return wire.Event{
		ID: auditID(epoch, n.Revision), At: n.At, Source: "controller", Who: n.By, Kind: "node",
		Node: n.Name, Revision: n.Revision, Text: nodeText(before, n),
	}
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
	if n.Account != before.Account {
		parts = append(parts, fmt.Sprintf("account %q", n.Account))
	}
	if n.Linger != before.Linger {
		parts = append(parts, "linger "+n.Linger)
	}
	return strings.Join(parts, ", ")
}

// auditID is that of what was committed at a revision.
func auditID(epoch string, revision uint64) string { return fmt.Sprintf("%s.%d", epoch, revision) }
