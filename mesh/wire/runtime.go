package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"stead/modules"
	"stead/seats"
)

// Tools is what a runtime is to serve at one revision: it is signed as bytes, as
// an index is (mesh/seal has a signature of its own for it). Epoch, Follows and
// Revision mean what they mean there.
//
// At one revision the Tools of a node differ in Held alone: who holds a seat is no
// part of mesh state. A runtime, which has one question under way at a time, takes
// an answer of the revision that it holds and of every later one, and none of an
// earlier one.
type Tools struct {
	Wire     int      `json:"wire"`
	Mesh     string   `json:"mesh"`
	Epoch    string   `json:"epoch"`
	Follows  []string `json:"follows,omitempty"`
	Revision uint64   `json:"revision"`
	Node     string   `json:"node"`
	// Modules are assigned to the node, with their manifests, sorted by name.
	Modules []modules.Manifest `json:"modules"`
	// Seats are those that the modules claim, whole, sorted by name; Held says who
	// holds which, sorted by seat.
	Seats []seats.Seat   `json:"seats"`
	Held  []seats.Holder `json:"held"`
	// Units are what is declared for the node, sorted by scope and unit.
	Units []DeclaredUnit `json:"units"`
	// Unlisted is how many units did not fit, the last ones; Bare says that aliases
	// are left out for the same reason.
	Unlisted int  `json:"unlisted,omitempty"`
	Bare     bool `json:"bare,omitempty"`
}

// Digest is of everything that Tools say but revision and lineage: Tools of one
// epoch with the same digest ask for the same.
func (t Tools) Digest() string {
	t.Revision, t.Follows = 0, nil
	text, _ := json.Marshal(t) // texts and numbers always encode, and schemas are JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// DeclaredUnit is what a runtime knows of a declaration.
type DeclaredUnit struct {
	Unit       string   `json:"unit"`
	Aliases    []string `json:"aliases,omitempty"` // that its own files ask for
	Scope      string   `json:"scope"`
	Name       string   `json:"name"`
	Generation uint64   `json:"generation"`
	Ensure     string   `json:"ensure,omitempty"`
	Enabled    *bool    `json:"enabled,omitempty"`
	// Paused is the pause of the unit, also one that has ended; nil for none.
	Paused *Pause `json:"paused,omitempty"`
}

// ToolsRequest is what a runtime asks with: what it holds.
type ToolsRequest struct {
	Wire     int    `json:"wire"`
	Mesh     string `json:"mesh"`
	Epoch    string `json:"epoch,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Digest   string `json:"digest,omitempty"` // Tools.Digest of what is held
	Least    uint64 `json:"least,omitempty"`  // the revision that it was told of
}

// ToolsReply answers a ToolsRequest: Same, or the tools of now.
type ToolsReply struct {
	Same     bool    `json:"same,omitempty"`
	Revision uint64  `json:"revision"`
	Signed   *Signed `json:"signed,omitempty"` // of Tools
}

// MaxClaims is how many claims one request may file.
const MaxClaims = 64

// ClaimRequest files the claims of the assigned modules of a node.
type ClaimRequest struct {
	Wire   int           `json:"wire"`
	Claims []seats.Claim `json:"claims"`
	// Least is the revision of the Tools that assigned the modules.
	Least uint64 `json:"least,omitempty"`
}

// ClaimReply judges them, in their order. When one was accepted that was not
// before, the node's Tools are others from now on.
type ClaimReply struct {
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is what became of one claim. Refused says why it was not accepted; ""
// when it was.
type Verdict struct {
	Refused string `json:"refused,omitempty"`
}
