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
// loaded or not up; what triggers one that was never started, or that has just
// come down, is in the second answer that finds it so. Times and counts are those of the moment when the unit was
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
	w := m.cache.watch()
	defer m.cache.unwatch(w)
	rows, err := list(ctx, l, names)
	if err != nil {
		return err
	}
	looks := make([]*look, 0, len(rows))
	byID := make(map[unit.Name]*look, len(rows))
	for _, r := range rows {
		n := unit.Name(r.Name)
		if byID[n] == nil { // an alias and its unit are one look
			t := m.cache.open(n, r.key())
			lk := &look{row: r, kind: n.Type(), ticket: t, opened: t.entry}
			byID[n] = lk
			looks = append(looks, lk)
		}
	}
	if err := m.sortLoose(ctx, l, w, looks); err != nil {
		return err
	}
	if err := fill(ctx, l, looks); err != nil {
		return err
	}
	for _, lk := range looks {
		n := unit.Name(lk.row.Name)
		if lk.whole {
			m.cache.store(n, lk.ticket)
		}
		m.cache.discard(n, lk.opened)
	}
	for i, r := range rows {
		found[names[i]] = byID[unit.Name(r.Name)].status(names[i])
	}
	return nil
}

// sortLoose finds the units that the manager loaded for the list alone. It
// unloads them before it reads the next message, so when a ping is answered it
// has said which. Each property of such a unit costs a load of its own (0.7 ms,
// with signals of all that it depends on; seen on systemd 252), and but for its
// definition there is nothing to learn.
func (m *Manager) sortLoose(ctx context.Context, l *link, w *watch, looks []*look) error {
	unknown := func(lk *look) bool {
		return unit.ActiveState(lk.row.Active).Down() && unit.LoadState(lk.row.Load) != unit.NotFound &&
			(lk.ticket.def == nil || lk.ticket.run == nil)
	}
	if !slices.ContainsFunc(looks, unknown) {
		return nil
	}
	if r := l.one(ctx, pingCall()); r.err != nil {
		return r.err
	}
	for _, lk := range looks {
		if !unknown(lk) {
			continue
		}
		if t, loose := m.cache.openLoose(unit.Name(lk.row.Name), w); loose {
			lk.ticket = t
		}
	}
	return nil
}

// row is one unit as ListUnitsByNames gives it.
type row struct {
	Name, Load, Active, Sub string
	Path                    dbus.ObjectPath
	JobID                   uint32
	JobType                 string
}

// list asks for the rows of names, in their order. The manager refuses the
// whole call for one name that it does not like, and would skip one that it
// holds to be invalid; then each is asked for alone.
func list(ctx context.Context, l *link, names []unit.Name) ([]row, error) {
	if len(names) == 0 {
		return nil, nil
	}
	r := l.one(ctx, onManager("ListUnitsByNames", texts(names)))
	var a *answer
	switch {
	case r.err == nil:
		if rows, err := rowsOf(r.body); err != nil || len(rows) == len(names) {
			return rows, err
		}
	case !errors.As(r.err, &a):
		return nil, r.err
	}
	return listEach(ctx, l, names)
}

// rowsOf reads the answer of ListUnitsByNames, which is most of what a look at
// many units costs here: dbus.Store takes three times as long.
func rowsOf(body []any) ([]row, error) {
	var list [][]any
	ok := len(body) == 1
	if ok {
		list, ok = body[0].([][]any)
	}
	if !ok {
		return nil, strange("ListUnitsByNames", fmt.Errorf("%v", body))
	}
	rows := make([]row, len(list))
	for i, in := range list {
		r := &rows[i]
		if len(in) != 10 || !r.store(in) {
			return nil, strange("ListUnitsByNames", fmt.Errorf("%v", in))
		}
	}
	return rows, nil
}

// store reads the fields of one row that anybody asks for.
func (r *row) store(in []any) bool {
	ok := [7]bool{}
	r.Name, ok[0] = in[0].(string)
	r.Load, ok[1] = in[2].(string)
	r.Active, ok[2] = in[3].(string)
	r.Sub, ok[3] = in[4].(string)
	r.Path, ok[4] = in[6].(dbus.ObjectPath)
	r.JobID, ok[5] = in[7].(uint32)
	r.JobType, ok[6] = in[8].(string)
	return ok == [7]bool{true, true, true, true, true, true, true} && short(r.Name, r.Load, r.Active, r.Sub, r.JobType)
}

// Running returns the units that are up, or on their way up or down.
func (m *Manager) Running(ctx context.Context) ([]unit.Name, error) {
	const op = "list units"
	l, err := m.using(ctx, op)
	if err != nil {
		return nil, err
	}
	states := []string{string(unit.Active), string(unit.Reloading), string(unit.Refreshing), string(unit.Activating), string(unit.Deactivating)}
	r := l.one(ctx, onManager("ListUnitsByPatterns", states, []string{}))
	if r.err != nil {
		return nil, looking(op, string(m.opts.Scope), r.err)
	}
	rows, err := rowsOf(r.body)
	names := make([]unit.Name, len(rows))
	for i, row := range rows {
		names[i] = unit.Name(row.Name)
	}
	return names, err
}

func listEach(ctx context.Context, l *link, names []unit.Name) ([]row, error) {
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = onManager("ListUnitsByNames", []string{string(n)})
	}
	rows := make([]row, len(names))
	for i, r := range l.do(ctx, calls) {
		var a *answer
		if r.err == nil {
			one, err := rowsOf(r.body)
			if err != nil {
				return nil, err
			}
			if len(one) == 1 {
				rows[i] = one[0]
				continue
			}
		} else if !errors.As(r.err, &a) {
			return nil, r.err
		}
		// the manager has an answer for every valid name; this one it holds to be none
		rows[i] = row{Name: string(names[i]), Load: string(unit.NotFound), Active: string(unit.Inactive), Sub: "dead"}
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
			s.Trouble.LoadError = clip(a.Error())
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
