package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// reachFor is how long an answer waits for what the node was told of: another
// controller's commit, which is on its way.
const reachFor = 2 * time.Second

// sync tells a node what is declared for it: the same as it holds, or an index.
func (d *desk) sync(ctx context.Context, caller identity.Caller, r wire.SyncRequest) (wire.SyncReply, error) {
	d.troubles.note(caller.Name, r.Trouble)
	st := d.reach(ctx, r)
	switch doubt, err := d.doubt(ctx, caller.Name, st, r); {
	case err != nil:
		return wire.SyncReply{}, err
	case doubt:
		return wire.SyncReply{Prove: true, Revision: st.Revision}, nil
	}
	p, err := d.known(ctx, caller)
	if err != nil {
		return wire.SyncReply{}, err
	}
	select {
	case d.indexing <- struct{}{}:
		defer func() { <-d.indexing }()
	case <-ctx.Done():
		return wire.SyncReply{}, context.Cause(ctx)
	}
	reply, err := d.index(p, caller.Name, r)
	// It was removed meanwhile, the store was lost, or another machine uses the
	// credentials too.
	profile, known := d.store.Profiles()[caller.Name]
	reply.Profile = err == nil && (!known || r.Machine+r.Boot != "" && (r.Machine != profile.Machine || r.Boot != profile.Boot))
	return reply, err
}

// index answers with what a node is to have.
func (d *desk) index(p *assign.Placement, node string, r wire.SyncRequest) (wire.SyncReply, error) {
	st := p.State()
	index, err := p.Index(node, r)
	if err != nil {
		return wire.SyncReply{}, err
	}
	if r.Mesh == st.Mesh && r.Epoch == st.Epoch && r.Digest == index.Digest() && len(index.Withdrawn) == 0 {
		return wire.SyncReply{Same: true, Revision: st.Revision, Since: p.Written(node)}, nil
	}
	text, err := encode(index)
	if err != nil {
		return wire.SyncReply{}, err
	}
	signed := &wire.Signed{Index: text, Signature: seal.Index(d.keys.DeclarationKey(), text)}
	return wire.SyncReply{Revision: st.Revision, Signed: signed}, nil
}

// reach returns the newest state, after a moment in which it comes to hold what
// the node has seen or was told of.
func (d *desk) reach(ctx context.Context, r wire.SyncRequest) *assign.State {
	st := d.store.Now()
	least := uint64(0)
	if r.Mesh == st.Mesh {
		least = r.Least
		if r.Epoch == st.Epoch {
			least = max(least, r.Revision)
		}
	}
	if least <= st.Revision || st.Unsound != nil {
		return st
	}
	bound, cancel := context.WithTimeout(ctx, reachFor)
	defer cancel()
	_ = d.store.Reach(bound, least) // what is not there is judged as it is
	return d.store.Now()
}

// doubt reports whether the node is to prove what it says that it holds: it is
// newer than the state, or of an epoch that the state does not know. What it
// proves is judged by the store.
func (d *desk) doubt(ctx context.Context, node string, st *assign.State, r wire.SyncRequest) (bool, error) {
	newer := r.Epoch == st.Epoch && r.Revision > st.Revision
	strange := r.Epoch != "" && r.Epoch != st.Epoch && !slices.Contains(st.Follows, r.Epoch)
	if st.Unsound != nil || r.Mesh != st.Mesh || !newer && !strange {
		return false, nil //nolint:nilerr // who asks is told of an unsound state elsewhere
	}
	if r.Proof == nil {
		return true, nil
	}
	if err := d.store.Prove(ctx, node, *r.Proof); err != nil {
		return false, err
	}
	return false, sound(d.store.Now().Unsound)
}

// known returns who has what, with the calling node among those that have.
func (d *desk) known(ctx context.Context, caller identity.Caller) (*assign.Placement, error) {
	st := d.store.Now()
	if err := sound(st.Unsound); err != nil {
		return nil, err
	}
	if d.unlike(st, caller.Name) {
		if err := d.newcomers.add(ctx, caller.Name); err != nil {
			return nil, err
		}
	}
	return d.current(), d.present(caller.Name)
}

// present returns an error when the node was removed.
func (d *desk) present(node string) error {
	if text := removed(d.store.Now(), node); text != "" {
		return fault.New(fault.Refused, "node", node, errors.New(text)).WithHint("stead node add " + node)
	}
	return nil
}

// removed says by whom and when a node was removed, "" when it was not.
func removed(st *assign.State, node string) string {
	n := st.Nodes[node]
	if n == nil || !n.Removed {
		return ""
	}
	return "it was " + assign.ByAt("removed from the mesh", n.By, n.At)
}

// body hands out the canonical forms of a node's set.
func (d *desk) body(_ context.Context, caller identity.Caller, r wire.BodyRequest) (wire.BodyReply, error) {
	if len(r.Digests) > wire.MaxEntries {
		return wire.BodyReply{}, fault.New(fault.Invalid, "body", caller.Name, fmt.Errorf("%d digests; at most %d", len(r.Digests), wire.MaxEntries))
	}
	p := d.current()
	if err := sound(p.State().Unsound); err != nil {
		return wire.BodyReply{}, err
	}
	if err := d.present(caller.Name); err != nil {
		return wire.BodyReply{}, err
	}
	bodies := make(map[string][]byte)
	for _, e := range p.Set(caller.Name) {
		bodies[e.Digest] = e.Canonical
	}
	var reply wire.BodyReply
	size := 0
	for _, digest := range r.Digests {
		body, ok := bodies[digest]
		switch {
		case !ok:
			reply.Missing = append(reply.Missing, digest)
			continue
		case len(reply.Bodies) > 0 && size+len(body) > wire.MaxPage:
			return reply, nil
		}
		size += len(body)
		reply.Bodies = append(reply.Bodies, body)
	}
	return reply, nil
}
