package systemd

import (
	"context"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/host/unit"
	"stead/runtime/escalate"
	"stead/seats"
)

// begun are the acts of one kind in one scope that were begun of a call before it
// came here, by unit, with how that stood before: its caller asks again, since whoever had it
// in hand is gone. Nil for a call that is new.
type begun map[unit.Name]seats.State

func (v view) begun(ctx context.Context, act escalate.Act) (begun, error) {
	known, err := v.m.o.Acts.Known(ctx)
	if err != nil {
		return nil, err
	}
	var all begun
	for _, b := range known {
		if b.Act != act || (b.Scope == unit.User) != (v.scope == unit.User) {
			continue
		}
		if all == nil {
			all = begun{}
		}
		active, sub, _ := strings.Cut(b.Before, " ")
		all[b.Unit] = seats.State{Active: active, Sub: sub}
	}
	return all, nil
}

// before is how a unit stands, as it is kept with an act on it.
func before(s seats.State) string { return s.Active + " " + s.Sub }

// units are those that were begun, sorted.
func (b begun) units() []unit.Name {
	var all []unit.Name
	for n := range b {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}

// resumed are the units that a pattern means whose call was begun before. What was
// judged then is not judged again: a unit may be gone since it was stopped. What is
// new is added, unless all of it would be refused now.
func (v view) resumed(ctx context.Context, act escalate.Act, a seats.ActArguments, of begun) ([]unit.Details, error) {
	more, err := v.matching(ctx, act, a)
	if err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Refused) {
		return nil, err
	}
	names := append(of.units(), more...)
	slices.Sort(names)
	names = slices.Compact(names)
	all, err := v.details(ctx, names)
	if err != nil {
		return nil, err
	}
	return all, v.guard(act, a.Unit, all)
}
