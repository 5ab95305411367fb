package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/subject"
)

// Claim is a claim that was accepted: that a module holds a seat on a node.
type Claim struct {
	Node     string
	Seat     subject.Seat
	Module   string
	At       time.Time
	Revision uint64 // of the bucket; that of a tombstone when Module is ""
}

// claimed is what is stored of a claim.
type claimed struct {
	Module string    `json:"module"`
	At     time.Time `json:"at"`
}

// claims are those of all nodes.
type claims struct {
	bucket *bucket.Bucket[claimed]
	watch  *bucket.Watcher[claimed]
}

func (s *Store) openClaims(ctx context.Context) (err error) {
	s.claim.bucket, err = insist(ctx, s.o, bucket.Options{
		Name: "claims", Description: "who holds which seat on which node", MaxBytes: maxClaims, MaxValue: 4 << 10,
	}, bucket.JSON[claimed]())
	if err == nil {
		s.claim.watch = bucket.NewWatcher(s.claim.bucket, bucket.WatchOptions{})
	}
	return err
}

// claimKey is that of a seat on a node. No name of a node holds a dot.
func claimKey(node string, seat subject.Seat) string { return node + "." + string(seat) }

// Claims are the accepted claims of all nodes, sorted by node and seat, as this
// controller's copy has them: those of other controllers come a moment later.
func (s *Store) Claims() []Claim {
	all, _, _ := s.claim.watch.Snapshot()
	list := make([]Claim, 0, len(all))
	for key, e := range all {
		node, seat, _ := strings.Cut(key, ".")
		if !e.Deleted && e.Err == nil && e.Value.Module != "" {
			list = append(list, Claim{node, subject.Seat(seat), e.Value.Module, e.Value.At, e.Revision})
		}
	}
	slices.SortFunc(list, func(a, b Claim) int {
		if a.Node != b.Node {
			return strings.Compare(a.Node, b.Node)
		}
		return strings.Compare(string(a.Seat), string(b.Seat))
	})
	return list
}

// Claimed reads from the store who holds a seat on a node, so that whoever asks
// this controller hears of what was told to another one. Module is "" for nobody;
// Revision is what Claim expects then.
func (s *Store) Claimed(ctx context.Context, node string, seat subject.Seat) (Claim, error) {
	c := Claim{Node: node, Seat: seat}
	e, err := latest(ctx, s.claim.bucket, claimKey(node, seat))
	if err != nil {
		// Whatever somebody put there that cannot be read holds nobody off.
		if copied, ok := s.claim.watch.Entry(claimKey(node, seat)); ok && copied.Err != nil {
			c.Revision = copied.Revision
			return c, nil //nolint:nilerr // it is told apart by the copy
		}
		return c, err
	}
	if c.Revision = e.Revision; !e.Deleted {
		c.Module, c.At = e.Value.Module, e.Value.At
	}
	return c, nil
}

// Claim stores that a module holds a seat on a node, in place of what Claimed
// returned, and returns what stands then. Conflict: something else stands there by
// now.
func (s *Store) Claim(ctx context.Context, before Claim, module string) (Claim, error) {
	if module == "" {
		return Claim{}, fault.New(fault.Internal, "claim", string(before.Seat), errors.New("by no module"))
	}
	c := Claim{Node: before.Node, Seat: before.Seat, Module: module, At: s.o.Clock().UTC()}
	var err error
	c.Revision, err = s.claim.bucket.Update(ctx, claimKey(c.Node, c.Seat), claimed{module, c.At}, before.Revision)
	if err == nil {
		_ = s.claim.watch.Reach(ctx, c.Revision) // it is stored, whatever the copy has
	}
	return c, err
}

// forgetClaims takes the claims of a node away.
func (s *Store) forgetClaims(ctx context.Context, node string) error {
	for _, c := range s.Claims() {
		if c.Node == node {
			if err := wipe(ctx, s.claim.bucket, s.claim.watch, claimKey(c.Node, c.Seat)); err != nil {
				return err
			}
		}
	}
	return nil
}
