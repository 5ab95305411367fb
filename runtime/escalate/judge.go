package escalate

import (
	"context"
	"errors"
	"fmt"

	"stead/host/fault"
	"stead/host/shape"
	"stead/host/unit"
)

// maxStopped is how many units a stop may reach before it is refused for that
// alone.
const maxStopped = 500

// looker is what a manager says of units.
type looker interface {
	Ties(ctx context.Context, names []unit.Name) ([]unit.Ties, error)
	Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error)
	Standing(name unit.Name) (active unit.ActiveState, sub string, ok bool)
}

// judge refuses what would saw off the branch that stead sits on, by the unit's
// every name and by what systemd stops along with it. It returns how the unit
// stands.
func judge(ctx context.Context, m looker, r Request) (unit.Ties, error) {
	all, err := m.Ties(ctx, []unit.Name{r.Unit})
	if err != nil {
		return unit.Ties{}, notDone(r, err)
	}
	ties := all[0]
	names := append([]unit.Name{r.Unit}, ties.Names...)
	g := guarding(r.Scope)
	switch r.Act {
	case ResetFailed:
		return ties, nil
	case Start:
		err = errors.Join(refuseAny(r, names, g.ends, ""), refuseAny(r, ties.Conflicts, g.base, "it stops "))
	case Restart:
		err = errors.Join(refuseAny(r, names, g.all, ""), refuseAny(r, ties.Conflicts, g.base, "it stops "))
	default:
		err = refuseAny(r, names, g.all, "")
	}
	if err == nil && (r.Act == Stop || r.Act == Restart) {
		err = refuseStop(ctx, m, r, ties)
	}
	if _, job := r.Act.job(); err == nil && job && ties.Load == unit.NotFound && ties.Active == unit.Inactive {
		err = fault.New(fault.NotFound, string(r.Act), string(r.Unit), fmt.Errorf("Unit %s not found.", r.Unit)) //nolint:staticcheck // systemd's own words
	}
	return ties, first(err)
}

// notDone is an error of looking: the act was not begun.
func notDone(r Request, err error) error {
	return fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("nothing was done: %w", err))
}

// first is the first of joined errors.
func first(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()[0]
	}
	return err
}

// guards are what acts may not touch in a scope.
type guards struct {
	all  func(unit.Name) (why string, yes bool)
	base func(unit.Name) (why string, yes bool) // what stead, or the account's manager, stands on
	ends func(unit.Name) (why string, yes bool) // what is protected for what its start does
}

func guarding(scope unit.Scope) guards {
	if scope != unit.User {
		scope = unit.System
	}
	g := guards{
		all:  func(n unit.Name) (string, bool) { return shape.Protected(scope, n) },
		base: func(n unit.Name) (string, bool) { return shape.StandsOn(scope, n) },
	}
	g.ends = func(n unit.Name) (string, bool) {
		why, guarded := g.all(n)
		if _, base := g.base(n); base {
			return "", false
		}
		return why, guarded
	}
	return g
}

func refuseAny(r Request, names []unit.Name, guarded func(unit.Name) (string, bool), by string) error {
	for _, n := range names {
		if why, yes := guarded(n); yes {
			text := "it is protected: " + why
			if by != "" || n != r.Unit {
				text = fmt.Sprintf("%s%s, which is protected: %s", by, n, why)
			}
			if by == "" && n != r.Unit {
				text = "it is " + text
			}
			return fault.New(fault.Refused, string(r.Act), string(r.Unit), errors.New(text))
		}
	}
	return nil
}

// refuseStop follows what is stopped with the unit.
func refuseStop(ctx context.Context, m looker, r Request, t unit.Ties) error {
	seen := map[unit.Name]bool{r.Unit: true}
	front := t.StopsWith
	for len(front) > 0 {
		var next []unit.Name
		for _, n := range front {
			if !seen[n] {
				seen[n] = true
				next = append(next, n)
			}
		}
		if err := refuseAny(r, next, guarding(r.Scope).base, "it stops "); err != nil {
			return err
		}
		if len(seen) > maxStopped {
			return fault.New(fault.Refused, string(r.Act), string(r.Unit), fmt.Errorf("it stops more than %d units", maxStopped))
		}
		ties, err := m.Ties(ctx, next)
		if err != nil {
			return notDone(r, err)
		}
		front = nil
		for _, t := range ties {
			front = append(front, t.StopsWith...)
		}
	}
	return nil
}
