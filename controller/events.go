package controller

import (
	"context"
	"time"

	"stead/mesh/identity"
	"stead/mesh/wire"
)

// followFor is how long a page of events is waited for at most.
const followFor = 20 * time.Second

// events reads a page of the audit stream.
func (d *desk) events(ctx context.Context, _ identity.Caller, r wire.EventsRequest) (wire.EventsReply, error) {
	r.Wait = max(0, min(r.Wait, int(followFor/time.Second)))
	return d.trail.Page(ctx, r)
}
