package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// maxStrays bounds the epochs that nodes hold and the store does not know.
const maxStrays = 16

// Prove weighs the index that a node holds and that is newer than Now, or of an
// epoch that Now neither is of nor follows. Refused: it proves nothing. Otherwise
// Now says what follows from it, and a restart too: with a newer revision of the
// epoch Now is unsound; another epoch is followed by the next one that begins.
//
// A node that is merely ahead of this copy is waited for; timeout when ctx ends
// before. What a node claims without an index is nothing to go by.
func (s *Store) Prove(ctx context.Context, node string, held wire.Signed) error {
	refuse := func(err error) error { return fault.New(fault.Refused, "weigh index of node", node, err) }
	if err := seal.CheckIndex(s.public, held.Index, held.Signature); err != nil {
		return refuse(err)
	}
	var index wire.Index
	if err := json.Unmarshal(held.Index, &index); err != nil {
		return refuse(err)
	}
	switch {
	case index.Mesh != s.o.Mesh:
		return refuse(fmt.Errorf("it is of mesh %q", index.Mesh))
	case index.Node != node:
		return refuse(fmt.Errorf("it is of node %q", index.Node))
	case index.Epoch == "":
		return refuse(errors.New("it is of no epoch"))
	}
	if err := s.caughtUp(ctx, index.Revision); err != nil {
		return err
	}
	s.weigh(index)
	return nil
}

// caughtUp waits until the copy is as new as the store, or as revision.
func (s *Store) caughtUp(ctx context.Context, revision uint64) error {
	if s.Now().Revision >= revision {
		return nil
	}
	f, err := s.bucket.Figures(ctx)
	switch {
	case fault.Is(err, fault.NotFound): // it is gone: the copy is all there is
		return nil
	case err != nil:
		return err
	}
	return s.Reach(ctx, min(revision, f.Revision))
}

// weigh draws the conclusions from an index that this mesh signed.
func (s *Store) weigh(index wire.Index) {
	s.mu.Lock()
	before, m := s.now, s.marker
	switch now := s.now.state; {
	case index.Epoch == now.Epoch && index.Revision > now.Revision:
		if index.Revision > m.Revision {
			m.Revision, m.Sum, m.Proof = index.Revision, "", "node "+index.Node
		}
	case index.Epoch != now.Epoch && !slices.Contains(now.Follows, index.Epoch) && !slices.Contains(m.Strays, index.Epoch) && len(m.Strays) < maxStrays:
		m.Strays = append(slices.Clone(m.Strays), index.Epoch)
	}
	if m.equal(s.marker) {
		s.mu.Unlock()
		return
	}
	s.marker = m
	s.now = s.now.doubted(m)
	after := s.now
	s.mark()
	s.wakeAll()
	s.mu.Unlock()
	s.tell(before, after)
	if len(m.Strays) > 0 {
		s.o.Logger.Warn("a node holds an epoch that the store does not know", "node", index.Node, "epoch", index.Epoch, "hint", cure)
	}
}
