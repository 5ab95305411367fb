package assign

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"stead/host/fault"
	"stead/mesh/wire"
)

// Index returns what is declared for a node, and which of the declarations that
// it keeps somebody withdrew. Nothing is said of a state that is unsound, nor to
// a node whose record cannot be read (both failed: its labels are not known, and
// what it has stays in force), that is not known (not_found) or was removed
// (refused).
func (p *Placement) Index(node string, asked wire.SyncRequest) (wire.Index, error) {
	if err := p.mayTell("make index", node); err != nil {
		return wire.Index{}, err
	}
	set, n := p.Set(node), p.state.Nodes[node]
	index := wire.Index{Wire: wire.Version, Mesh: p.state.Mesh, Epoch: p.state.Epoch, Follows: p.state.Follows,
		Revision: p.state.Revision, Node: node, Account: n.Account, Linger: linger(n), Pauses: n.Pauses, Entries: make([]wire.Entry, len(set)),
		Keep: slices.Sorted(maps.Keys(p.state.UnreadableDeclarations))}
	if len(asked.Nonce) <= wire.MaxNonce {
		index.Nonce = asked.Nonce
	}
	p.withdraw(&index, asked)
	for i, d := range set {
		index.Entries[i] = wire.Entry{Name: d.Name, UID: d.UID, Generation: d.Generation, Digest: d.Digest, Size: len(d.Canonical)}
	}
	return index, nil
}

// linger is the node's setting as an index says it: nothing for the default, so that
// an index of before there were accounts has the digest that it had.
func linger(n *Node) string {
	if n.Linger == wire.Lingers()[0] {
		return ""
	}
	return n.Linger
}

func (p *Placement) mayTell(op, node string) error {
	n := p.state.Nodes[node]
	switch why, unreadable := p.state.UnreadableNodes[node]; {
	case p.state.Unsound != nil:
		return fault.New(fault.Failed, op, node, fmt.Errorf("mesh state is not sound, and nothing is told to nodes: %w", p.state.Unsound)).
			WithHint("mount the store that belongs to this mesh, or begin with what is left: stead controller run --begin-epoch")
	case unreadable:
		return fault.New(fault.Failed, op, node, errors.New("its record in mesh state cannot be read: "+why)).
			WithHint("write it anew with its labels: stead node add " + node)
	case n == nil:
		return fault.New(fault.NotFound, op, node, errors.New("this mesh knows no such node")).WithHint("stead node add " + node)
	case n.Removed:
		return fault.New(fault.Refused, op, node, errors.New("the node was "+ByAt("removed", n.By, n.At))).WithHint("stead node add " + node)
	}
	return nil
}

// withdraw names those of the kept declarations whose tombstone is for them: of
// the same uid, since a name that was withdrawn in a backup or in another mesh may
// be another declaration's by now, or for all of that name and newer than what the
// node holds.
func (p *Placement) withdraw(index *wire.Index, asked wire.SyncRequest) {
	if len(asked.KeptUIDs) != len(asked.Kept) || !slices.IsSorted(asked.Kept) {
		return
	}
	ours := asked.Mesh == p.state.Mesh && asked.Epoch == p.state.Epoch
	if ours {
		index.Since = asked.Revision
	}
	for i, name := range asked.Kept {
		d := p.state.Declarations[name]
		if p.Ends(d, asked.KeptUIDs[i], ours, index.Since) {
			index.Withdrawn = append(index.Withdrawn, name)
			index.WithdrawnUIDs = append(index.WithdrawnUIDs, d.UID)
		}
	}
}

// Ends reports whether d is a tombstone for what a node keeps under its name and
// uid: of the same one, or of whatever is kept by a node that holds an index of
// this epoch (ours) of an earlier revision.
func (p *Placement) Ends(d *Declaration, uid string, ours bool, held uint64) bool {
	if d == nil || !d.Withdrawn {
		return false
	}
	if _, unreadable := p.state.UnreadableDeclarations[d.Name]; unreadable {
		return false
	}
	return d.UID != "" && d.UID == uid || d.UID == wire.AnyUID && ours && d.Revision > held
}
