package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

const unitIfc = "org.freedesktop.systemd1.Unit"

// typeIfcs are the interfaces of the unit types that have a Result.
var typeIfcs = map[string]string{
	"service": "org.freedesktop.systemd1.Service", "socket": "org.freedesktop.systemd1.Socket",
	"mount": "org.freedesktop.systemd1.Mount", "automount": "org.freedesktop.systemd1.Automount",
	"swap": "org.freedesktop.systemd1.Swap", "timer": "org.freedesktop.systemd1.Timer",
	"path": "org.freedesktop.systemd1.Path", "scope": "org.freedesktop.systemd1.Scope",
}

// look is one unit that is being read.
type look struct {
	row    row
	ticket ticket
	whole  bool // every property that was asked for was answered

	tried [2]tried // conditions, asserts
}

// tried is whether a unit's conditions were tested, and how that ended.
type tried struct {
	met bool
	at  uint64
}

func (t tried) unmet() bool { return !t.met && t.at > 0 }

// want is one property that is to be read, and where it goes.
type want struct {
	look     *look
	iface    string
	property string
	into     func(dbus.Variant) error
}

// fill reads what the tickets of looks lack. A unit that is gone meanwhile
// keeps what the list said of it.
func fill(ctx context.Context, l *link, looks []*look) error {
	var wants []want
	for _, lk := range looks {
		lk.whole = true
		wants = append(wants, lk.wants()...)
	}
	if err := read(ctx, l, wants); err != nil {
		return err
	}
	wants = wants[:0]
	for _, lk := range looks {
		wants = append(wants, lk.unmet()...)
	}
	return read(ctx, l, wants)
}

func read(ctx context.Context, l *link, wants []want) error {
	calls := make([]call, len(wants))
	for i, w := range wants {
		calls[i] = get(w.look.row.Path, w.iface, w.property)
	}
	for i, r := range l.do(ctx, calls) {
		var a *answer
		var v dbus.Variant
		switch {
		case errors.As(r.err, &a):
			wants[i].look.whole = false
			continue
		case r.err != nil:
			return r.err
		}
		if err := dbus.Store(r.body, &v); err != nil {
			return strange("Get "+wants[i].property, err)
		}
		if err := wants[i].into(v); err != nil {
			return strange("Get "+wants[i].property, err)
		}
	}
	return nil
}

// to stores a property as it is.
func to[T any](p *T) func(dbus.Variant) error {
	return func(v dbus.Variant) error { return v.Store(p) }
}

// toTime stores a CLOCK_MONOTONIC stamp, which is in microseconds.
func toTime(p *time.Duration) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var us uint64
		err := v.Store(&us)
		*p = time.Duration(us) * time.Microsecond
		return err
	}
}

func (lk *look) on(property string, into func(dbus.Variant) error) want {
	return want{lk, unitIfc, property, into}
}

func (lk *look) onType(property string, into func(dbus.Variant) error) want {
	return want{lk, typeIfcs[unit.Name(lk.row.Name).Type()], property, into}
}

// wants lists what the ticket lacks. Of a unit that does not exist there is
// nothing to read but why.
func (lk *look) wants() []want {
	if lk.row.Path == "" {
		lk.ticket.def, lk.ticket.run, lk.whole = &definition{}, &running{}, false
		return nil
	}
	var ws []want
	missing := unit.LoadState(lk.row.Load) == unit.NotFound
	if lk.ticket.def == nil {
		d := &definition{}
		lk.ticket.def = d
		if !missing {
			ws = append(ws, lk.on("FragmentPath", to(&d.fragment)), lk.on("DropInPaths", to(&d.dropIns)),
				lk.on("SourcePath", to(&d.source)), lk.on("NeedDaemonReload", to(&d.needReload)))
		}
	}
	if lk.ticket.run == nil {
		r := &running{seen: lk.row.key()}
		lk.ticket.run = r
		if !missing || !unit.ActiveState(lk.row.Active).Down() {
			ws = append(ws, lk.runWants(r)...)
		}
		ws = append(ws, lk.troubleWants(&r.trouble)...)
	}
	return ws
}

