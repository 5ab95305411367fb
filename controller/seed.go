package controller

import (
	"context"
	"time"

	"stead/controller/admit"
	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/wire"
)

// edition numbers the seats and modules that come with this version of stead. It
// rises with every change of what is built in, so that a controller of the version
// before, which starts while a mesh is upgraded, does not undo it.
const edition = 2

// seedPause is the longest time between two attempts to seed. The first is
// seedSoon, and it doubles: a store that has just come up may not take anything
// yet. A controller answers when it has seeded, or has tried for seedReady.
const (
	seedPause = 5 * time.Second
	seedSoon  = 100 * time.Millisecond
	seedReady = 10 * time.Second
)

func (o Options) catalogue() admit.Catalogue {
	return admit.Catalogue{Edition: edition, Seats: o.Seats, Modules: o.Modules}
}

// seeding puts the seats and modules of this version into mesh state, and returns
// when that is done, or has to wait for a state that is sound. It is done again
// when another epoch begins, and at no other time: two controllers that bring
// different things would otherwise never come to rest.
func (d *desk) seeding(r *run) error {
	tried := make(chan struct{})
	r.begin("seats and modules", func(ctx context.Context) error { return d.keepSeeded(ctx, tried) })
	select {
	case <-tried:
		return nil
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
}

// keepSeeded seeds each epoch once until ctx ends, and closes tried when that was
// done, cannot be done now, or has been tried for long enough.
func (d *desk) keepSeeded(ctx context.Context, tried chan<- struct{}) error {
	wake, stop := d.store.Subscribe()
	defer stop()
	first, done, wait := true, "", seedSoon
	patience := time.Now().Add(seedReady)
	for {
		var again <-chan time.Time
		if st := d.store.Now(); st.Unsound == nil && st.Epoch != done {
			err := d.seed(ctx)
			switch class := fault.ClassOf(err); {
			case err == nil:
				done, wait = st.Epoch, seedSoon
			case class == fault.Invalid || class == fault.Internal: // it will not be another one
				return err
			case ctx.Err() == nil:
				d.log.Warn("seats and modules are not in mesh state", "error", err, "retry", wait)
				again = time.After(wait)
				wait = min(2*wait, seedPause)
			}
		}
		if first && (again == nil || time.Now().After(patience)) {
			first = false
			close(tried)
		}
		select {
		case <-wake:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

// seedFor bounds one attempt.
const seedFor = 10 * time.Second

func (d *desk) seed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, seedFor)
	defer cancel()
	var what []wire.Change
	before, after, err := d.store.Decide(ctx, func(st *assign.State) ([]state.Change, error) {
		decision, err := admit.Seed(admit.Basis{State: st, Placement: d.place(st), Who: d.by, Now: d.now(), NewUID: newUID}, d.bring)
		what = decision.Reply.Changes
		return changes(decision), err
	})
	if err == nil && before != after {
		d.changed(ctx, before, after, what)
	}
	return err
}
