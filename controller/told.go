package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/trail"
	"stead/mesh/wire"
)

// maxWords is how much of a node's trouble is logged, in bytes.
const maxWords = 1 << 10

// profiled takes what a host says of its node. It may be the first that is heard
// of it.
func (d *desk) profiled(ctx context.Context, caller identity.Caller, p wire.Profile) (wire.ProfileReply, error) {
	if text := removed(d.store.Now(), caller.Name); text != "" {
		return wire.ProfileReply{Removed: text}, nil
	}
	// What it is comes first: an apply that is judged as soon as the node is known
	// is judged on it.
	before := d.store.Double(caller.Name)
	if err := d.store.PutProfile(ctx, caller.Name, p); err != nil {
		return wire.ProfileReply{}, err
	}
	d.double(ctx, caller.Name, before)
	_, err := d.known(ctx, caller)
	return wire.ProfileReply{}, err
}

// report takes how declarations stand on a node. It does so also while mesh state
// is not sound: what a host does is true all the same.
func (d *desk) report(ctx context.Context, caller identity.Caller, b wire.ReportBatch) (wire.ReportReply, error) {
	if err := d.present(caller.Name); err != nil {
		return wire.ReportReply{}, err
	}
	d.troubles.note(caller.Name, b.Source.Trouble)
	full, err := d.store.StoreReports(ctx, caller.Name, b)
	return wire.ReportReply{Full: full}, err
}

// event takes what happened on a node. Who tells it is written by the controller.
func (d *desk) event(ctx context.Context, caller identity.Caller, b wire.EventBatch) (wire.EventReply, error) {
	if err := d.present(caller.Name); err != nil {
		return wire.EventReply{}, err
	}
	if len(b.Events) > trail.MaxAppend {
		return wire.EventReply{}, fault.New(fault.Invalid, "event", caller.Name, fmt.Errorf("%d events; at most %d", len(b.Events), trail.MaxAppend))
	}
	for i := range b.Events {
		e := &b.Events[i]
		if e.ID == "" || len(e.ID) > 128 {
			return wire.EventReply{}, fault.New(fault.Invalid, "event", caller.Name, fmt.Errorf("event %d has no id of 1 to 128 bytes", i+1))
		}
		e.Node, e.Source = caller.Name, string(caller.Role)
		e.ID = e.Source + "/" + e.ID // no node foresees the id of a controller's event
		if caller.Role == identity.Host {
			e.Who = "" // a host knows of nobody
		}
	}
	return wire.EventReply{}, d.trail.Append(ctx, b.Events...)
}

// cut shortens a text, between two characters.
func cut(s string) string {
	if len(s) <= maxWords {
		return s
	}
	n := maxWords
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// troubles logs why nodes do not accept what they are told, once for each reason.
type troubles struct {
	log *slog.Logger
	mu  sync.Mutex
	of  map[string]string
}

func newTroubles(log *slog.Logger) *troubles { return &troubles{log: log, of: map[string]string{}} }

func (t *troubles) note(node, trouble string) {
	t.mu.Lock()
	last := t.of[node]
	if trouble == "" {
		delete(t.of, node)
	} else {
		t.of[node] = cut(trouble)
	}
	t.mu.Unlock()
	switch {
	case trouble != "" && cut(trouble) != last:
		t.log.Warn("node does not accept its index", "node", node, "reason", cut(trouble))
	case trouble == "" && last != "":
		t.log.Info("node accepts its index again", "node", node)
	}
}
