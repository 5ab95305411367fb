package systemd

import (
	"context"
	"errors"
	"slices"

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

// stopping are the dependencies by which a stop of a unit goes on to others
// (systemd.unit(5)). The last one is of version 249.
func stopping() []string {
	return []string{"RequiredBy", "RequisiteOf", "BoundBy", "ConsistsOf", "PropagatesStopTo"}
}

// Ties says how each of names stands, by itself and to other units, in the order
// of names. A bare template has none.
func (m *Manager) Ties(ctx context.Context, names []unit.Name) ([]unit.Ties, error) {
	out := make([]unit.Ties, len(names))
	if len(names) == 0 {
		return out, nil
	}
	l, err := m.using(ctx, "read ties")
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		t := &out[i]
		all := []fetched{
			{unitIfc, "ActiveState", to(&t.Active)}, {unitIfc, "InvocationID", toHex(&t.Invocation)}, {unitIfc, "Names", toNames(&t.Names)},
			{unitIfc, "Conflicts", toNames(&t.Conflicts)}, {unitIfc, "ConflictedBy", toNames(&t.Conflicts)},
		}
		for _, by := range stopping() {
			all = append(all, fetched{unitIfc, by, toNames(&t.StopsWith)})
		}
		if err := fetch(ctx, l, n, all); err != nil {
			return nil, looking("read ties", string(n), err)
		}
		for _, list := range []*[]unit.Name{&t.Names, &t.Conflicts, &t.StopsWith} {
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}
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
