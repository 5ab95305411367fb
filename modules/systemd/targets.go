package systemd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"stead/host/fault"
	"stead/host/shape"
	"stead/host/unit"
	"stead/runtime/escalate"
	"stead/seats"
)

const (
	// freely is how many units a pattern may mean without being agreed to, and
	// mostUnits with it: they are under way together, and fit into one answer.
	freely    = 10
	mostUnits = 256
	// together is how many of them are looked at, or acted on, at one time.
	together = 32
	// mostShown is how many names one error lists.
	mostShown = 8
)

// targets are the units that a pattern means, as they stand before an act on them,
// by name. All that forbids the act is found before anything is done.
func (v view) targets(ctx context.Context, act escalate.Act, a seats.ActArguments, of begun) ([]unit.Details, error) {
	if len(of) > 0 {
		return v.resumed(ctx, act, a, of)
	}
	names, err := v.matching(ctx, act, a)
	if err != nil {
		return nil, err
	}
	all, err := v.details(ctx, names)
	if err != nil {
		return nil, err
	}
	return all, v.guard(act, fmt.Sprintf("%q", a.Unit), all)
}

// details are how units stand.
func (v view) details(ctx context.Context, names []unit.Name) ([]unit.Details, error) {
	all := make([]unit.Details, len(names))
	errs := make([]error, len(names))
	each(len(names), func(i int) { all[i], errs[i] = v.Details(ctx, names[i]) })
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// matching are the loaded units that a pattern means.
func (v view) matching(ctx context.Context, act escalate.Act, a seats.ActArguments) ([]unit.Name, error) {
	units, err := v.Units(ctx, unit.Filter{Patterns: []string{a.Unit}, All: true})
	if err != nil {
		return nil, err
	}
	var names []unit.Name
	for _, u := range units {
		if exists(u.Load, u.Active) && u.Following == "" {
			names = append(names, u.Name)
		}
	}
	slices.Sort(names)
	refuse := func(format string, args ...any) *fault.Error {
		return fault.New(fault.Refused, string(act), fmt.Sprintf("%q", a.Unit), fmt.Errorf(format, args...))
	}
	switch {
	case len(names) == 0:
		return nil, v.unknown(ctx, string(act), a.Unit)
	case len(names) > mostUnits:
		return nil, refuse("it means %d units; at most %d at one time", len(names), mostUnits).WithHint("use a narrower pattern")
	case len(names) > freely && !a.Yes:
		return nil, refuse("it means %d units: %s", len(names), listed(names)).WithHint("more than 10 units want --yes (yes=true)")
	}
	return names, nil
}

// guard refuses an act that reaches a protected unit, by whichever of its names.
func (v view) guard(act escalate.Act, object string, all []unit.Details) error {
	var texts []string
	for _, d := range all {
		for _, n := range namesOf(d) {
			why := v.forbidden(act, n)
			if why == "" {
				continue
			}
			text := fmt.Sprintf("%s is protected: %s", n, why)
			switch {
			case string(n) == object:
				text = "it is protected: " + why
			case string(d.ID) == object || len(all) == 1:
				text = fmt.Sprintf("it is %s, which is protected: %s", n, why)
			}
			texts = append(texts, text)
			break
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if more := len(texts) - mostShown; more > 0 {
		texts = append(texts[:mostShown], fmt.Sprintf("and %d more", more))
	}
	return fault.New(fault.Refused, string(act), object, fmt.Errorf("%s", strings.Join(texts, "; ")))
}

// forbidden says why an act on a unit of that name is refused, "" when it is not:
// what stead, or the account's manager, stands on may be started and enabled, what stops
// the machine or that manager may not be started.
func (v view) forbidden(act escalate.Act, n unit.Name) string {
	why, protected := shape.Protected(v.scope, n)
	if !protected {
		return ""
	}
	switch act {
	case escalate.Enable:
		return ""
	case escalate.Start:
		if _, base := shape.StandsOn(v.scope, n); base {
			return ""
		}
	}
	return why
}

// listed are names for an error.
func listed(names []unit.Name) string {
	shown := texts(names[:min(len(names), mostShown)])
	if more := len(names) - len(shown); more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, ", ")
}

// each calls f for 0 to n-1, together of them at one time, and waits.
func each(n int, f func(i int)) {
	slots := make(chan struct{}, together)
	var group sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	group.Wait()
}
