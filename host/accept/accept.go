// Package accept decides what a host takes over from the mesh: whether an index
// that arrives may replace the one that is held, what is withdrawn by it, and
// what stays in force although no index names it.
//
// The rule in one sentence: nothing is withdrawn but by an index that is signed
// by the node's own mesh, names this node, belongs to the epoch that is held, and
// is newer. What was declared under another mesh, node or epoch, or by a folder,
// is kept, until it is declared again or somebody withdraws it by name.
//
// Open makes a Holding of what the ledger remembers; Holding.Request is what to
// ask controllers with; Decide judges their answer and says which bodies are
// lacking; Decision.Complete gives the change of the ledger, to be made in one
// transaction, and the Holding after it. Everything is pure: no disk, no clock,
// no network. Values are not changed once they are made and may be shared.
// Errors are *fault.Error that say why an index is not accepted: refused, invalid
// when it is malformed, unsupported when it is of another wire version.
package accept

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"stead/host/fault"
	"stead/mesh/wire"
)

// Trust is whom a host believes, and who it is: what root put on the machine with
// the node's credentials.
type Trust struct {
	Mesh string
	Node string
	Key  ed25519.PublicKey // that signs indexes
}

// Identity is a declaration as it was last accepted.
type Identity struct {
	UID        string `json:"uid"`
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"digest"` // of Body
	Body       []byte `json:"body"`   // canonical form
	// Epoch is that of the last index that named it; "" for one from a folder.
	Epoch string `json:"epoch,omitempty"`
	// Kept is set when Epoch is held again after another mesh was, or for another
	// node: what it named before is kept like everything of before.
	Kept bool `json:"kept,omitempty"`
}

// Of reports whether an index of epoch withdraws id by not naming it. Folders
// are epoch "".
func (id Identity) Of(epoch string) bool { return !id.Kept && id.Epoch == epoch }

// Held is the index that was last accepted, as it arrived.
type Held struct {
	Index     []byte    `json:"index"`
	Signature []byte    `json:"signature"`
	At        time.Time `json:"at"`
}

// Change is what an acceptance writes to the ledger, in one transaction.
type Change struct {
	Put    []Identity // sorted by name
	Delete []string   // names, sorted
	Held   *Held      // nil: the one that is held stays
}

// Empty reports whether c changes nothing.
func (c Change) Empty() bool { return len(c.Put) == 0 && len(c.Delete) == 0 && c.Held == nil }

// Holding is what a host holds: the index last accepted, and every declaration in
// force.
type Holding struct {
	Index        *wire.Index // nil before the first one
	Signed       wire.Signed // of Index
	At           time.Time   // when Index was accepted
	Declarations map[string]Identity
}

// Open reads what the ledger holds; held may be nil. The signature is not checked
// again: the ledger is root's, and the mesh may have been another one then. An
// error means that the index cannot be read any more.
func Open(held *Held, declarations map[string]Identity) (Holding, error) {
	h := Holding{Declarations: declarations}
	if held == nil {
		return h, nil
	}
	h.Index, h.Signed, h.At = new(wire.Index), wire.Signed{Index: held.Index, Signature: held.Signature}, held.At
	if err := json.Unmarshal(held.Index, h.Index); err != nil {
		return h, fault.New(fault.Failed, "read held index", "", err)
	}
	if h.Index.Mesh == "" || h.Index.Epoch == "" {
		return h, fault.New(fault.Failed, "read held index", "", errors.New("it names no mesh and epoch"))
	}
	return h, nil
}

// Under returns the index that is held when it is of the mesh and the node of t,
// and nil otherwise: what root replaced credentials for is another life.
func (h Holding) Under(t Trust) *wire.Index {
	if h.Index == nil || h.Index.Mesh != t.Mesh || h.Index.Node != t.Node {
		return nil
	}
	return h.Index
}

// Kept returns the names that are in force under t although no index of the
// epoch that is held names them, sorted.
func (h Holding) Kept(t Trust) []string {
	epoch, held := "", h.Under(t)
	if held != nil {
		epoch = held.Epoch
	}
	var kept []string
	for name, id := range h.Declarations {
		if held == nil || !id.Of(epoch) {
			kept = append(kept, name)
		}
	}
	slices.Sort(kept)
	return kept
}

// maxKept bounds the kept names and uids of one request, in bytes, so that it fits into a
// message beside a proof. Those beyond it are asked for when others are gone.
const maxKept = 128 << 10

// Request is what to ask controllers with under t. What is held of another mesh
// or node is not told.
func (h Holding) Request(t Trust) wire.SyncRequest {
	r := wire.SyncRequest{Wire: wire.Version, Mesh: t.Mesh}
	if held := h.Under(t); held != nil {
		r.Epoch, r.Revision, r.Digest = held.Epoch, held.Revision, held.Digest()
	}
	size := 0
	for _, name := range h.Kept(t) {
		if size += len(name) + len(h.Declarations[name].UID) + 6; size > maxKept {
			break
		}
		r.Kept = append(r.Kept, name)
		r.KeptUIDs = append(r.KeptUIDs, h.Declarations[name].UID)
	}
	return r
}

// names returns the sorted names of a set.
func names[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }
