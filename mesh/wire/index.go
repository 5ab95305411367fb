package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Entry is one declaration in an index.
type Entry struct {
	Name       string `json:"name"`
	UID        string `json:"uid"`
	Generation uint64 `json:"generation"`
	Digest     string `json:"digest"` // sha256 of the canonical form, in hex
	Size       int    `json:"size"`   // of the canonical form, in bytes
}

// Bounds of what one node may have.
const (
	// MaxEntries is how many declarations.
	MaxEntries = 2000
	// MaxBody is how many bytes of canonical form one of them, so that a body goes
	// into one message, whose JSON takes four bytes for three of it.
	MaxBody = 740 << 10
)

// MaxSet is how much the declarations of one node may hold together, in bytes of
// their canonical forms.
const MaxSet = 64 << 20

// Index is what is declared for one node at one revision of mesh state. It is
// signed as bytes; what a host keeps and answers for is in it and nowhere else.
type Index struct {
	Wire  int    `json:"wire"`
	Mesh  string `json:"mesh"`
	Epoch string `json:"epoch"`
	// Follows are the epochs that Epoch goes on from, the newest first. A host that
	// holds one of them goes over to Epoch, and withdraws nothing by doing so.
	Follows  []string `json:"follows,omitempty"`
	Revision uint64   `json:"revision"`
	Node     string   `json:"node"`
	// Account is the node's operator account, whose user manager has the units of
	// scope user; "" for none. Linger says whether that manager is to run without a
	// login: auto, on or off; "" is auto.
	Account string `json:"account,omitempty"`
	Linger  string `json:"linger,omitempty"`
	// Pauses are the units that are left as they are for a while, sorted by scope and
	// unit, those that have ended among them: each host ends them by its own clock. A
	// host that does not report the capability PausesUnits does not know of them.
	Pauses []Pause `json:"pauses,omitempty"`
	// Entries are sorted by name. A name that was in an index of this epoch and is
	// in none of Entries and Keep is withdrawn.
	Entries []Entry `json:"entries"`
	// Keep are names whose declaration cannot be read in mesh state, sorted: a host
	// that holds one of them leaves it in force.
	Keep []string `json:"keep,omitempty"`
	// Withdrawn are those of SyncRequest.Kept that somebody withdrew, sorted, and
	// WithdrawnUIDs the uids of their tombstones, in the same order. A host withdraws
	// what it keeps under the same uid. AnyUID stands for whatever is kept under the
	// name: such a tombstone is told of only when it is newer than Since, which is
	// SyncRequest.Revision of a request of this epoch. So one of long ago takes
	// nothing from a host that comes over later.
	Withdrawn     []string `json:"withdrawn,omitempty"`
	WithdrawnUIDs []string `json:"withdrawn_uids,omitempty"`
	Since         uint64   `json:"since,omitempty"`
	// Nonce is SyncRequest.Nonce of the question that this index answers. So an index
	// that was signed before is no answer, not even to a host that holds nothing.
	Nonce string `json:"nonce,omitempty"`
}

// MaxNonce bounds a nonce, in bytes.
const MaxNonce = 64

// AnyUID is the uid of a tombstone that is meant for whatever is kept under its
// name: somebody withdrew a name that mesh state did not hold.
const AnyUID = "*"

// Digest is of everything that an index declares; revision, lineage, withdrawals
// of kept names and nonce are left out: two indexes of one epoch with the same
// digest ask for the same.
func (i Index) Digest() string {
	i.Revision, i.Follows, i.Withdrawn, i.WithdrawnUIDs, i.Since, i.Nonce = 0, nil, nil, nil, 0, ""
	text, _ := json.Marshal(i) // numbers and texts always encode
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Signed is an index as it travels: its bytes, and the signature of the mesh's
// declaration key over them (mesh/seal).
type Signed struct {
	Index     []byte `json:"index"`
	Signature []byte `json:"signature"`
}

// SyncRequest is what a host asks with: what it holds, and the least revision
// that it was told of.
type SyncRequest struct {
	Wire     int    `json:"wire"`
	Mesh     string `json:"mesh"`
	Epoch    string `json:"epoch,omitempty"` // "" before the first index
	Revision uint64 `json:"revision,omitempty"`
	Digest   string `json:"digest,omitempty"` // Index.Digest of what is held
	// Nonce is a text that was never asked with before: 1 to MaxNonce bytes.
	Nonce string `json:"nonce,omitempty"`
	Least uint64 `json:"least,omitempty"`
	// Kept are the names of declarations that the host keeps although no index of
	// its epoch named them: of an epoch or a mesh before. Sorted. KeptUIDs are their
	// uids, in the same order.
	Kept     []string `json:"kept,omitempty"`
	KeptUIDs []string `json:"kept_uids,omitempty"`
	// Trouble says why the last index was not accepted; "" when it was.
	Trouble string `json:"trouble,omitempty"`
	// Machine and Boot are those of the profile: who has another one of this node is
	// asked for its own.
	Machine string `json:"machine,omitempty"`
	Boot    string `json:"boot,omitempty"`
	// Proof is the signed index that is held, when the answer before asked for it.
	Proof *Signed `json:"proof,omitempty"`
}

// SyncReply answers a SyncRequest: Same, or the index of now, or Prove.
type SyncReply struct {
	Same bool `json:"same,omitempty"`
	// Prove asks for the index that the host holds, which is newer than the state
	// of the controller: with it the controller knows that its store was rolled
	// back, and tells nobody anything any more.
	Prove    bool   `json:"prove,omitempty"`
	Revision uint64 `json:"revision"` // of the answering controller's copy
	// Since, with Same, is the last revision that wrote anything of what the node
	// has or had before that, or of the node: a declaration that was taken away and given back is the
	// same, and reports of before do not speak of it.
	Since  uint64  `json:"since,omitempty"`
	Signed *Signed `json:"signed,omitempty"`
	// Profile asks for the node's profile: controllers have none of it, or that of
	// another machine or boot.
	Profile bool `json:"profile,omitempty"`
}

// BodyRequest asks for canonical forms by their digests. A node gets only those
// of its own set.
type BodyRequest struct {
	Wire    int      `json:"wire"`
	Digests []string `json:"digests"`
}

// BodyReply holds those of the bodies asked for, in order and at least the
// first, that fit into one message; the others are asked for again. Missing are
// those that are in this node's set no longer.
type BodyReply struct {
	Bodies  [][]byte `json:"bodies"`
	Missing []string `json:"missing,omitempty"`
}

// Changed is the hint that a node's set may have changed.
type Changed struct {
	Revision uint64 `json:"revision"`
}
