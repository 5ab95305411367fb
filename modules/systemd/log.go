package systemd

import (
	"context"

	"stead/host/unit"
	"stead/runtime/tool"
	"stead/seats"
)

// Read is the journal verb as one answer: a page of entries.
func (m *Module) Read(ctx context.Context, a seats.JournalArguments) (seats.JournalReply, error) {
	a, known := m.ofUnit(ctx, a)
	reply, err := m.o.Journal.Read(ctx, a)
	if err == nil && !known && len(reply.Entries) == 0 {
		err = m.silent(ctx, a)
	}
	return reply, err
}

// Follow is the journal verb as a stream. Nothing is read that its caller has no
// room for, beyond one chunk.
func (m *Module) Follow(ctx context.Context, a seats.JournalArguments, s tool.Stream) error {
	a, known := m.ofUnit(ctx, a)
	if !known {
		if err := m.silent(ctx, a); err != nil {
			return err
		}
	}
	if err := s.Ready(); err != nil {
		return err
	}
	return m.o.Journal.Stream(ctx, a, func(r seats.JournalReply) error { return s.Send(r.JSON(), r.Cursor) })
}

// ofUnit puts the unit's own name, which its entries carry, in place of an alias;
// known is false when systemd knows no such unit. The journal is there when systemd
// does not answer, and knows units that systemd forgot.
func (m *Module) ofUnit(ctx context.Context, a seats.JournalArguments) (seats.JournalArguments, bool) {
	n, err := unit.ParseName(unit.Full(a.Unit))
	if err != nil || isGlob(a.Unit) || n.IsTemplate() || a.Scope == string(unit.User) {
		return a, true
	}
	d, err := m.o.Reader.Details(ctx, n)
	if err != nil {
		return a, true
	}
	a.Unit = string(d.ID)
	return a, exists(d.Load, d.Active)
}

// silent is the error for a unit that systemd does not know, when the journal has
// never heard of it either.
func (m *Module) silent(ctx context.Context, a seats.JournalArguments) error {
	one := 1
	entries, err := m.o.Journal.Read(ctx, seats.JournalArguments{Unit: a.Unit, Lines: &one})
	switch {
	case err != nil || len(entries.Entries) > 0:
		return err
	}
	return m.unknown(ctx, string(seats.Journal), a.Unit)
}
