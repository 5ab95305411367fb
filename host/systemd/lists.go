package systemd

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/host/unit"
)

// Units lists the units that the manager has loaded, by name. What f leaves out
// is what systemctl list-units leaves out. It takes one call.
func (r *Reader) Units(ctx context.Context, f unit.Filter) ([]unit.Listed, error) {
	replies, err := r.ask(ctx, "list units", "", []call{onManager("ListUnitsByPatterns", some(f.States), some(f.Patterns))})
	if err != nil {
		return nil, err
	}
	if replies[0].err != nil {
		return nil, looking("list units", "", replies[0].err)
	}
	units, err := listedOf("ListUnitsByPatterns", replies[0].body)
	if err != nil {
		return nil, err
	}
	units = slices.DeleteFunc(units, func(u unit.Listed) bool { return !f.Shows(u) })
	slices.SortFunc(units, func(a, b unit.Listed) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return units, nil
}

// Named lists units by name, in the order of names: each under its primary name,
// and loaded for the call where the manager did not have it. One that does not
// exist is answered with Load NotFound, a name of which there can be no unit, as
// that of a template, with LoadFailed. It takes one call.
func (r *Reader) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	out := make([]unit.Listed, len(names))
	ask := make([]unit.Name, 0, len(names))
	at := make([]int, 0, len(names))
	for i, n := range names {
		out[i] = unit.Listed{Name: n, Load: unit.LoadFailed, Active: unit.Inactive}
		if _, err := unit.ParseName(string(n)); err == nil && !n.IsTemplate() {
			ask, at = append(ask, n), append(at, i)
		}
	}
	if len(ask) == 0 {
		return out, nil
	}
	units, err := r.named(ctx, [][]unit.Name{ask})
	if err == nil && len(units[0]) != len(ask) { // the manager takes offence at one of them
		each := make([][]unit.Name, len(ask))
		for i := range ask {
			each[i] = ask[i : i+1]
		}
		units, err = r.named(ctx, each)
	}
	if err != nil {
		return nil, err
	}
	for i, u := range slices.Concat(units...) {
		out[at[i]] = u
	}
	return out, nil
}

// named asks for each list of names in a call of its own. Where the manager
// refuses one, or says less than it was asked, a single name is answered
// LoadFailed and a longer list not at all.
func (r *Reader) named(ctx context.Context, lists [][]unit.Name) ([][]unit.Listed, error) {
	const method = "ListUnitsByNames"
	calls := make([]call, len(lists))
	for i, names := range lists {
		calls[i] = onManager(method, texts(names))
	}
	replies, err := r.ask(ctx, "list units", "", calls)
	if err != nil {
		return nil, err
	}
	out := make([][]unit.Listed, len(lists))
	for i, rep := range replies {
		switch err := looking("list units", "", rep.err); fault.ClassOf(err) {
		case "":
			if out[i], err = listedOf(method, rep.body); err != nil {
				return nil, err
			}
		case fault.NotFound, fault.Invalid:
		default:
			return nil, err
		}
		switch {
		case len(out[i]) == len(lists[i]):
		case len(lists[i]) == 1:
			out[i] = []unit.Listed{{Name: lists[i][0], Load: unit.LoadFailed, Active: unit.Inactive}}
		default:
			out[i] = nil
		}
	}
	return out, nil
}

