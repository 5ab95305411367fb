package accept

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"stead/host/fault"
	"stead/mesh/wire"
)

// Decision is an index that is accepted once the bodies that Lack names are at
// hand.
type Decision struct {
	Index     wire.Index
	Lack      []wire.Entry
	Withdrawn []string // sorted
	signed    wire.Signed
	from      Holding
	begins    bool // it does not go on from the index that is held
	same      bool // index and declarations are those that are held
}

// Decide judges an index that arrived. The error says why nothing of it is
// accepted, and nothing changes then.
func Decide(t Trust, h Holding, signed wire.Signed) (Decision, error) {
	index, err := check(t, signed)
	if err != nil {
		return Decision{}, err
	}
	held := h.Under(t)
	if held != nil {
		if err := lineage(held, index); err != nil {
			return Decision{}, err
		}
	}
	d := Decision{Index: index, signed: signed, from: h, Withdrawn: withdrawn(held, h, index)}
	d.begins = held == nil || held.Epoch != index.Epoch
	for _, e := range index.Entries {
		if h.Declarations[e.Name].Digest != e.Digest {
			d.Lack = append(d.Lack, e)
		}
	}
	d.same = !d.begins && held.Revision == index.Revision && (held.Digest() == index.Digest() || completes(index, *held)) && len(d.Withdrawn) == 0
	return d, nil
}

// lineage says whether index may come after held, which is of the same mesh.
func lineage(held *wire.Index, index wire.Index) error {
	if index.Epoch != held.Epoch {
		if slices.Contains(index.Follows, held.Epoch) {
			return nil
		}
		return refuse(fault.Refused, "it is of epoch %s, which does not follow epoch %s that is held", index.Epoch, held.Epoch).
			WithHint("the controller has another store: give it the right one or a backup, or let this one follow: stead controller run --begin-epoch")
	}
	switch {
	case index.Revision < held.Revision:
		return refuse(fault.Refused, "its revision %d is older than %d, which is held", index.Revision, held.Revision).
			WithHint("an answer was replayed, or the controller's store was rolled back: give it the right one or a backup, or: stead controller run --begin-epoch")
	case index.Revision == held.Revision && index.Digest() != held.Digest() && !completes(*held, index) && !completes(index, *held):
		return refuse(fault.Refused, "its revision %d is held with other declarations", index.Revision).
			WithHint("two stores go by one epoch: on the one that is right, stead controller run --begin-epoch")
	}
	return nil
}

// completes reports whether more is bare with an account or with pauses: controllers
// of versions before say nothing of them, and the same of everything else.
func completes(bare, more wire.Index) bool {
	if bare.Account == "" && bare.Linger == "" {
		more.Account, more.Linger = "", ""
	}
	if len(bare.Pauses) == 0 {
		more.Pauses = nil
	}
	return bare.Digest() == more.Digest()
}

// withdrawn are the names that index ends: those of its own epoch that it no
// longer has, and of the others those that somebody withdrew by name. The first
// index of an epoch ends nothing.
func withdrawn(held *wire.Index, h Holding, index wire.Index) []string {
	if held == nil || held.Epoch != index.Epoch {
		return nil
	}
	stays := make(map[string]bool, len(index.Entries)+len(index.Keep))
	for _, e := range index.Entries {
		stays[e.Name] = true
	}
	for _, name := range index.Keep {
		stays[name] = true
	}
	ends := make(map[string]string, len(index.Withdrawn)) // name → uid of its tombstone
	for i, name := range index.Withdrawn {
		if i < len(index.WithdrawnUIDs) {
			ends[name] = index.WithdrawnUIDs[i]
		}
	}
	var gone []string
	for name, id := range h.Declarations {
		uid, ended := ends[name]
		explicit := ended && (uid == id.UID || uid == wire.AnyUID && index.Since >= held.Revision)
		if !stays[name] && (id.Of(index.Epoch) || explicit) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// Complete returns what the ledger is to hold, and the Holding after that. Bodies
// are by digest. An error means that a body is lacking or is another one than the
// index names.
func (d Decision) Complete(bodies map[string][]byte, at time.Time) (Change, Holding, error) {
	if d.same {
		return Change{}, d.from, nil
	}
	change := Change{Delete: d.Withdrawn, Held: &Held{Index: d.signed.Index, Signature: d.signed.Signature, At: at}}
	index := d.Index
	next := Holding{Index: &index, Signed: d.signed, At: at, Declarations: maps.Clone(d.from.Declarations)}
	if next.Declarations == nil {
		next.Declarations = make(map[string]Identity)
	}
	for _, name := range d.Withdrawn {
		delete(next.Declarations, name)
	}
	if d.begins {
		for name, id := range next.Declarations {
			id.Kept = id.Kept || id.Epoch == index.Epoch
			next.Declarations[name] = id
		}
	}
	for _, e := range index.Entries {
		id := Identity{UID: e.UID, Name: e.Name, Generation: e.Generation, Digest: e.Digest, Epoch: index.Epoch}
		if old := d.from.Declarations[e.Name]; old.Digest == e.Digest {
			id.Body = old.Body
		} else {
			id.Body = bodies[e.Digest]
			if err := matches(e, id.Body); err != nil {
				return Change{}, Holding{}, err
			}
		}
		next.Declarations[e.Name] = id
	}
	for _, name := range names(next.Declarations) {
		if id := next.Declarations[name]; !id.equal(d.from.Declarations[name]) {
			change.Put = append(change.Put, id)
		}
	}
	return change, next, nil
}

// Begins reports whether the index is the first one of its epoch here: then what
// is kept from now on was not yet asked about.
func (d Decision) Begins() bool { return d.begins }

// equal compares all but the bodies, of which the digests tell.
func (id Identity) equal(o Identity) bool {
	return id.UID == o.UID && id.Name == o.Name && id.Generation == o.Generation && id.Digest == o.Digest &&
		id.Epoch == o.Epoch && id.Kept == o.Kept
}

// matches returns an error of class refused unless body is what e names.
func matches(e wire.Entry, body []byte) error {
	sum := sha256.Sum256(body)
	if got := hex.EncodeToString(sum[:]); got != e.Digest {
		return fault.New(fault.Refused, "accept declaration", e.Name, fmt.Errorf("its body has digest %s instead of %s", got, e.Digest))
	}
	if len(body) != e.Size {
		return fault.New(fault.Refused, "accept declaration", e.Name, fmt.Errorf("its body has %d bytes instead of %d", len(body), e.Size))
	}
	return nil
}
