package systemd

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"stead/host/unit"
	"stead/mesh/wire"
	"stead/seats"
)

const (
	// mostDescription bounds what a unit file may make a line of a list.
	mostDescription = 4 << 10
	// lateWords is what the enablement takes, which a page is asked for when it is
	// known, and lateDetails what since and result take.
	lateWords   = 48
	lateDetails = 96
)

// Units is the verb: units, or unit files, in pages.
func (m *Module) Units(ctx context.Context, a seats.UnitsArguments) (seats.UnitsReply, error) {
	reply := seats.UnitsReply{Units: []seats.UnitLine{}}
	list := view.unitLines
	if a.Files {
		list = view.fileLines
	}
	seen, blind, err := look(ctx, m.views(a.Scope), func(ctx context.Context, v view) ([]seats.UnitLine, error) { return list(v, ctx, a) })
	if err != nil {
		return reply, err
	}
	reply.Unreadable = blind.named()
	var lines []seats.UnitLine
	var read []view
	for _, l := range seen {
		lines, read = append(lines, l.got...), append(read, l.view)
	}
	if a.Declared {
		lines = slices.DeleteFunc(lines, func(l seats.UnitLine) bool { return l.DeclaredBy == nil })
	}
	page(&reply, lines, a)
	if a.Files {
		return reply, nil
	}
	return reply, m.complete(ctx, read, &reply, a.Details)
}

// complete fills in what is asked for of the units of a page alone. A user manager that
// does not say it by now is named, and its units are left out.
func (m *Module) complete(ctx context.Context, read []view, reply *seats.UnitsReply, details bool) error {
	_, blind, err := look(ctx, read, func(ctx context.Context, v view) (struct{}, error) {
		var mine []*seats.UnitLine
		for i := range reply.Units {
			if reply.Units[i].Scope == string(v.scope) {
				mine = append(mine, &reply.Units[i])
			}
		}
		err := v.enablement(ctx, mine)
		if err == nil && details {
			err = v.stands(ctx, mine)
		}
		return struct{}{}, err
	})
	for _, b := range blind {
		reply.Units = slices.DeleteFunc(reply.Units, func(l seats.UnitLine) bool { return l.Scope == string(b.scope) })
	}
	reply.Unreadable = append(reply.Unreadable, blind.named()...)
	return err
}

// unitLines are the units that a asks for: those that systemd lists, those that
// a names without a pattern, and, of declared ones alone, those that are not
// loaded too.
func (v view) unitLines(ctx context.Context, a seats.UnitsArguments) ([]seats.UnitLine, error) {
	f := unit.Filter{Patterns: a.Patterns, States: a.States, Types: a.Types, All: a.All || a.Declared}
	units, err := v.Units(ctx, f)
	if err != nil {
		return nil, err
	}
	own := v.m.owners(v.scope)
	declared, err := own.learn(ctx, v, units)
	if err != nil {
		return nil, err
	}
	asked, err := v.named(ctx, a.Patterns)
	if err != nil {
		return nil, err
	}
	shown := unit.Filter{States: a.States, Types: a.Types, All: true}
	if a.Declared {
		by := unit.Filter{Patterns: a.Patterns}
		for _, d := range declared {
			if by.Names(d.Name) {
				asked = append(asked, d)
			}
		}
	} else {
		asked = slices.DeleteFunc(asked, func(u unit.Listed) bool { return !exists(u.Load, u.Active) })
	}
	seen := make(map[unit.Name]bool, len(units))
	lines := make([]seats.UnitLine, 0, len(units))
	add := func(u unit.Listed) {
		if !seen[u.Name] {
			seen[u.Name] = true
			lines = append(lines, v.lineOf(u, own.of(u.Name)))
		}
	}
	for _, u := range units {
		add(u)
	}
	for _, u := range asked {
		if shown.Shows(u) {
			add(u)
		}
	}
	return lines, nil
}

