package controller

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"stead/controller/admit"
	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// apply declares.
func (d *desk) apply(ctx context.Context, caller identity.Caller, r wire.ApplyRequest) (wire.ChangeReply, error) {
	return d.change(ctx, caller, request{
		judge:  func(b admit.Basis) (admit.Decision, error) { return admit.Apply(b, r) },
		dryRun: r.DryRun, nodes: r.Nodes,
	})
}

// withdraw withdraws.
func (d *desk) withdraw(ctx context.Context, caller identity.Caller, r wire.WithdrawRequest) (wire.ChangeReply, error) {
	return d.change(ctx, caller, request{
		judge:  func(b admit.Basis) (admit.Decision, error) { return admit.Withdraw(b, r) },
		dryRun: r.DryRun, nodes: r.Nodes,
	})
}

// settings changes what people set of a node.
func (d *desk) settings(ctx context.Context, caller identity.Caller, r wire.SettingsRequest) (wire.ChangeReply, error) {
	reply, err := d.change(ctx, caller, request{judge: func(b admit.Basis) (admit.Decision, error) { return admit.Settings(b, r) }})
	if err != nil {
		return reply, err
	}
	if n := d.show(&reply, r.Node); n != nil && n.Removed {
		// Until this is done, and when it is not, the node shows as removed and what
		// is left of it does nobody harm.
		if err := d.store.Forget(ctx, r.Node); err != nil {
			d.log.Warn("forget removed node", "node", r.Node, "error", err)
		}
	}
	return reply, nil
}

// show puts a node into the reply to a change of it, as it is now, and returns it; nil
// when there is none.
func (d *desk) show(reply *wire.ChangeReply, name string) *assign.Node {
	p := d.current()
	n := p.State().Nodes[name]
	if n != nil {
		node := d.node(p, n)
		reply.Node = &node
	}
	return n
}

// request is something that changes mesh state, or only says how it would.
type request struct {
	judge  func(admit.Basis) (admit.Decision, error)
	dryRun bool
	nodes  []string // whose plans a dry run wants
}

// change judges a request on the newest state, again when somebody else was
// first, and commits what was decided.
func (d *desk) change(ctx context.Context, caller identity.Caller, r request) (wire.ChangeReply, error) {
	for _, name := range r.nodes {
		if n := d.store.Now().Nodes[name]; n == nil || n.Removed {
			return wire.ChangeReply{}, fault.New(fault.NotFound, "ask for a plan", fmt.Sprintf("%.80q", name), errors.New("this mesh knows no such node")).WithHint("stead get nodes")
		}
	}
	decision, before, after, err := d.decide(ctx, caller, r)
	if err != nil {
		return wire.ChangeReply{}, err
	}
	reply := decision.Reply
	switch {
	case r.dryRun && !held(reply):
		d.plan(ctx, decision.Plans(r.nodes), &reply)
	case before != after:
		reply.Epoch, reply.Revision = after.Epoch, after.Revision
		d.changed(ctx, before, after, reply.Changes)
	}
	return fit(reply), nil
}

// held reports whether something stands in the way.
func held(r wire.ChangeReply) bool {
	return len(r.Problems) > 0 || len(r.Conflicts) > 0 || r.Sure != ""
}

func (d *desk) decide(ctx context.Context, caller identity.Caller, r request) (decision admit.Decision, before, after *assign.State, err error) {
	select {
	case d.large <- struct{}{}:
		defer func() { <-d.large }()
	case <-ctx.Done():
		return decision, nil, nil, context.Cause(ctx)
	}
	judge := func(st *assign.State) ([]state.Change, error) {
		if err := sound(st.Unsound); err != nil {
			return nil, err
		}
		p := d.place(st)
		var err error
		decision, err = r.judge(admit.Basis{
			State: st, Placement: p, Profiles: d.store.Profiles(), Kept: d.kept(p),
			Who: who(caller), Now: d.now(), NewUID: newUID,
		})
		if err != nil {
			return nil, err
		}
		return changes(decision), nil
	}
	if r.dryRun {
		before = d.store.Now()
		_, err = judge(before)
		return decision, before, before, err
	}
	before, after, err = d.store.Decide(ctx, judge)
	return decision, before, after, err
}

// changes are the writes of a decision.
func changes(d admit.Decision) []state.Change {
	var all []state.Change
	for _, w := range d.Writes {
		all = append(all, state.Change{Declaration: w})
	}
	for _, s := range d.Seats {
		all = append(all, state.Change{Seat: s})
	}
	for _, m := range d.Modules {
		all = append(all, state.Change{Module: m})
	}
	if d.Node != nil {
		all = append(all, state.Change{Node: d.Node})
	}
	return all
}

// changed does what follows a commit: the nodes concerned are told to look, and
// the audit stream of what was done. Neither is waited for by the mesh.
func (d *desk) changed(ctx context.Context, before, after *assign.State, what []wire.Change) {
	p := d.place(after)
	concerned := slices.Clone(assign.Changed(d.place(before), p)) // which may be the list of all
	// Who has the same as before is to say so: what it reported until now is not
	// known to be of this revision.
	concerned = append(concerned, p.WrittenAfter(before.Revision)...)
	kept := d.kept(p)
	for _, c := range what {
		if c.How == wire.Gone {
			concerned = append(concerned, kept[c.Name]...)
		}
	}
	slices.Sort(concerned)
	d.hint(slices.Compact(concerned), after.Revision)
	d.audit.add(ctx, auditOf(before, after, what)...)
	d.log.Info("mesh state changed", "revision", after.Revision, "epoch", after.Epoch)
}

// hint tells nodes that their set may have changed. A hint that is lost costs half
// a minute.
func (d *desk) hint(nodes []string, revision uint64) {
	text, err := json.Marshal(wire.Changed{Revision: revision})
	if err != nil {
		return // a number always encodes
	}
	for _, name := range nodes {
		n, err := subject.ParseNode(name)
		if err != nil {
			continue // no node could have been told under such a name
		}
		if err := d.conn.Publish(subject.ForNode(n, subject.Changed), text); err != nil {
			d.log.Debug("hint", "node", name, "error", err)
			return
		}
	}
}

// newUID makes an identity that no other declaration has.
func newUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}
