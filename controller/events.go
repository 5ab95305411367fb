package controller

import (
	"context"
	"errors"
	"time"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/wire"
)

// followFor is how long a page of events is waited for at most.
const followFor = 20 * time.Second

// events reads a page of the audit stream. Who waits for one does not hold up the
// end of the controller.
func (d *desk) events(ctx context.Context, _ identity.Caller, r wire.EventsRequest) (wire.EventsReply, error) {
	r.Wait = max(0, min(r.Wait, int(followFor/time.Second)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(d.life, cancel)
	defer stop()
	page, err := d.trail.Page(ctx, r)
	if err != nil && d.life.Err() != nil {
		return page, fault.New(fault.Unavailable, "events", "", errors.New("the controller is stopping"))
	}
	return page, err
}
