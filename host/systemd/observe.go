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

// Observe says how each of names stands now, in the order of names; a name
// that is asked for twice is answered twice. A unit that does not exist is
// answered with Load NotFound, never with an error: an error means that nothing
// is known of any of them.
//
// It takes one call for all names, and property calls only for units that
// changed since they were last read. Trouble is read for units that are not
// loaded or not up. Times and counts are those of the moment when the unit was
// last seen to change.
//
// A bare template has no state: it is answered Loaded, Masked or NotFound by
// its unit file, with Active Inactive and no Fragment. A name that is not valid
// is answered LoadFailed with the rule that it breaks in Trouble.LoadError.
func (m *Manager) Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error) {
	if len(names) == 0 {
		return nil, nil
	}
	l, err := m.using(ctx, "observe")
	if err != nil {
		return nil, err
	}
	found := make(map[unit.Name]unit.Status, len(names))
	var plain, templates []unit.Name
	for _, n := range unique(names) {
		switch _, err := unit.ParseName(string(n)); {
		case err != nil:
			found[n] = unit.Status{Asked: n, ID: n, Load: unit.LoadFailed, Active: unit.Inactive, Trouble: unit.Trouble{LoadError: err.Error()}}
		case n.IsTemplate():
			templates = append(templates, n)
		default:
			plain = append(plain, n)
		}
	}
	for _, look := range []func() error{
		func() error { return m.observePlain(ctx, l, plain, found) },
		func() error { return observeTemplates(ctx, l, templates, found) },
	} {
		if err := look(); err != nil {
			return nil, looking("observe", "", err)
		}
	}
	out := make([]unit.Status, len(names))
	for i, n := range names {
		out[i] = found[n]
		out[i].DropIns = slices.Clone(out[i].DropIns)
	}
	return out, nil
}

func unique(names []unit.Name) []unit.Name {
	seen := make(map[unit.Name]bool, len(names))
	out := make([]unit.Name, 0, len(names))
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

func (m *Manager) observePlain(ctx context.Context, l *link, names []unit.Name, found map[unit.Name]unit.Status) error {
	rows, err := list(ctx, l, names)
	if err != nil {
		return err
	}
	looks := make([]*look, 0, len(rows))
	byID := make(map[unit.Name]*look, len(rows))
	for _, r := range rows {
		n := unit.Name(r.Name)
		if byID[n] == nil { // an alias and its unit are one look
			lk := &look{row: r, ticket: m.cache.open(n, r.key())}
			byID[n] = lk
			looks = append(looks, lk)
		}
	}
	if err := fill(ctx, l, looks); err != nil {
		return err
	}
	for _, lk := range looks {
		if lk.whole {
			m.cache.store(unit.Name(lk.row.Name), lk.ticket)
		}
	}
	for i, r := range rows {
		found[names[i]] = byID[unit.Name(r.Name)].status(names[i])
	}
	return nil
}

// row is one unit as ListUnitsByNames gives it.
type row struct {
	Name, Description, Load, Active, Sub, Following string
	Path                                            dbus.ObjectPath
	JobID                                           uint32
	JobType                                         string
	JobPath                                         dbus.ObjectPath
}

func (r row) key() key {
	return key{unit.LoadState(r.Load), unit.ActiveState(r.Active), r.Sub, unit.Job{ID: r.JobID, Type: unit.JobType(r.JobType)}}
}

// list asks for the rows of names, in their order. The manager refuses the
// whole call for one name that it does not like, and would skip one that it
// holds to be invalid; then each is asked for alone.
func list(ctx context.Context, l *link, names []unit.Name) ([]row, error) {
	if len(names) == 0 {
		return nil, nil
	}
	r := l.one(ctx, onManager("ListUnitsByNames", texts(names)))
	var rows []row
	var a *answer
	switch {
	case r.err == nil:
		if err := dbus.Store(r.body, &rows); err != nil {
			return nil, strange("ListUnitsByNames", err)
		}
		if len(rows) == len(names) {
			return rows, nil
		}
	case !errors.As(r.err, &a):
		return nil, r.err
	}
	return listEach(ctx, l, names)
}

func listEach(ctx context.Context, l *link, names []unit.Name) ([]row, error) {
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = onManager("ListUnitsByNames", []string{string(n)})
	}
	rows := make([]row, len(names))
	for i, r := range l.do(ctx, calls) {
		var one []row
		var a *answer
		if r.err == nil {
			if err := dbus.Store(r.body, &one); err != nil {
				return nil, strange("ListUnitsByNames", err)
			}
			if len(one) == 1 {
				rows[i] = one[0]
				continue
			}
		} else if !errors.As(r.err, &a) {
			return nil, r.err
		}
		rows[i] = row{Name: string(names[i]), Load: string(unit.LoadFailed), Active: string(unit.Inactive)}
	}
	return rows, nil
}

// observeTemplates asks for the unit file's state, which is all that the
// manager can say of a bare template.
func observeTemplates(ctx context.Context, l *link, names []unit.Name, found map[unit.Name]unit.Status) error {
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = onManager("GetUnitFileState", string(n))
	}
	for i, r := range l.do(ctx, calls) {
		s := unit.Status{Asked: names[i], ID: names[i], Load: unit.NotFound, Active: unit.Inactive}
		var state string
		var a *answer
		switch {
		case errors.As(r.err, &a):
			s.Trouble.LoadError = a.Error()
		case r.err != nil:
			return r.err
		case dbus.Store(r.body, &state) != nil:
			return strange("GetUnitFileState", fmt.Errorf("%v", r.body))
		case strings.HasPrefix(state, "masked"):
			s.Load = unit.Masked
		default:
			s.Load = unit.Loaded
		}
		found[names[i]] = s
	}
	return nil
}

func texts(names []unit.Name) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return out
}