func (lk *look) runWants(r *running) []want {
	ws := []want{
		lk.on("InvocationID", func(v dbus.Variant) error {
			var id []byte
			err := v.Store(&id)
			if slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
				r.invocation = hex.EncodeToString(id)
			}
			return err
		}),
		lk.on("InactiveExitTimestampMonotonic", toTime(&r.started)),
		lk.on("StateChangeTimestampMonotonic", toTime(&r.changed)),
	}
	if unit.Name(lk.row.Name).Type() == "service" {
		ws = append(ws, lk.onType("NRestarts", to(&r.restarts)), lk.onType("MainPID", to(&r.mainPID)))
	}
	return ws
}

func (lk *look) troubleWants(t *unit.Trouble) []want {
	var ws []want
	load, active := unit.LoadState(lk.row.Load), unit.ActiveState(lk.row.Active)
	if load != unit.Loaded {
		ws = append(ws, lk.on("LoadError", func(v dbus.Variant) error {
			var e struct{ Name, Text string }
			err := v.Store(&e)
			t.LoadError = e.Text
			return err
		}))
	}
	if active.Up() || load == unit.NotFound && active.Down() {
		return ws
	}
	if kind := unit.Name(lk.row.Name).Type(); typeIfcs[kind] != "" {
		ws = append(ws, lk.onType("Result", to(&t.Result)))
		if kind == "service" {
			ws = append(ws, lk.onType("ExecMainCode", to(&t.ExitCode)), lk.onType("ExecMainStatus", to(&t.ExitStatus)))
		}
	}
	return append(ws,
		lk.on("ConditionResult", to(&lk.tried[0].met)), lk.on("ConditionTimestampMonotonic", to(&lk.tried[0].at)),
		lk.on("AssertResult", to(&lk.tried[1].met)), lk.on("AssertTimestampMonotonic", to(&lk.tried[1].at)),
		lk.on("TriggeredBy", func(v dbus.Variant) error {
			var names []string
			err := v.Store(&names)
			for _, n := range names {
				t.Triggers = append(t.Triggers, unit.Name(n))
			}
			slices.Sort(t.Triggers)
			return err
		}))
}

// unmet lists the conditions to be named, once it is known that some were not
// met. A condition that was never tried also reads as not met.
func (lk *look) unmet() []want {
	var ws []want
	for i, property := range []string{"Conditions", "Asserts"} {
		if !lk.tried[i].unmet() {
			continue
		}
		t := &lk.ticket.run.trouble
		ws = append(ws, lk.on(property, func(v dbus.Variant) error {
			var all []condition
			err := v.Store(&all)
			for _, c := range all {
				if c.State < 0 {
					t.Unmet = append(t.Unmet, unit.Condition{Text: c.String(), Assert: i == 1})
				}
			}
			return err
		}))
	}
	return ws
}

// condition is an entry of Conditions or Asserts. State is negative when it was
// not met, positive when it was, zero when it was not tried.
type condition struct {
	Name    string
	Trigger bool
	Negate  bool
	Param   string
	State   int32
}

func (c condition) String() string {
	s := c.Name + "="
	if c.Trigger {
		s += "|"
	}
	if c.Negate {
		s += "!"
	}
	return s + c.Param
}

// status puts together what is known of the unit that was asked for as asked.
func (lk *look) status(asked unit.Name) unit.Status {
	k, d, r := lk.row.key(), lk.ticket.def, lk.ticket.run
	return unit.Status{
		Asked: asked, ID: unit.Name(lk.row.Name), Load: k.load, Active: k.active, Sub: k.sub, Job: k.job,
		Fragment: d.fragment, DropIns: d.dropIns, Source: d.source, NeedReload: d.needReload,
		Invocation: r.invocation, Started: r.started, Changed: r.changed, Restarts: r.restarts, MainPID: r.mainPID,
		Trouble: r.trouble,
	}
}
