// Package admit judges, purely, what people ask to change in mesh state: whether
// it may land, and as what. Seed does so for the seats and modules that come with
// stead, which nobody else makes or takes away.
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
// What was admitted once is not judged by nodes that left since: a declaration
// that names a removed node, and is not moved, gets a warning.
package admit

import (
	"fmt"
	"maps"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
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
	// name, sorted, as their hosts report (wire.Source).
	Kept map[string][]string
	Who  string // who asks: "operator alice"
	Now  time.Time
	// NewUID returns a uid that was never used.
	NewUID func() string
}

// Decision is what becomes of a request.
type Decision struct {
	// Writes are the declarations to commit, all in one, in the order of the request;
	// Node is the node to commit. There is none when nothing changes, when something
	// holds the request up, and in a dry run.
	Writes []*assign.Declaration
	Node   *assign.Node
	// Seats and Modules are those to commit besides; of Seed alone.
	Seats   []*assign.Seat
	Modules []*assign.Module
	// After is mesh state as it would be, at the revision that was looked at; that
	// of the basis when a Problem stands in the way.
	After *assign.Placement
	// Reply is the answer to the caller; whoever committed sets Revision anew.
	Reply wire.ChangeReply

	changes []*change
}

// judge is one request that is being judged.
type judge struct {
	Basis
	force, yes, dry bool
	before, after   *assign.Placement
	changes         []*change
	problems        problems
	conflicts       []wire.Conflict
	warnings        []string
	near            map[string]string   // what was probably meant, by what was written
	labels          map[string][]string // that nodes carry; nil: not looked at yet
}

// newJudge refuses what is not judged at all: a request of another version, and
// any when the state is not sound.
func newJudge(b Basis, op, object string, version int) (*judge, error) {
	if version != wire.Version {
		cure := "upgrade stead on this machine"
		if version > wire.Version {
			cure = "upgrade stead on the controllers"
		}
		return nil, fault.New(fault.Unsupported, op, object, fmt.Errorf("the request is of wire version %d; this controller reads %d", version, wire.Version)).WithHint(cure)
	}
	if b.State.Unsound != nil {
		return nil, fault.New(fault.Failed, op, object, fmt.Errorf("mesh state is not sound, and nothing is written to it: %w", b.State.Unsound)).
			WithHint("mount the store that belongs to this mesh, or begin with what is left: stead controller run --begin-epoch")
	}
	j := &judge{Basis: b, before: b.Placement, problems: problems{files: map[string]int{"": -1}}, near: map[string]string{}}
	if j.before == nil {
		j.before = assign.Place(b.State)
	}
	return j, nil
}

// standing returns the declaration of that name as it stands, and why what
// stands there cannot be read. A tombstone is returned too; nil is nothing.
func (j *judge) standing(name string) (d *assign.Declaration, unreadable string) {
	if why, yes := j.State.UnreadableDeclarations[name]; yes {
		return nil, why
	}
	return j.State.Declarations[name], ""
}

// place works out who has what once the changes have landed.
func (j *judge) place(node *assign.Node) {
	s := *j.State
	s.Declarations, s.UnreadableDeclarations = maps.Clone(s.Declarations), maps.Clone(s.UnreadableDeclarations)
	if s.Declarations == nil {
		s.Declarations = map[string]*assign.Declaration{}
	}
	for _, c := range j.changes {
		if c.writes() {
			s.Declarations[c.is.Name] = c.is
			delete(s.UnreadableDeclarations, c.is.Name)
		}
	}
	if node != nil {
		s.Nodes, s.UnreadableNodes = maps.Clone(s.Nodes), maps.Clone(s.UnreadableNodes)
		if s.Nodes == nil {
			s.Nodes = map[string]*assign.Node{}
		}
		s.Nodes[node.Name] = node
		delete(s.UnreadableNodes, node.Name)
	}
	j.after = assign.Place(&s)
}

// decide puts together what was found.
func (j *judge) decide(node *assign.Node, sure string) Decision {
	d := Decision{After: j.after, changes: j.changes}
	d.Reply = wire.ChangeReply{Epoch: j.State.Epoch, Revision: j.State.Revision, Conflicts: j.conflicts, Warnings: j.warnings}
	if list := j.problems.sorted(); len(list) > 0 {
		d.Reply.Problems, d.Reply.Warnings = list, nil // one thing after the other
		d.After, d.changes = j.before, nil
		return fit(d)
	}
	if !j.yes {
		d.Reply.Sure = sure
	}
	held := len(j.conflicts) > 0 || d.Reply.Sure != ""
	for _, c := range j.changes {
		if j.dry || !held {
			d.Reply.Changes = append(d.Reply.Changes, j.told(c))
		}
		if !j.dry && !held && c.writes() {
			d.Writes = append(d.Writes, c.is)
		}
	}
	if !j.dry && !held {
		d.Node = node
	}
	return fit(d)
}
