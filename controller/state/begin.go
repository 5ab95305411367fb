package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/mesh/bucket"
	"stead/mesh/seal"
)

// entry is one value that is to be sealed.
type entry struct {
	key     string
	body    []byte
	deleted bool
}

// compose seals entries for the revisions that follow sequence. With whole the
// last of them holds the sum of the state that they make of stands.
func (s *Store) compose(stands map[string]seal.Stand, sequence uint64, entries []entry, whole bool) []bucket.Write[[]byte] {
	all := make(map[string]seal.Stand, len(stands)+len(entries))
	for key, stand := range stands {
		all[key] = stand
	}
	writes := make([]bucket.Write[[]byte], 0, len(entries))
	for i, e := range entries {
		p := seal.Place{Mesh: s.o.Mesh, Key: e.key, Revision: sequence + 1 + uint64(i), Deleted: e.deleted} //nolint:gosec // an index
		if i == len(entries)-1 && whole {
			all[e.key] = seal.Stand{Revision: p.Revision}
			p.Sum = seal.Sum(all)
		}
		value := seal.Value(s.o.Key, p, e.body)
		all[e.key] = seal.Stand{Revision: p.Revision, Seal: seal.Seal(value)}
		writes = append(writes, bucket.Write[[]byte]{Key: e.key, Value: value, Delete: e.deleted, Expect: bucket.Any})
	}
	return writes
}

// begin commits a new epoch in place of p: a tombstone for every key that does
// not open, and, last, the epoch. As long as that is not there the state is not
// sound, so half of it changes nothing. It waits until the copy has it. Conflict:
// the bucket is not as p any more.
func (s *Store) begin(ctx context.Context, p *snapshot) error {
	m := s.known()
	body, err := json.Marshal(epoch{
		ID: newEpoch(), Number: max(m.Number, p.number) + 1, Follows: m.lineage(p.state), Created: s.o.Clock().UTC(), By: s.o.By,
	})
	if err != nil {
		return fault.New(fault.Internal, "begin epoch", s.o.Mesh, err)
	}
	var entries []entry
	for _, key := range writable(p.strangers) {
		if key != epochKey {
			tombstone, err := json.Marshal(lost{"it was not written by a controller of this mesh"})
			if err != nil {
				return fault.New(fault.Internal, "begin epoch", key, err)
			}
			entries = append(entries, entry{key, tombstone, true})
		}
	}
	stands, sequence := p.stands, p.sequence
	for some := range slices.Chunk(entries, bucket.MaxCommit-1) {
		writes := s.compose(stands, sequence, some, false)
		if sequence, err = s.write(ctx, sequence, writes); err != nil {
			return err
		}
		stands = standing(stands, writes, sequence)
	}
	if sequence, err = s.write(ctx, sequence, s.compose(stands, sequence, []entry{{epochKey, body, false}}, true)); err != nil {
		return err
	}
	return s.Reach(ctx, sequence)
}

// writable are those of keys that can be written. The others are no keys of a
// bucket, and can only be left where somebody put them.
func writable(keys []string) []string {
	var all []string
	for _, key := range keys {
		if bucket.CheckKey(key) == nil {
			all = append(all, key)
		}
	}
	return all
}

// standing is what stands after writes, the last of them at revision.
func standing(stands map[string]seal.Stand, writes []bucket.Write[[]byte], revision uint64) map[string]seal.Stand {
	all := make(map[string]seal.Stand, len(stands)+len(writes))
	for key, stand := range stands {
		all[key] = stand
	}
	first := revision + 1 - uint64(len(writes))
	for i, w := range writes {
		all[w.Key] = seal.Stand{Revision: first + uint64(i), Seal: seal.Seal(w.Value)} //nolint:gosec // an index
	}
	return all
}

// newEpoch is a name that no other epoch has.
func newEpoch() string { return strings.ToLower(rand.Text()) }
