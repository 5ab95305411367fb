// Package admit judges, purely, what people ask to change in mesh state: whether
// it may land, and as what.
//
// Apply, Withdraw and Settings look at one request against one State and return a
// Decision: what is to be written, or every reason why nothing is, with the
// object, the rule and the cure, in file, line and path where there is one. A
// request lands whole or not at all. The caller commits the writes at exactly the
// revision that was judged, and asks again when that has moved on; the package
// writes nothing, reads no clock, and its functions are safe for concurrent use.
//
// Three things hold a request up. A Problem is something that a rule forbids: it
// is mended in the request. A Conflict is somebody else's change that the caller
// has not seen: Force overrides it. Sure says that many declarations would be
// taken from their nodes: Yes agrees to it. Everything that is found is said at
// once.
//
// Asking for what stands already is no change: every request may be sent again.
package admit

import (
	"time"

	"stead/controller/assign"
	"stead/mesh/wire"
)

// Basis is what a request is judged on.
type Basis struct {
	State *assign.State
	// Placement is of State; nil: it is worked out.
	Placement *assign.Placement
	// Profiles are what hosts reported, by node. Of a node without one nothing is
	// presumed.
	Profiles map[string]wire.Profile
	// Kept says which nodes keep a declaration of an epoch or mesh before, by its
	// name, as their hosts report (wire.Source).
	Kept map[string][]string
	Who  string // who asks: "operator alice"
	Now  time.Time
	// NewUID returns a uid that was never used.
	NewUID func() string
}

// Decision is what becomes of a request.
type Decision struct {
	// Writes are the declarations to commit, all in one, sorted by name; Node is the
	// node to commit. There is none when nothing changes, when something holds the
	// request up, and in a dry run.
	Writes []*assign.Declaration
	Node   *assign.Node
	// After is mesh state as it would be, at the revision that was looked at. It is
	// the state of the basis when nothing would change, or a Problem stands in the
	// way.
	After *assign.Placement
	// Reply is the answer to the caller; whoever committed sets Revision anew.
	Reply wire.ChangeReply

	before *assign.Placement
}
