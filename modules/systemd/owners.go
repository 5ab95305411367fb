package systemd

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stead/host/unit"
	"stead/mesh/wire"
	"stead/runtime/escalate"
	"stead/seats"
)

// What a declaration may ensure, as shapes have it.
const (
	ensureRunning   = "running"
	ensureStopped   = "stopped"
	ensureRestarted = "restarted"
)

// owners are the declarations of one scope by the names of their units.
// What a declaration calls its unit may be an alias: learn finds the unit's own
// name. Aliases that only its files ask for say nothing here: until they are made
// the name may be another unit's.
type owners struct {
	by    map[unit.Name]*seats.DeclaredBy
	names []unit.Name          // that declarations give, templates left out, in order
	links map[unit.Name]string // aliases that files of a declared unit ask for → what the unit is called
}

func (m *Module) owners(scope unit.Scope) owners {
	o := owners{by: map[unit.Name]*seats.DeclaredBy{}, links: map[unit.Name]string{}}
	for _, d := range m.o.Declared() {
		n, err := unit.ParseName(d.Unit)
		if err != nil || d.Scope != string(scope) {
			continue
		}
		o.by[n] = &seats.DeclaredBy{Name: d.Name, Generation: d.Generation, Ensure: d.Ensure, Enabled: d.Enabled, Paused: paused(d)}
		if !n.IsTemplate() {
			o.names = append(o.names, n)
		}
		for _, a := range d.Aliases {
			o.links[unit.Name(a)] = d.Unit
		}
	}
	slices.Sort(o.names)
	return o
}

// paused is the pause of a declared unit, nil when there is none or it has ended by
// this machine's clock, which is the host's too.
func paused(d wire.DeclaredUnit) *seats.Paused {
	if d.Paused == nil || d.Paused.Over(time.Now()) {
		return nil
	}
	return &seats.Paused{Until: d.Paused.Until, By: d.Paused.By, Reason: d.Paused.Reason}
}

// of is the declaration that a unit with these names is of, nil for none. The
// first name that one gives decides: a host applies only one of two that meet.
func (o owners) of(names ...unit.Name) *seats.DeclaredBy {
	for _, n := range names {
		if d := o.by[n]; d != nil {
			return d
		}
	}
	return nil
}

// learn asks for the own names of declared units that are not among listed, and
// returns how those stand. Few are: most declared units are loaded under the name
// that they are declared with.
func (o owners) learn(ctx context.Context, r lister, listed []unit.Listed) ([]unit.Listed, error) {
	known := make(map[unit.Name]bool, len(listed))
	for _, l := range listed {
		known[l.Name] = true
	}
	ask := slices.DeleteFunc(slices.Clone(o.names), func(n unit.Name) bool { return known[n] })
	if len(ask) == 0 {
		return nil, nil
	}
	named, err := r.Named(ctx, ask)
	if err != nil {
		return nil, err
	}
	for i, l := range named {
		if o.by[l.Name] == nil {
			o.by[l.Name] = o.by[ask[i]]
		}
	}
	return named, nil
}

// undone says that the host will undo an act on a unit of d, and when, where that is
// paused; "" when it will not.
func undone(act escalate.Act, d *seats.DeclaredBy) string {
	what, does := contradicted(act, d)
	switch {
	case what == "":
		return ""
	case d.Paused == nil:
		return what + ": " + does
	}
	why := ""
	if d.Paused.Reason != "" {
		why = " (" + d.Paused.Reason + ")"
	}
	return fmt.Sprintf("%s, and is paused until %s by %s%s: then %s", what, d.Paused.Until.UTC().Format("2006-01-02 15:04 UTC"), d.Paused.By, why, does)
}

// contradicted says what an act on a unit of d contradicts, and what the host does
// about that; "" where it contradicts nothing.
func contradicted(act escalate.Act, d *seats.DeclaredBy) (what, does string) {
	switch {
	case d == nil:
		return "", ""
	case act == escalate.Stop && (d.Ensure == ensureRunning || d.Ensure == ensureRestarted):
		return fmt.Sprintf("declaration %q ensures %s", d.Name, ensureRunning), "the host will start it again"
	case (act == escalate.Start || act == escalate.Restart) && d.Ensure == ensureStopped:
		return fmt.Sprintf("declaration %q ensures %s", d.Name, ensureStopped), "the host will stop it again"
	case act == escalate.Enable && d.Enabled != nil && !*d.Enabled:
		return fmt.Sprintf("declaration %q has it disabled", d.Name), "the host will remove its links again"
	case act == escalate.Disable && d.Enabled != nil && *d.Enabled:
		return fmt.Sprintf("declaration %q has it enabled", d.Name), "the host will make its links again"
	}
	return "", ""
}
