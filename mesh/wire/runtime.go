package wire

import (
	"stead/modules"
	"stead/seats"
)

// Tools is what a runtime is to serve at one revision: it is signed as bytes, as
// an index is. Epoch, Follows and Revision mean what they mean there.
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
	// holds which.
	Seats []seats.Seat   `json:"seats"`
	Held  []seats.Holder `json:"held"`
	// Units are what is declared for the node, sorted by scope and unit.
	Units []DeclaredUnit `json:"units"`
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
}

// ToolsRequest is what a runtime asks with: what it holds.
type ToolsRequest struct {
	Wire     int    `json:"wire"`
	Mesh     string `json:"mesh"`
	Epoch    string `json:"epoch,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Digest   string `json:"digest,omitempty"` // sha256 of the bytes of Tools that are held, in hex
	Least    uint64 `json:"least,omitempty"`
}

// ToolsReply answers a ToolsRequest: Same, or the tools of now.
type ToolsReply struct {
	Same     bool    `json:"same,omitempty"`
	Revision uint64  `json:"revision"`
	Signed   *Signed `json:"signed,omitempty"` // of Tools
}

// ClaimRequest files the claims of the assigned modules of a node.
type ClaimRequest struct {
	Wire   int           `json:"wire"`
	Claims []seats.Claim `json:"claims"`
}

// ClaimReply judges them, in their order.
type ClaimReply struct {
	Verdicts []Verdict `json:"verdicts"`
}

// Verdict is what became of one claim. Refused says why it was not accepted; ""
// when it was.
type Verdict struct {
	Refused string `json:"refused,omitempty"`
}