// named are the units that patterns name in full, or by an alias: they are shown
// whatever their state, and whether systemd has them loaded or not.
func (v view) named(ctx context.Context, patterns []string) ([]unit.Listed, error) {
	var names []unit.Name
	for _, p := range patterns {
		if n, err := unit.ParseName(unit.Full(p)); err == nil && !isGlob(p) && !n.IsTemplate() {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return v.Named(ctx, names)
}

func (v view) lineOf(u unit.Listed, d *seats.DeclaredBy) seats.UnitLine {
	return seats.UnitLine{
		Name: string(u.Name), Scope: string(v.scope), Description: cut(u.Description, mostDescription),
		Load: string(u.Load), Active: string(u.Active), Sub: u.Sub, DeclaredBy: d,
	}
}

// fileLines are the unit files that a asks for.
func (v view) fileLines(ctx context.Context, a seats.UnitsArguments) ([]seats.UnitLine, error) {
	patterns := slices.Clone(a.Patterns)
	for i, p := range patterns {
		if !isGlob(p) {
			patterns[i] = unit.Full(p)
		}
	}
	files, err := v.Files(ctx, unit.Filter{Patterns: patterns, States: a.States, Types: a.Types})
	if err != nil {
		return nil, err
	}
	own := v.m.owners(v.scope)
	listed := make([]unit.Listed, 0, len(files))
	for _, f := range files {
		if f.State != "alias" { // what a declaration names may be one
			listed = append(listed, unit.Listed{Name: f.Name})
		}
	}
	if _, err := own.learn(ctx, v, listed); err != nil {
		return nil, err
	}
	if err := v.aliases(ctx, own, files); err != nil {
		return nil, err
	}
	lines := make([]seats.UnitLine, 0, len(files))
	for _, f := range files {
		lines = append(lines, seats.UnitLine{
			Name: string(f.Name), Scope: string(v.scope), Enablement: f.State, Preset: f.Preset, DeclaredBy: own.of(f.Name),
		})
	}
	return lines, nil
}

// aliases finds out whose the files are that are only further names of a unit.
func (v view) aliases(ctx context.Context, own owners, files []unit.ListedFile) error {
	if len(own.by) == 0 {
		return nil
	}
	var names []unit.Name
	for _, f := range files {
		if f.State == "alias" && own.by[f.Name] == nil && !f.Name.IsTemplate() {
			names = append(names, f.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	units, err := v.Named(ctx, names)
	if err != nil {
		return err
	}
	for i, u := range units {
		if d := own.by[u.Name]; d != nil {
			own.by[names[i]] = d
		}
	}
	return nil
}

// enablement fills in the state of the unit files.
func (v view) enablement(ctx context.Context, lines []*seats.UnitLine) error {
	names := make([]unit.Name, 0, len(lines))
	for _, l := range lines {
		names = append(names, unit.Name(l.Name))
	}
	if len(names) == 0 {
		return nil
	}
	states, err := v.Enablement(ctx, names)
	if err != nil {
		return err
	}
	for i := range lines {
		lines[i].Enablement = states[i]
	}
	return nil
}

// stands fills in since when, and the result.
func (v view) stands(ctx context.Context, lines []*seats.UnitLine) error {
	units := make([]unit.Listed, 0, len(lines))
	for _, l := range lines {
		units = append(units, unit.Listed{Name: unit.Name(l.Name), Active: unit.ActiveState(l.Active)})
	}
	stands, err := v.Stands(ctx, units)
	if err != nil {
		return err
	}
	for i, s := range stands {
		lines[i].Since, lines[i].Result = s.Since, s.Result
	}
	return nil
}

// page fills reply with what fits into one message of what is behind a's cursor.
func page(reply *seats.UnitsReply, lines []seats.UnitLine, a seats.UnitsArguments) {
	late := lateWords
	if a.Details {
		late += lateDetails
	}
	key := func(l seats.UnitLine) string { return l.Scope + "/" + l.Name }
	slices.SortFunc(lines, func(a, b seats.UnitLine) int { return strings.Compare(key(a), key(b)) })
	size := 0
	for _, l := range lines {
		if key(l) <= a.Cursor {
			continue
		}
		text, _ := json.Marshal(l) // texts and numbers always encode
		if size += len(text) + late; size > wire.MaxPage && len(reply.Units) > 0 {
			reply.More = true
			break
		}
		reply.Units = append(reply.Units, l)
		reply.Cursor = key(l)
	}
}
