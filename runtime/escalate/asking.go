package escalate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"stead/host/fault"
	"stead/host/unit"
)

// UserReader asks how the units of the node's operator account stand, as a
// host/systemd.Reader does of the system's. It is a view of a Client.
//
// Errors, besides those of a host/systemd.Reader: refused when the node has no
// account that is served; failed when its manager does not run, or lets nobody in;
// unavailable when it, or the helper, cannot be reached.
type UserReader struct{ c *Client }

// User is what reads the user scope through c.
func (c *Client) User() UserReader { return UserReader{c} }

// Account is whose scope it is. The error, of class refused, says why it is nobody's.
func (u UserReader) Account(ctx context.Context) (Account, error) {
	parts, err := u.ask(ctx, question{Read: readAccount})
	if err != nil {
		return Account{}, err
	}
	if len(parts) != 1 || parts[0].Account == nil {
		return Account{}, u.strange(readAccount)
	}
	return *parts[0].Account, nil
}

// Units is host/systemd.Reader.Units.
func (u UserReader) Units(ctx context.Context, f unit.Filter) ([]unit.Listed, error) {
	parts, err := u.ask(ctx, question{Read: readUnits, Filter: &f})
	return joinedOf(parts, func(p *piece) []unit.Listed { return p.Units }), err
}

// Files is host/systemd.Reader.Files.
func (u UserReader) Files(ctx context.Context, f unit.Filter) ([]unit.ListedFile, error) {
	parts, err := u.ask(ctx, question{Read: readFiles, Filter: &f})
	return joinedOf(parts, func(p *piece) []unit.ListedFile { return p.Files }), err
}

// Named is host/systemd.Reader.Named.
func (u UserReader) Named(ctx context.Context, names []unit.Name) ([]unit.Listed, error) {
	return each(names, func(some []unit.Name) ([]unit.Listed, error) {
		parts, err := u.ask(ctx, question{Read: readNamed, Names: some})
		return joinedOf(parts, func(p *piece) []unit.Listed { return p.Units }), err
	})
}

// Enablement is host/systemd.Reader.Enablement.
func (u UserReader) Enablement(ctx context.Context, names []unit.Name) ([]string, error) {
	return each(names, func(some []unit.Name) ([]string, error) {
		parts, err := u.ask(ctx, question{Read: readEnablement, Names: some})
		return joinedOf(parts, func(p *piece) []string { return p.Texts }), err
	})
}

// Stands is host/systemd.Reader.Stands.
func (u UserReader) Stands(ctx context.Context, units []unit.Listed) ([]unit.Stand, error) {
	return each(units, func(some []unit.Listed) ([]unit.Stand, error) {
		q := question{Read: readStands}
		for _, l := range some {
			q.Names, q.States = append(q.Names, l.Name), append(q.States, l.Active)
		}
		parts, err := u.ask(ctx, q)
		return joinedOf(parts, func(p *piece) []unit.Stand { return p.Stands }), err
	})
}

// Details is host/systemd.Reader.Details.
func (u UserReader) Details(ctx context.Context, name unit.Name) (unit.Details, error) {
	parts, err := u.ask(ctx, question{Read: readDetails, Names: []unit.Name{name}})
	if err != nil {
		return unit.Details{}, err
	}
	if len(parts) != 1 || parts[0].Details == nil {
		return unit.Details{}, u.strange(readDetails)
	}
	return *parts[0].Details, nil
}

// ask sends a question and waits for the whole answer.
func (u UserReader) ask(ctx context.Context, q question) ([]*piece, error) {
	p, err := u.c.put(asked{ID: rand.Text(), Scope: unit.User, question: q, For: forWhom(ctx)})
	if err != nil {
		return nil, err
	}
	a, err := u.c.wait(ctx, p, Request{Act: asking, Scope: unit.User})
	if err != nil {
		return nil, err
	}
	if a.Fault != nil {
		return nil, (&end{Fault: a.Fault}).err()
	}
	return p.pieces, nil
}

func (u UserReader) strange(what read) error {
	return fault.New(fault.Internal, string(asking), string(what), errors.New("the answer has another form"))
}

// joinedOf is a list from its pieces.
func joinedOf[T any](parts []*piece, of func(*piece) []T) []T {
	var all []T
	for _, p := range parts {
		all = append(all, of(p)...)
	}
	return all
}

// each asks about as many names at one time as one question may have. An answer is
// about every one of them.
func each[N, T any](names []N, ask func([]N) ([]T, error)) ([]T, error) {
	var all []T
	for len(names) > 0 {
		some := names[:min(len(names), mostNames)]
		part, err := ask(some)
		if err != nil {
			return nil, err
		}
		if len(part) != len(some) {
			return nil, fault.New(fault.Internal, string(asking), "", fmt.Errorf("it was asked about %d units, and says something of %d", len(some), len(part)))
		}
		all, names = append(all, part...), names[len(some):]
	}
	return all, nil
}
