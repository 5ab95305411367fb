package systemd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// Process says which process is the main one of a service, and as whom it runs,
// asked of the manager at this moment and not of what it signaled before. A unit
// that is no service, or does not run, has none. When another run begins at this
// moment, the invocation may be that of the one before.
func (m *Manager) Process(ctx context.Context, name unit.Name) (unit.Process, error) {
	p := unit.Process{UID: unit.NoUID}
	l, err := m.using(ctx, "main process")
	if err != nil {
		return p, err
	}
	service := typeIfcs["service"]
	err = fetch(ctx, l, name, []fetched{
		{unitIfc, "InvocationID", toHex(&p.Invocation)},
		{service, "MainPID", to(&p.PID)},
		{service, "UID", to(&p.UID)},
	})
	if err != nil {
		return unit.Process{UID: unit.NoUID}, looking("main process", string(name), err)
	}
	if p.PID == 0 || p.Invocation == "" {
		return unit.Process{UID: unit.NoUID}, nil
	}
	return p, nil
}

// Ties says how each of names stands, by itself and to other units, in the order
// of names, each as the manager has it at one moment. A bare template has none. It
// takes one call for each.
func (m *Manager) Ties(ctx context.Context, names []unit.Name) ([]unit.Ties, error) {
	out := make([]unit.Ties, len(names))
	if len(names) == 0 {
		return out, nil
	}
	l, err := m.using(ctx, "read ties")
	if err != nil {
		return nil, err
	}
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = call{pathOfUnit(n), "org.freedesktop.DBus.Properties", "GetAll", []any{unitIfc}}
	}
	for i, r := range l.do(ctx, calls) {
		var a *answer
		if errors.As(r.err, &a) {
			continue
		}
		if err = r.err; err == nil {
			out[i], err = tiesOf(r.body)
		}
		if err != nil {
			return nil, looking("read ties", string(names[i]), err)
		}
	}
	return out, nil
}

// ties are properties of a unit that tie it to others.
type ties struct {
	t                      unit.Ties
	id, load, active       string
	names, by, stops, foes []string
}

// tiesOf reads the answer of GetAll for the interface that all units have.
func tiesOf(body []any) (unit.Ties, error) {
	c, err := open("GetAll", body, "a{sv}")
	if err != nil {
		return unit.Ties{}, err
	}
	var p ties
	c.list(func() {
		name, sig := c.text(), c.signature()
		if !p.read(name, string(sig), c) {
			c.skip(sig, 1)
		}
	})
	if c.bad || unit.CheckName(p.id) != nil {
		return unit.Ties{}, strange("GetAll", fmt.Errorf("ties of a unit with the id %.300q", p.id))
	}
	p.t.ID, p.t.Load, p.t.Active = unit.Name(p.id), unit.LoadState(p.load), unit.ActiveState(p.active)
	if strings.Trim(p.t.Invocation, "0") == "" {
		p.t.Invocation = ""
	}
	p.t.Names, p.t.TriggeredBy = namesOf(p.names), namesOf(p.by)
	p.t.StopsWith, p.t.Conflicts = slices.Compact(namesOf(p.stops)), slices.Compact(namesOf(p.foes))
	return p.t, nil
}

// read reads one property of the type sig; false when nobody asks for it, or it is
// of another type. The dependencies by which a stop of a unit goes on to others
// are those of systemd.unit(5); the last one is of version 249.
func (p *ties) read(name []byte, sig string, c *cursor) bool {
	var text *string
	var list *[]string
	switch string(name) {
	case "Id":
		text = &p.id
	case "LoadState":
		text = &p.load
	case "ActiveState":
		text = &p.active
	case "SubState":
		text = &p.t.Sub
	case "InvocationID":
		text = &p.t.Invocation
	case "Names":
		list = &p.names
	case "TriggeredBy":
		list = &p.by
	case "Conflicts", "ConflictedBy":
		list = &p.foes
	case "RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo":
		list = &p.stops
	}
	switch {
	case text != nil:
		return c.store(sig, text)
	case list == nil || sig != "as":
		return false
	}
	*list = append(*list, c.texts()...)
	return true
}

// Named lists units by name, in the order of names, each under its primary name.
// One that does not exist is answered with Load NotFound. It takes one call, and
// keeps nothing.
func (m *Manager) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	out := make([]unit.Listed, len(names))
	if len(names) == 0 {
		return out, nil
	}
	l, err := m.using(ctx, "list units")
	if err != nil {
		return nil, err
	}
	rows, err := list(ctx, l, names)
	if err != nil {
		return nil, looking("list units", "", err)
	}
	for i, r := range rows {
		k := r.key()
		out[i] = unit.Listed{Name: unit.Name(r.Name), Load: k.load, Active: k.active, Sub: k.sub, Job: unit.Job{ID: r.JobID, Type: unit.JobType(r.JobType)}}
	}
	return out, nil
}

// fetched is a property of a unit, and where it goes.
type fetched struct {
	iface, property string
	into            func(dbus.Variant) error
}

// fetch reads properties of one unit, in order. Those that the unit does not have
// are left as they are.
func fetch(ctx context.Context, l *link, name unit.Name, all []fetched) error {
	calls := make([]call, len(all))
	for i, f := range all {
		calls[i] = get(pathOfUnit(name), f.iface, f.property)
	}
	for i, r := range l.do(ctx, calls) {
		var a *answer
		if errors.As(r.err, &a) {
			continue
		}
		if r.err != nil {
			return r.err
		}
		var v dbus.Variant
		if err := dbus.Store(r.body, &v); err != nil {
			return strange("Get "+all[i].property, err)
		}
		if err := all[i].into(v); err != nil {
			return strange("Get "+all[i].property, err)
		}
	}
	return nil
}
