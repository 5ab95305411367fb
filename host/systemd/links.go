package systemd

import (
	"context"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"

	"stead/host/fault"
	"stead/host/unit"
)

// Enable makes the links that the [Install] sections of names ask for, and of
// what those name with Also=, in /etc/systemd/system. Links that stand are not
// told. It does not reload: the manager knows nothing of the links until Reload,
// which systemctl enable calls after it.
//
// The manager does what it can before it refuses: an error does not say that no
// link was made.
func (m *Manager) Enable(ctx context.Context, names []unit.Name) (unit.Linking, error) {
	var carries bool
	out, err := m.relink(ctx, "enable", names, onManager("EnableUnitFiles", texts(names), false, false), &carries)
	out.NoInstall = err == nil && !carries
	return out, err
}

// Disable removes every link to the unit files names below /etc/systemd/system,
// whoever made it, and to what they name with Also=. A unit file that is itself a
// link there is such a link. It does not reload, as Enable. NoInstall stays false:
// the manager does not tell.
func (m *Manager) Disable(ctx context.Context, names []unit.Name) (unit.Linking, error) {
	return m.relink(ctx, "disable", names, onManager("DisableUnitFiles", texts(names), false))
}

// relink sends a call that answers with changes on disk, behind what goes into
// before.
func (m *Manager) relink(ctx context.Context, op string, names []unit.Name, c call, before ...any) (unit.Linking, error) {
	for _, n := range names {
		if _, err := unit.ParseName(string(n)); err != nil { // the manager takes a path for a file to be linked
			return unit.Linking{}, fault.New(fault.Invalid, op, "", err)
		}
	}
	l, err := m.using(ctx, op)
	if err != nil {
		return unit.Linking{}, err
	}
	r := l.one(ctx, c)
	if r.err != nil {
		return unit.Linking{}, acting(op, strings.Join(texts(names), " "), r.err)
	}
	var changes []struct{ Kind, Path, Source string }
	if err := dbus.Store(r.body, append(before, &changes)...); err != nil {
		return unit.Linking{}, strange(c.member, err)
	}
	var out unit.Linking
	for _, ch := range changes {
		switch ch.Kind {
		case "symlink":
			out.Made = append(out.Made, unit.LinkMade{Path: ch.Path, To: ch.Source})
		case "unlink":
			out.Removed = append(out.Removed, ch.Path)
		default:
			out.Notes = append(out.Notes, fmt.Sprintf("%s: %s", ch.Path, ch.Kind))
		}
	}
	return out, nil
}
