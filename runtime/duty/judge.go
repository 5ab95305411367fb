// Package duty keeps what a runtime is to serve those tools that controllers say:
// it asks them, judges the answer, keeps it on disk, hands it on, and files the
// claims of the modules that are assigned.
//
// A Keeper asks at its start, on every hint, when the connection comes or goes,
// and every half minute; after an error sooner, with growing delay. What it held
// stays in force whatever controllers answer or do not answer, also over a restart
// without any mesh: it is handed on before anything is asked. A module without
// the seat that it claims is told with the reason, and claimed for again.
//
// Judge is pure. The goroutine of Run owns all state; Hint and Standing may be
// called from any goroutine. Errors end in Standing and, once, in the log.
package duty

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"slices"

	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// Trust is whom a runtime believes, and who it is: what its credentials say.
type Trust struct {
	Mesh string
	Node string
	Key  ed25519.PublicKey // that signs tools
}

// Judge returns the tools that signed says, when they may take the place of
// those that are held; nil is none. They are of this mesh and node, of the epoch
// that is held or of one that goes on from it, and not older. The error says why
// nothing of them is accepted.
func Judge(t Trust, held *wire.Tools, signed wire.Signed) (*wire.Tools, error) {
	refuse := func(class fault.Class, format string, args ...any) (*wire.Tools, error) {
		return nil, fault.New(class, "accept tools", "", fmt.Errorf(format, args...))
	}
	if err := seal.CheckTools(t.Key, signed.Index, signed.Signature); err != nil {
		return nil, err
	}
	tools, err := read(signed.Index)
	if err != nil {
		return refuse(fault.Invalid, "they cannot be read: %w", err)
	}
	switch {
	case tools.Wire != wire.Version:
		return refuse(fault.Unsupported, "their messages are of version %d, and this runtime reads %d", tools.Wire, wire.Version)
	case tools.Mesh != t.Mesh:
		return refuse(fault.Refused, "they are of mesh %s", tools.Mesh)
	case tools.Node != t.Node:
		return refuse(fault.Refused, "they are of node %q", tools.Node)
	case held == nil || held.Mesh != t.Mesh || held.Node != t.Node:
		return tools, nil
	case held.Epoch == tools.Epoch && tools.Revision < held.Revision:
		return refuse(fault.Refused, "they are of revision %d, and %d is held", tools.Revision, held.Revision)
	case held.Epoch != tools.Epoch && !slices.Contains(tools.Follows, held.Epoch):
		return refuse(fault.Refused, "they are of epoch %s, which does not go on from %s, which is held", tools.Epoch, held.Epoch)
	}
	return tools, nil
}

func read(text []byte) (*wire.Tools, error) {
	var tools wire.Tools
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&tools); err != nil {
		return nil, err
	}
	return &tools, nil
}
