package systemd

import (
	"context"

	"stead/host/unit"
	"stead/runtime/tool"
	"stead/seats"
)

// Read is the journal verb as one answer: a page of entries.
func (m *Module) Read(ctx context.Context, a seats.JournalArguments) (seats.JournalReply, error) {
	v := m.in(a.Scope)
	j, err := v.journal(ctx)
	if err != nil {
		return seats.JournalReply{}, err
	}
	a, known := v.ofUnit(ctx, a)
	reply, err := j.Read(ctx, a)
	if err == nil && !known && len(reply.Entries) == 0 {
		err = v.silent(ctx, j, a)
	}
	return reply, err
}

// Follow is the journal verb as a stream. Nothing is read that its caller has no
// room for, beyond one chunk.
func (m *Module) Follow(ctx context.Context, a seats.JournalArguments, s tool.Stream) error {
	v := m.in(a.Scope)
	j, err := v.journal(ctx)
	if err != nil {
		return err
	}
	a, known := v.ofUnit(ctx, a)
	if !known {
		if err := v.silent(ctx, j, a); err != nil {
			return err
		}
	}
	if err := s.Ready(); err != nil {
		return err
	}
	return j.Stream(ctx, a, func(r seats.JournalReply) error { return s.Send(r.JSON(), r.Cursor) })
}

// ofUnit puts the unit's own name, which its entries carry, in place of an alias;
// known is false when systemd knows no such unit. The journal is there when systemd
// does not answer, and knows units that systemd forgot.
func (v view) ofUnit(ctx context.Context, a seats.JournalArguments) (seats.JournalArguments, bool) {
	n, err := unit.ParseName(unit.Full(a.Unit))
	if err != nil || isGlob(a.Unit) || n.IsTemplate() {
		return a, true
	}
	if v.scope == unit.User {
		aside, cancel := context.WithTimeout(ctx, asideFor)
		defer cancel()
		ctx = aside
	}
	d, err := v.Details(ctx, n)
	if err != nil {
		return a, true
	}
	a.Unit = string(d.ID)
	return a, exists(d.Load, d.Active)
}

// silent is the error for a unit that systemd does not know, when the journal has
// never heard of it either.
func (v view) silent(ctx context.Context, j Journal, a seats.JournalArguments) error {
	one := 1
	entries, err := j.Read(ctx, seats.JournalArguments{Unit: a.Unit, Lines: &one, Scope: a.Scope})
	switch {
	case err != nil || len(entries.Entries) > 0:
		return err
	}
	return v.unknown(ctx, string(seats.Journal), a.Unit)
}
