package controller

import (
	"context"
	"fmt"
	"time"

	"stead/controller/admit"
	"stead/controller/assign"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

// pause leaves a unit of a node as it is for a while, or ends that. A node that is
// silent heeds it when it hears of it.
func (d *desk) pause(ctx context.Context, caller identity.Caller, r wire.PauseRequest) (wire.ChangeReply, error) {
	reply, err := d.change(ctx, caller, request{judge: func(b admit.Basis) (admit.Decision, error) { return admit.Pause(b, r) }})
	if err != nil || held(reply) {
		return reply, err
	}
	if n := d.show(&reply, r.Node); n != nil && reply.Node.State == wire.Silent {
		reply.Warnings = append(reply.Warnings, fmt.Sprintf("%s is silent: its host heeds this when it hears of it", r.Node))
	}
	return reply, nil
}

// resumed is the kind of the event of a pause that ended before its time.
const resumed = "resume"

// pausing says which unit was paused or resumed between two records of a node; nil
// when that is not all that happened. Of a record whose one before is not known it
// is the pause that was made with it.
func pausing(before, n *assign.Node) (kind string, p *wire.Pause) {
	for i := range n.Pauses {
		p := &n.Pauses[i]
		if before == nil && p.By == n.By && !p.At.Before(n.At.Truncate(time.Second)) && !p.At.After(n.At) ||
			before != nil && !hasPause(before, *p) {
			return "pause", p
		}
	}
	if before == nil {
		return "", nil
	}
	for i := range before.Pauses {
		p := &before.Pauses[i]
		// Those that had ended went with whatever was written.
		if !hasPause(n, *p) && !p.Over(n.At) && n.Pause(p.Scope, p.Unit) == nil && before.Account == n.Account {
			return resumed, p
		}
	}
	return "", nil
}

func hasPause(n *assign.Node, p wire.Pause) bool {
	has := n.Pause(p.Scope, p.Unit)
	return has != nil && has.Same(p)
}
