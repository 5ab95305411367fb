package escalate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	// readFor bounds one question, the wait for its turn included.
	readFor = 10 * time.Second
	// maxReads is how many questions are under way, and readsTogether how many of them
	// are asked at one time: each may bring mostRead and as much again.
	maxReads      = 256
	readsTogether = 8
)

// reads bounds the questions about user scope. Nothing of system scope waits for them.
type reads struct {
	all chan struct{} // taken by each
	now chan struct{} // and by those whose turn it is
}

func newReads() *reads {
	return &reads{all: make(chan struct{}, maxReads), now: make(chan struct{}, readsTogether)}
}

// read takes one question.
func (s *Server) read(life context.Context, c *conn, a asked) {
	err := a.question.check()
	switch {
	case err != nil:
	case len(a.ID) < minID || len(a.ID) > maxID || !alphanumeric(a.ID) || len(a.For) > maxFor:
		err = fault.New(fault.Invalid, "read", string(a.Read), fmt.Errorf("a question is known by %d to %d letters and digits", minID, maxID))
	case a.Scope != unit.User:
		err = fault.New(fault.Refused, "read", string(a.Read), errors.New("user scope alone is read by the root helper"))
	case s.tenants == nil:
		err = fault.New(fault.Unsupported, "read", string(a.Read), errors.New("this root helper serves no user scope"))
	}
	if err != nil {
		s.o.Logger.Warn("question refused", "read", fmt.Sprintf("%.32s", string(a.Read)), "for", fmt.Sprintf("%.256s", a.For), "error", err)
		s.answer(c, a, nil, err)
		return
	}
	select {
	case s.reads.all <- struct{}{}:
	default:
		s.answer(c, a, nil, fault.New(fault.Unavailable, "read", string(a.Read), fmt.Errorf("busy: %d questions are under way", maxReads)))
		return
	}
	s.wg.Go(func() {
		defer func() { <-s.reads.all }()
		ctx, cancel := context.WithTimeout(life, readFor)
		defer cancel()
		parts, err := s.asked(ctx, c, a)
		if errors.Is(err, errStranger) {
			s.o.Logger.Warn("question refused", "read", a.Read, "for", a.For, "pid", c.from.pid, "reason", err)
			_ = c.nc.Close()
			return
		}
		s.answer(c, a, parts, err)
	})
}

// errStranger says that another process than the one that asked is the runtime now.
var errStranger = errors.New("the runtime's main process is another one now")

// asked asks the account's manager, when its turn has come.
func (s *Server) asked(ctx context.Context, c *conn, a asked) ([]*piece, error) {
	op, object := a.about()
	if a.Read != readAccount { // of which no manager is asked
		select {
		case s.reads.now <- struct{}{}:
			defer func() { <-s.reads.now }()
		case <-ctx.Done():
			return nil, fault.New(fault.Failed, op, object, errors.New("the user manager does not answer the questions before it"))
		}
	}
	parts, err := s.tenants.ask(ctx, a.question)
	switch is, failed := c.is(ctx); {
	case failed != nil:
		return nil, fault.New(fault.Unavailable, op, object, failed)
	case !is:
		return nil, errStranger
	}
	return parts, err
}

// answer sends the pieces of an answer, or why there is none.
func (s *Server) answer(c *conn, a asked, parts []*piece, err error) {
	log := []any{"read", a.Read, "for", a.For, "scope", unit.User}
	if err != nil {
		s.o.Logger.Debug("question not answered", append(log, "error", err)...)
		_ = c.send(answered{ID: a.ID, Last: true, Fault: failed(err).Fault})
		return
	}
	s.o.Logger.Debug("question answered", append(log, "pieces", len(parts))...)
	for i, p := range parts {
		if c.send(answered{ID: a.ID, Piece: p, Last: i == len(parts)-1}) != nil {
			return
		}
	}
}

// ask asks the manager of the account of this moment.
func (u *tenants) ask(ctx context.Context, q question) ([]*piece, error) {
	op, object := q.about()
	if q.Read == readAccount {
		a, err := u.account(ctx)
		if err != nil {
			return nil, during(op, object, err)
		}
		return []*piece{{Account: &a}}, nil
	}
	t, err := u.enter(ctx)
	if err != nil {
		return nil, during(op, object, err)
	}
	defer t.leave()
	parts, err := q.of(ctx, t.reader)
	if errors.Is(err, errMuch) {
		err = fault.New(fault.Failed, op, object, fmt.Errorf("user manager of %s: %w", t.account.Name, err))
	}
	return parts, t.explain(op, object, err)
}

// account is whose scope it is, with what is known to stand in the way.
func (u *tenants) account(ctx context.Context) (Account, error) {
	a, now, err := u.whose(ctx)
	switch {
	case fault.Is(err, fault.Refused):
		return a, err
	case err != nil:
		a.Trouble = err.Error()
		return a, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now != nil && u.now.of == now {
		a.Trouble = u.now.trouble()
	}
	return a, nil
}

// of asks r.
func (q question) of(ctx context.Context, r questions) ([]*piece, error) {
	switch q.Read {
	case readUnits, readNamed:
		return q.units(ctx, r)
	case readFiles:
		files, err := r.Files(ctx, *q.Filter)
		if err != nil {
			return nil, err
		}
		for i := range files {
			files[i].Path, files[i].State = cut(files[i].Path, mostPath), cut(files[i].State, mostWord)
		}
		return pieces(files, func(f []unit.ListedFile) *piece { return &piece{Files: f} })
	case readEnablement:
		states, err := r.Enablement(ctx, q.Names)
		if err != nil {
			return nil, err
		}
		for i := range states {
			states[i] = cut(states[i], mostWord)
		}
		return pieces(states, func(s []string) *piece { return &piece{Texts: s} })
	case readStands:
		return q.stands(ctx, r)
	}
	d, err := r.Details(ctx, q.Names[0])
	if err != nil {
		return nil, err
	}
	d = detailed(d)
	return pieces([]unit.Details{d}, func(d []unit.Details) *piece { return &piece{Details: &d[0]} })
}

func (q question) units(ctx context.Context, r questions) (parts []*piece, err error) {
	var units []unit.Listed
	if q.Read == readNamed {
		units, err = r.Named(ctx, q.Names)
	} else {
		units, err = r.Units(ctx, *q.Filter)
	}
	if err != nil {
		return nil, err
	}
	for i := range units {
		units[i] = listed(units[i])
	}
	return pieces(units, func(u []unit.Listed) *piece { return &piece{Units: u} })
}

func (q question) stands(ctx context.Context, r questions) ([]*piece, error) {
	units := make([]unit.Listed, len(q.Names))
	for i, n := range q.Names {
		units[i] = unit.Listed{Name: n, Active: q.States[i]}
	}
	stands, err := r.Stands(ctx, units)
	if err != nil {
		return nil, err
	}
	for i := range stands {
		stands[i].Result = cut(stands[i].Result, mostWord)
	}
	return pieces(stands, func(s []unit.Stand) *piece { return &piece{Stands: s} })
}
