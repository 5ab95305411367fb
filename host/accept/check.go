package accept

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// maxName and maxUID bound what stands in an index, in bytes, and maxPauses its
// pauses: controllers write less, and later ones may write more than they do now.
const (
	maxName   = 255
	maxUID    = 128
	maxPauses = 16 * wire.MaxPauses
)

func refuse(class fault.Class, format string, args ...any) *fault.Error {
	return fault.New(class, "accept index", "", fmt.Errorf(format, args...))
}

// check says whether signed is an index of this node by its own mesh, whatever is
// held, and reads it.
func check(t Trust, signed wire.Signed) (wire.Index, error) {
	var i wire.Index
	if seal.CheckIndex(t.Key, signed.Index, signed.Signature) != nil {
		return i, refuse(fault.Refused, "it is not signed by mesh %s, to which this node belongs", t.Mesh).
			WithHint("a wrong controller answers, or the node needs new credentials: stead credentials node " + t.Node)
	}
	if err := json.Unmarshal(signed.Index, &i); err != nil {
		return i, refuse(fault.Invalid, "it cannot be read: %w", err)
	}
	switch {
	case i.Wire != wire.Version:
		return i, refuse(fault.Unsupported, "it is of wire version %d, and this host reads version %d", i.Wire, wire.Version).
			WithHint("bring controllers and nodes to one version of stead")
	case i.Mesh != t.Mesh:
		return i, refuse(fault.Refused, "it is of mesh %q, and this node belongs to mesh %q", i.Mesh, t.Mesh)
	case i.Node != t.Node:
		return i, refuse(fault.Refused, "it is of node %q, and this node is %q", i.Node, t.Node)
	}
	if err := whole(i); err != nil {
		return i, refuse(fault.Invalid, "%w", err)
	}
	return i, nil
}

// whole says what is malformed in an index. Keep may hold any text: it names what
// somebody planted, too.
func whole(i wire.Index) error {
	if i.Epoch == "" || i.Revision == 0 {
		return errors.New("it has no epoch and revision")
	}
	if n := len(i.Entries); n > wire.MaxEntries {
		return fmt.Errorf("it has %d declarations, and a node has at most %d", n, wire.MaxEntries)
	}
	if i.Account != "" && !wire.Login(i.Account) {
		return fmt.Errorf("%.80q is no name of an account", i.Account)
	}
	if i.Linger != "" && !slices.Contains(wire.Lingers(), i.Linger) {
		return fmt.Errorf("%.80q is no value of linger", i.Linger)
	}
	if n := len(i.Pauses); n > maxPauses {
		return fmt.Errorf("it has %d pauses, and a host takes at most %d", n, maxPauses)
	}
	total, before := 0, ""
	for _, e := range i.Entries {
		if !named(e.Name) {
			return fmt.Errorf("%.300q is no name of a declaration", e.Name)
		}
		if e.Name <= before {
			return fmt.Errorf("the declarations %q and %q are not in order", before, e.Name)
		}
		before = e.Name
		if d, err := hex.DecodeString(e.Digest); err != nil || len(d) != 32 || strings.ToLower(e.Digest) != e.Digest {
			return fmt.Errorf("declaration %q: %.80q is no digest", e.Name, e.Digest)
		}
		if e.UID == "" || len(e.UID) > maxUID || e.Generation == 0 {
			return fmt.Errorf("declaration %q has no uid and generation", e.Name)
		}
		if e.Size <= 0 || e.Size > wire.MaxSet-total {
			return fmt.Errorf("declaration %q with %d bytes: a node takes at most %d in all", e.Name, e.Size, wire.MaxSet)
		}
		total += e.Size
	}
	return nil
}

// named reports whether s can be the name of a declaration: those of modules hold
// dots.
func named(s string) bool {
	return s != "" && len(s) <= maxName && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-.:") == ""
}
