package systemd

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// look is one unit that is being read.
type look struct {
	row    row
	ticket ticket
	opened *entry // of the first ticket, before the unit was found to be loose
	whole  bool   // every property that was asked for was answered, so that it can be kept

	kind   string // unit type
	stamps bool   // what follows was read
	tried  uint64 // when conditions were last tested, 0 for never
	met    [2]bool
}

func (r row) key() key {
	return key{unit.LoadState(r.Load), unit.ActiveState(r.Active), r.Sub, r.JobID}
}

// begun are the types of units that come to life by a start alone. A start tests
// conditions first, also where there are none, so one of these whose conditions
// were never tested was never started and has no past (seen on systemd 252).
var begun = map[string]bool{"service": true, "socket": true, "timer": true, "path": true, "target": true}

// fill reads what the tickets of looks lack, in two rounds: the second is for
// units that are down and have a past.
func fill(ctx context.Context, l *link, looks []*look) error {
	var wants []want
	for _, lk := range looks {
		lk.whole = lk.row.Load != string(unit.NotFound) // one that appears must be read anew
		wants = append(wants, lk.first()...)
	}
	if err := read(ctx, l, wants); err != nil {
		return err
	}
	wants = wants[:0]
	for _, lk := range looks {
		wants = append(wants, lk.second()...)
	}
	return read(ctx, l, wants)
}

func (lk *look) on(property string, into func(dbus.Variant) error) want {
	return want{lk, unitIfc, property, into}
}

func (lk *look) onType(property string, into func(dbus.Variant) error) want {
	return want{lk, typeIfcs[lk.kind], property, into}
}

// first lists what must be read of lk.
func (lk *look) first() []want {
	k := lk.row.key()
	missing := k.load == unit.NotFound
	fresh, loose := lk.ticket.run == nil, lk.ticket.entry == nil
	var ws []want
	if lk.ticket.def == nil {
		lk.ticket.def = &definition{}
		if !missing {
			ws = append(ws, lk.defined(lk.ticket.def, loose || lk.ticket.fresh)...)
			if !loose { // of one that is loaded for every call, each costs a load
				ws = append(ws, lk.on("CanReload", to(&lk.ticket.def.canReload)))
			}
		}
	}
	switch {
	case fresh:
		lk.ticket.run = &running{seen: k, looked: true}
		if !missing || !k.active.Down() {
			ws = append(ws, lk.standing(lk.ticket.run)...)
		}
	case k.active.Down() && !lk.ticket.run.triggered:
		r := *lk.ticket.run // others may look at it
		lk.ticket.run = &r
		if r.looked {
			ws = append(ws, lk.triggers(&r))
		}
		r.looked = true
	}
	switch r := lk.ticket.run; {
	case missing:
		// systemd has no other words for this one, and asking would load it again
		r.trouble.LoadError = fmt.Sprintf("Unit %s not found.", lk.row.Name)
	case k.load != unit.Loaded && (fresh || loose):
		ws = append(ws, lk.on("LoadError", toLoadError(&r.trouble.LoadError)))
	}
	return ws
}

// defined lists what says which files a unit was loaded from. Nobody needs to ask
// whether that is older than what is on disk of a unit that is loaded for every
// call, or was loaded by a reload that was seen to end, or after it.
func (lk *look) defined(d *definition, current bool) []want {
	ws := []want{lk.on("FragmentPath", to(&d.fragment)), lk.on("DropInPaths", to(&d.dropIns))}
	if !current {
		ws = append(ws, lk.on("NeedDaemonReload", to(&d.needReload)))
	}
	return ws
}

// triggers asks what may start a unit that is down. That matters when it is to
// stay so, and most units that are found down for the first time are about to be
// started.
func (lk *look) triggers(r *running) want {
	r.triggered = true
	return lk.on("TriggeredBy", toNames(&r.trouble.Triggers))
}

// standing lists what says how a unit stands: for one that is up all there is,
// for one that is down whether it has a past.
func (lk *look) standing(r *running) []want {
	active := unit.ActiveState(lk.row.Active)
	if active.Up() {
		return append(lk.past(r), lk.since(r))
	}
	lk.stamps = true
	ws := []want{lk.on("ConditionTimestampMonotonic", to(&lk.tried))}
	switch {
	case !active.Down():
		ws = append(append(append(ws, lk.since(r)), lk.past(r)...), lk.results(&r.trouble)...)
	case !begun[lk.kind]:
		ws = append(ws, lk.since(r))
	}
	return ws
}

func (lk *look) since(r *running) want {
	return lk.on("StateChangeTimestampMonotonic", toTime(&r.changed))
}

// past lists the traces of a unit's run.
func (lk *look) past(r *running) []want {
	ws := []want{
		lk.on("InvocationID", toHex(&r.invocation)),
		lk.on("InactiveExitTimestampMonotonic", toTime(&r.started)),
	}
	if lk.kind == "service" {
		ws = append(ws, lk.onType("NRestarts", to(&r.restarts)))
		if !unit.ActiveState(lk.row.Active).Down() {
			ws = append(ws, lk.onType("MainPID", to(&r.mainPID)))
		}
	}
	return ws
}

// results lists how a unit's run ended.
func (lk *look) results(t *unit.Trouble) []want {
	var ws []want
	if typeIfcs[lk.kind] != "" {
		ws = append(ws, lk.onType("Result", toWord(&t.Result)))
	}
	if lk.kind == "service" {
		ws = append(ws, lk.onType("ExecMainCode", to(&t.ExitCode)), lk.onType("ExecMainStatus", to(&t.ExitStatus)))
	}
	return ws
}

// second lists what the first round showed to be worth reading: most units that
// are down were never started, and of those there is nothing to know.
func (lk *look) second() []want {
	if !lk.stamps || !lk.whole {
		return nil
	}
	var ws []want
	r := lk.ticket.run
	if unit.ActiveState(lk.row.Active).Down() {
		switch {
		case lk.tried > 0 && begun[lk.kind]:
			ws = append(append(append(ws, lk.since(r), lk.triggers(r)), lk.past(r)...), lk.results(&r.trouble)...)
		case r.changed > 0:
			ws = append(append(append(ws, lk.triggers(r)), lk.past(r)...), lk.results(&r.trouble)...)
		case typeIfcs[lk.kind] != "":
			r.trouble.Result = "success"
		}
	}
	if lk.tried > 0 { // asserts are tested right after conditions
		ws = append(ws,
			lk.on("ConditionResult", to(&lk.met[0])), lk.on("Conditions", toUnmet(&r.trouble.Unmet, &lk.met[0], false)),
			lk.on("AssertResult", to(&lk.met[1])), lk.on("Asserts", toUnmet(&r.trouble.Unmet, &lk.met[1], true)))
	}
	return ws
}

func toLoadError(p *string) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var e struct{ Name, Text string }
		err := v.Store(&e)
		*p = clip(e.Text)
		return err
	}
}

// status puts together what is known of the unit that was asked for as asked.
func (lk *look) status(asked unit.Name) unit.Status {
	k, d, r := lk.row.key(), lk.ticket.def, lk.ticket.run
	return unit.Status{
		Asked: asked, ID: unit.Name(lk.row.Name), Load: k.load, Active: k.active, Sub: k.sub,
		Job:      unit.Job{ID: lk.row.JobID, Type: unit.JobType(lk.row.JobType)},
		Fragment: d.fragment, DropIns: d.dropIns, CanReload: d.canReload, NeedReload: d.needReload,
		Invocation: r.invocation, Started: r.started, Changed: r.changed, Restarts: r.restarts, MainPID: r.mainPID,
		Trouble: r.trouble,
	}
}
