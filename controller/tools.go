package controller

import (
	"context"
	"fmt"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

// tools tells a runtime what it is to serve: the same as it holds, or all of it,
// signed. It is never told of an earlier revision than it holds: of a store that
// was rolled back the host's index is the proof, and until then the runtime goes
// on as it is.
func (d *desk) tools(ctx context.Context, caller identity.Caller, r wire.ToolsRequest) (wire.ToolsReply, error) {
	d.reach(ctx, wire.SyncRequest{Mesh: r.Mesh, Epoch: r.Epoch, Revision: r.Revision, Least: r.Least})
	p, err := d.known(ctx, caller)
	if err != nil {
		return wire.ToolsReply{}, err
	}
	select {
	case d.indexing <- struct{}{}:
		defer func() { <-d.indexing }()
	case <-ctx.Done():
		return wire.ToolsReply{}, context.Cause(ctx)
	}
	held, err := d.held(ctx, p, caller.Name)
	if err != nil {
		return wire.ToolsReply{}, err
	}
	tools, err := p.Tools(caller.Name, held)
	if err != nil {
		return wire.ToolsReply{}, err
	}
	st := p.State()
	ours := r.Mesh == st.Mesh && r.Epoch == st.Epoch
	switch {
	case ours && r.Digest == tools.Digest():
		return wire.ToolsReply{Same: true, Revision: st.Revision}, nil
	case ours && r.Revision > st.Revision:
		return wire.ToolsReply{}, fault.New(fault.Unavailable, "tools", caller.Name,
			fmt.Errorf("mesh state is at revision %d here, and revision %d is held", st.Revision, r.Revision))
	}
	text, err := encode(tools)
	if err != nil {
		return wire.ToolsReply{}, err
	}
	signed := &wire.Signed{Index: text, Signature: seal.Tools(d.keys.DeclarationKey(), text)}
	return wire.ToolsReply{Revision: st.Revision, Signed: signed}, nil
}

// held is who holds the seats of a node. It is read from the store: what was told
// to another controller a moment ago is not missing.
func (d *desk) held(ctx context.Context, p *assign.Placement, node string) ([]seats.Holder, error) {
	claimed := map[subject.Seat]string{}
	for _, s := range p.Seats(node) {
		c, err := d.store.Claimed(ctx, node, s.Name)
		if err != nil {
			return nil, err
		}
		claimed[s.Name] = c.Module
	}
	return p.Holders(node, claimed), nil
}