// Files lists the unit files of the search path, by name, with their state and
// their preset: what f leaves out is what systemctl list-unit-files leaves out.
// It takes one call, in which the manager finds out the state of all that
// f.Patterns match: 2 ms each, in which it does nothing else.
func (r *Reader) Files(ctx context.Context, f unit.Filter) ([]unit.ListedFile, error) {
	replies, err := r.ask(ctx, "list unit files", "", []call{onManager("ListUnitFilesByPatterns", some(f.States), some(f.Patterns))})
	if err != nil {
		return nil, err
	}
	if replies[0].err != nil {
		return nil, looking("list unit files", "", replies[0].err)
	}
	c, err := open("ListUnitFilesByPatterns", replies[0].body, "a(ss)")
	if err != nil {
		return nil, err
	}
	var files []unit.ListedFile
	presets := readPresets(r.opts.Presets)
	c.list(func() {
		l := unit.ListedFile{Path: string(c.text()), State: string(c.text())}
		l.Name = unit.Name(l.Path[strings.LastIndexByte(l.Path, '/')+1:])
		if unit.CheckName(string(l.Name)) != nil || !f.ShowsFile(l) {
			return
		}
		if unit.HasPreset(l.State) {
			l.Preset = presets.Of(l.Name)
		}
		files = append(files, l)
	})
	if c.bad {
		return nil, strange("ListUnitFilesByPatterns", errEarly)
	}
	slices.SortFunc(files, func(a, b unit.ListedFile) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return files, nil
}

// Enablement says the state of each unit's file as the manager last read it, in
// the order of names: "" for a unit without one, and for what is no unit or a
// template. It takes one small call for each, all in flight together.
func (r *Reader) Enablement(ctx context.Context, names []unit.Name) ([]string, error) {
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = get(pathOfUnit(n), unitIfc, "UnitFileState")
	}
	replies, err := r.ask(ctx, "read enablement", "", calls)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(names))
	for i, rep := range replies {
		switch err := looking("read enablement", string(names[i]), rep.err); fault.ClassOf(err) {
		case "":
		case fault.NotFound, fault.Invalid:
			continue
		default:
			return nil, err
		}
		if out[i], err = textOf("Get UnitFileState", rep.body); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Stands says since when each unit is in its state, and how its last run ended, in
// the order of units, which a list of a moment before told. It takes two small
// calls for each, all in flight together.
func (r *Reader) Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error) {
	var calls []call
	for _, u := range units {
		calls = append(calls, get(pathOfUnit(u.Name), unitIfc, stampOf(u.Active)))
		if ifc := typeIfcs[u.Name.Type()]; ifc != "" {
			calls = append(calls, get(pathOfUnit(u.Name), ifc, "Result"))
		}
	}
	replies, err := r.ask(ctx, "read since and result", "", calls)
	if err != nil {
		return nil, err
	}
	out := make([]unit.Stand, len(units))
	for i, u := range units {
		var at uint64
		err := valueOf(replies[0], "read since", u.Name, &at)
		if replies = replies[1:]; err == nil && typeIfcs[u.Name.Type()] != "" {
			err = valueOf(replies[0], "read result", u.Name, &out[i].Result)
			replies = replies[1:]
		}
		if err != nil {
			return nil, err
		}
		out[i].Since = moment(at)
	}
	return out, nil
}

// valueOf reads the answer to a Get; into stays as it is where there is no such
// unit.
func valueOf(rep reply, op string, n unit.Name, into any) error {
	err := looking(op, string(n), rep.err)
	switch fault.ClassOf(err) {
	case "":
	case fault.NotFound, fault.Invalid:
		return nil
	default:
		return err
	}
	c, err := open("Get", rep.body, "v")
	if err != nil {
		return err
	}
	if !c.store(string(c.signature()), into) || c.bad {
		return strange("Get", errors.New("it is of another type"))
	}
	return nil
}

// textOf reads a property that is a string.
func textOf(method string, body []any) (string, error) {
	c, err := open(method, body, "v")
	if err != nil {
		return "", err
	}
	var text string
	if !c.store(string(c.signature()), &text) || c.bad {
		return "", strange(method, errors.New("it is no string"))
	}
	return text, nil
}

// listedOf reads the answer of the calls that list units.
func listedOf(method string, body []any) ([]unit.Listed, error) {
	c, err := open(method, body, "a(ssssssouso)")
	if err != nil {
		return nil, err
	}
	var units []unit.Listed
	c.list(func() {
		var u unit.Listed
		u.Name, u.Description = unit.Name(c.text()), string(c.text())
		u.Load, u.Active, u.Sub = unit.LoadState(c.text()), unit.ActiveState(c.text()), string(c.text())
		u.Following = unit.Name(c.text())
		c.text() // its bus path
		u.Job.ID = c.u32()
		u.Job.Type = unit.JobType(c.text())
		c.text() // the job's bus path
		if unit.CheckName(string(u.Name)) == nil {
			units = append(units, u)
		}
	})
	if c.bad {
		return nil, strange(method, errEarly)
	}
	return units, nil
}

// errEarly is what is strange about a body that is shorter than it says.
var errEarly = errors.New("it ends early")

// some is list, which D-Bus cannot send as nil.
func some(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
