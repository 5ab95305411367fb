// Package assign decides, purely, what each node is to have: from mesh state as
// it stands at one revision to the set of every node, and the index that says so.
//
// State is a reading of mesh state that nobody changes any more; controller/state
// makes it, controller/admit judges changes of it. The same state gives the same
// sets in every controller, so there is no leader and nothing to agree on. The
// package touches nothing and its functions are safe for concurrent use.
package assign

import (
	"slices"
	"time"

	"stead/host/shape"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// State is mesh state at one revision. It is not changed once it is shared.
type State struct {
	Mesh  string
	Epoch string
	// Follows are the epochs that Epoch goes on from, the newest first.
	Follows  []string
	Revision uint64
	// Declarations and Nodes are by name, those that are withdrawn or removed among
	// them.
	Declarations map[string]*Declaration
	Nodes        map[string]*Node
	// Unreadable are keys whose value could not be opened or read: by name of the
	// declaration or node, why. What is declared there is not known.
	UnreadableDeclarations map[string]string
	UnreadableNodes        map[string]string
	// Seats and Modules are by name, those that are gone among them; those that
	// cannot be read are as above.
	Seats             map[string]*Seat
	Modules           map[string]*Module
	UnreadableSeats   map[string]string
	UnreadableModules map[string]string
	// Unsound says why the state as a whole cannot be what controllers wrote, such
	// as keys that vanished; nil when all is well. Nothing is told to nodes then.
	Unsound error
}

// Declaration is one declaration in mesh state. Those that are gone keep uid and
// generation, so that a name that is declared again never goes back.
type Declaration struct {
	Name       string
	UID        string
	Generation uint64
	Digest     string // of Canonical
	Canonical  []byte
	Service    *shape.Service // read from Canonical, with addressing; nil when Withdrawn
	Address    Address        // of a tombstone: that of what was withdrawn
	// Former is the addressing before the last change, when that changed it: until
	// the nodes of it say that they heard of the change, they may have this.
	Former    Address
	Withdrawn bool
	By        string // who changed it last: "operator alice"
	At        time.Time
	Revision  uint64 // of the value
}

// Node is one node that the mesh knows.
type Node struct {
	Name    string
	Labels  map[string]string
	Account string // operator account; "" for none
	Linger  string // auto, on, off
	// Capabilities are what its host last said that it has: sorted, each once. They
	// stand here because what is assigned to the node follows from them, and that is
	// to be the same at the same revision for whoever works it out.
	Capabilities []string
	// Pauses are the units that are left alone for a while, sorted by scope and unit;
	// those that have ended go when another one is written.
	Pauses   []wire.Pause
	Removed  bool
	By       string
	At       time.Time
	Revision uint64
}

// Seat is a seat in mesh state. Of one that is gone only the name is known.
type Seat struct {
	seats.Seat
	Record
}

// Module is a module in mesh state. Of one that is gone only the name is known.
type Module struct {
	modules.Manifest
	Record
}

// Record is what mesh state holds of a seat or a module besides itself.
type Record struct {
	Gone bool
	// Edition is that of the controllers which wrote it: the catalogues of stead are
	// numbered, and an older one does not undo a newer one.
	Edition  int
	By       string
	At       time.Time
	Revision uint64
}

// Address says which nodes m is assigned to: those that report what it requires.
// It is that of all it declares, too.
func (m *Module) Address() Address {
	if m.Requires == "" {
		return Address{All: true}
	}
	return Address{Capability: m.Requires}
}

// Has reports whether the node reports a capability; every node has "".
func (n *Node) Has(capability string) bool {
	return capability == "" || slices.Contains(n.Capabilities, capability)
}

// Address says which nodes a declaration is for: exactly one of its fields is
// set.
type Address struct {
	Nodes  []string          `json:"nodes,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	All    bool              `json:"all,omitempty"`
	// Capability addresses the nodes that report it. It is for modules: no file
	// declares it.
	Capability string `json:"capability,omitempty"`
}

// None reports whether a addresses nobody, since nothing of it is set.
func (a Address) None() bool { return !a.All && len(a.Nodes) == 0 && len(a.Labels) == 0 }

// Holds reports whether n is addressed.
func (a Address) Holds(n *Node) bool {
	switch {
	case n.Removed:
		return false
	case a.All:
		return true
	case len(a.Nodes) > 0:
		for _, name := range a.Nodes {
			if name == n.Name {
				return true
			}
		}
		return false
	case a.Capability != "":
		return n.Has(a.Capability)
	}
	for key, value := range a.Labels {
		if got, ok := n.Labels[key]; !ok || got != value {
			return false
		}
	}
	return len(a.Labels) > 0
}
