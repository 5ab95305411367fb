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
	reply := seats.UnitsReply{Units: []seats.UnitLine{}, Unreadable: unread(a.Scope)}
	if a.Scope == string(unit.User) {
		return reply, nil
	}
	list := m.unitLines
	if a.Files {
		list = m.fileLines
	}
	lines, err := list(ctx, a)
	if err != nil {
		return reply, err
	}
	if a.Declared {
		lines = slices.DeleteFunc(lines, func(l seats.UnitLine) bool { return l.DeclaredBy == nil })
	}
	page(&reply, lines, a)
	if !a.Files {
		err = m.enablement(ctx, reply.Units)
		if err == nil && a.Details {
			err = m.stands(ctx, reply.Units)
		}
	}
	return reply, err
}

// unitLines are the units that a asks for: those that systemd lists, those that
// a names without a pattern, and, of declared ones alone, those that are not
// loaded too.
func (m *Module) unitLines(ctx context.Context, a seats.UnitsArguments) ([]seats.UnitLine, error) {
	f := unit.Filter{Patterns: a.Patterns, States: a.States, Types: a.Types, All: a.All || a.Declared}
	units, err := m.o.Reader.Units(ctx, f)
	if err != nil {
		return nil, err
	}
	own := m.owners(unit.System)
	declared, err := own.learn(ctx, m.o.Reader, units)
	if err != nil {
		return nil, err
	}
	asked, err := m.asked(ctx, a.Patterns)
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
			lines = append(lines, lineOf(u, own.of(u.Name)))
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

// asked are the units that patterns name in full, or by an alias: they are shown
// whatever their state, and whether systemd has them loaded or not.
func (m *Module) asked(ctx context.Context, patterns []string) ([]unit.Listed, error) {
	var names []unit.Name
	for _, p := range patterns {
		if n, err := unit.ParseName(unit.Full(p)); err == nil && !isGlob(p) && !n.IsTemplate() {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return m.o.Reader.Named(ctx, names)
}

func lineOf(u unit.Listed, d *seats.DeclaredBy) seats.UnitLine {
	return seats.UnitLine{
		Name: string(u.Name), Scope: string(unit.System), Description: cut(u.Description, mostDescription),
		Load: string(u.Load), Active: string(u.Active), Sub: u.Sub, DeclaredBy: d,
	}
}

// fileLines are the unit files that a asks for.
func (m *Module) fileLines(ctx context.Context, a seats.UnitsArguments) ([]seats.UnitLine, error) {
	patterns := slices.Clone(a.Patterns)
	for i, p := range patterns {
		if !isGlob(p) {
			patterns[i] = unit.Full(p)
		}
	}
	files, err := m.o.Reader.Files(ctx, unit.Filter{Patterns: patterns, States: a.States, Types: a.Types})
	if err != nil {
		return nil, err
	}
	own := m.owners(unit.System)
	listed := make([]unit.Listed, 0, len(files))
	for _, f := range files {
		if f.State != "alias" { // what a declaration names may be one
			listed = append(listed, unit.Listed{Name: f.Name})
		}
	}
	if _, err := own.learn(ctx, m.o.Reader, listed); err != nil {
		return nil, err
	}
	if err := m.aliases(ctx, own, files); err != nil {
		return nil, err
	}
	lines := make([]seats.UnitLine, 0, len(files))
	for _, f := range files {
		lines = append(lines, seats.UnitLine{
			Name: string(f.Name), Scope: string(unit.System), Enablement: f.State, Preset: f.Preset, DeclaredBy: own.of(f.Name),
		})
	}
	return lines, nil
}

// aliases finds out whose the files are that are only further names of a unit.
func (m *Module) aliases(ctx context.Context, own owners, files []unit.ListedFile) error {
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
	units, err := m.o.Reader.Named(ctx, names)
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
func (m *Module) enablement(ctx context.Context, lines []seats.UnitLine) error {
	names := make([]unit.Name, 0, len(lines))
	for _, l := range lines {
		names = append(names, unit.Name(l.Name))
	}
	if len(names) == 0 {
		return nil
	}
	states, err := m.o.Reader.Enablement(ctx, names)
	if err != nil {
		return err
	}
	for i := range lines {
		lines[i].Enablement = states[i]
	}
	return nil
}

// stands fills in since when, and the result.
func (m *Module) stands(ctx context.Context, lines []seats.UnitLine) error {
	units := make([]unit.Listed, 0, len(lines))
	for _, l := range lines {
		units = append(units, unit.Listed{Name: unit.Name(l.Name), Active: unit.ActiveState(l.Active)})
	}
	stands, err := m.o.Reader.Stands(ctx, units)
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
