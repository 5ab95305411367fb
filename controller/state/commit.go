package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/bucket"
)

const (
	// MaxChanges is how many changes one commit may hold.
	MaxChanges = bucket.MaxCommit
	// late is how long a commit that was acknowledged waits for the copy.
	late = 5 * time.Second
)

// Change is one write of a commit: exactly one of its fields is set. Service of a
// declaration and Revision of all are not looked at.
type Change struct {
	Declaration *assign.Declaration
	Node        *assign.Node
	Seat        *assign.Seat
	Module      *assign.Module
}

// Decide commits what decide wants of the newest state, and lets it decide again
// when another commit was first. No changes: nothing is committed and after is
// before. An error of decide ends it and is returned as it is. Decide is called
// in the caller's goroutine; decisions of one controller take turns, so it should
// only decide.
//
// Errors: those of Commit, without conflict as long as ctx lasts.
func (s *Store) Decide(ctx context.Context, decide func(*assign.State) ([]Change, error)) (before, after *assign.State, err error) {
	if err := s.hold(ctx); err != nil {
		return nil, nil, err
	}
	defer func() { <-s.turn }()
	for {
		before = s.Now()
		if before.Unsound != nil {
			return before, nil, before.Unsound
		}
		changes, err := decide(before)
		if err != nil || len(changes) == 0 {
			return before, before, err
		}
		after, err = s.commit(ctx, before, changes)
		if err == nil || !fault.Is(err, fault.Conflict) || !pause(ctx, rand.N(5*time.Millisecond)) {
			return before, after, err
		}
	}
}

// Commit writes all changes or none, decided on base, and returns exactly the
// state that follows base; Now holds it by then, unless the copy is late.
//
// Errors: conflict when base is not the newest any more; failed when the state is
// unsound; invalid when a change is too large or there are too many; refused when
// the bucket is full; unavailable when nothing was done; timeout when it may have
// been done, and it could not be found out.
func (s *Store) Commit(ctx context.Context, base *assign.State, changes []Change) (*assign.State, error) {
	if err := s.hold(ctx); err != nil {
		return nil, err
	}
	defer func() { <-s.turn }()
	return s.commit(ctx, base, changes)
}

// hold takes the turn.
func (s *Store) hold(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "commit", "mesh state", errors.New("others are not done; nothing was done"))
	}
}

func (s *Store) commit(ctx context.Context, base *assign.State, changes []Change) (*assign.State, error) {
	entries, err := entriesOf(changes)
	if err != nil {
		return nil, err
	}
	if err := s.Reach(ctx, base.Revision); err != nil {
		return nil, err
	}
	for {
		p := s.current()
		switch {
		case p.state.Unsound != nil:
			return nil, p.state.Unsound
		case p.state.Epoch != base.Epoch || p.state.Revision != base.Revision:
			return nil, fault.New(fault.Conflict, "commit", "mesh state",
				fmt.Errorf("it is at revision %d, and was decided on revision %d", p.state.Revision, base.Revision))
		}
		last, err := s.write(ctx, p.sequence, s.compose(p.stands, p.sequence, entries, true))
		if err == nil {
			return s.reached(ctx, base, changes, last)
		}
		if !fault.Is(err, fault.Conflict) {
			return nil, err
		}
		// Somebody wrote. When it was no controller the decision still holds.
		if err := s.beyond(ctx, p); err != nil {
			return nil, err
		}
	}
}

func entriesOf(changes []Change) ([]entry, error) {
	if len(changes) == 0 || len(changes) > MaxChanges {
		return nil, fault.New(fault.Invalid, "commit", "mesh state", fmt.Errorf("%d changes; 1 to %d", len(changes), MaxChanges))
	}
	entries := make([]entry, 0, len(changes))
	for _, c := range changes {
		key, body, deleted, err := c.body()
		if err != nil {
			return nil, err
		}
		if err := bucket.CheckKey(key); err != nil {
			return nil, err
		}
		entries = append(entries, entry{key, body, deleted})
	}
	return entries, nil
}

// beyond waits until there is a snapshot of a later time than p.
func (s *Store) beyond(ctx context.Context, p *snapshot) error {
	for {
		s.mu.Lock()
		now, moved := s.now, s.moved
		s.mu.Unlock()
		if now.sequence != p.sequence || now.sum != p.sum || now.state.Unsound != nil && p.state.Unsound == nil {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.New(fault.Unavailable, "commit", "mesh state", errors.New("the copy of it is late; nothing was done"))
		}
	}
}

// reached returns the state that changes, which landed, make of base.
func (s *Store) reached(ctx context.Context, base *assign.State, changes []Change, last uint64) (*assign.State, error) {
	ctx, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	if s.Reach(ctx, last) == nil {
		if now := s.Now(); now.Revision == last && now.Epoch == base.Epoch {
			return now, nil
		}
	}
	return next(base, changes, last)
}

// next is base with changes, the last of them at revision.
func next(base *assign.State, changes []Change, revision uint64) (*assign.State, error) {
	state := *base
	state.Revision = revision
	state.Declarations, state.Nodes = maps.Clone(base.Declarations), maps.Clone(base.Nodes)
	state.UnreadableDeclarations, state.UnreadableNodes = maps.Clone(base.UnreadableDeclarations), maps.Clone(base.UnreadableNodes)
	state.Seats, state.Modules = maps.Clone(base.Seats), maps.Clone(base.Modules)
	state.UnreadableSeats, state.UnreadableModules = maps.Clone(base.UnreadableSeats), maps.Clone(base.UnreadableModules)
	after := &snapshot{state: &state}
	first := revision + 1 - uint64(len(changes))
	for i, c := range changes {
		key, body, deleted, err := c.body()
		if err != nil {
			return nil, err
		}
		written := &item{}
		written.say(bucket.Entry[[]byte]{Key: key, Revision: first + uint64(i), Deleted: deleted}, body) //nolint:gosec // an index
		if written.unread != "" {
			return nil, fault.New(fault.Internal, "read what was committed", key, errors.New(written.unread))
		}
		after.add(key, written)
	}
	return &state, nil
}
