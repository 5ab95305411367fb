package controller

import (
	"context"
	"errors"
	"fmt"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

// claim judges the claims that a runtime files for the modules of its node.
func (d *desk) claim(ctx context.Context, caller identity.Caller, r wire.ClaimRequest) (wire.ClaimReply, error) {
	if len(r.Claims) > wire.MaxClaims {
		return wire.ClaimReply{}, fault.New(fault.Invalid, "claim", caller.Name, fmt.Errorf("%d claims; at most %d", len(r.Claims), wire.MaxClaims))
	}
	d.reach(ctx, wire.SyncRequest{Mesh: d.store.Now().Mesh, Least: r.Least})
	p, err := d.known(ctx, caller)
	if err != nil {
		return wire.ClaimReply{}, err
	}
	reply := wire.ClaimReply{Verdicts: make([]wire.Verdict, 0, len(r.Claims))}
	taken := false
	for _, c := range r.Claims {
		now, err := d.judge(ctx, p, caller, c)
		switch class := fault.ClassOf(err); {
		case err == nil:
			taken = taken || now
			reply.Verdicts = append(reply.Verdicts, wire.Verdict{})
		case class == fault.Refused || class == fault.Conflict:
			d.log.Debug("claim refused", "node", caller.Name, "reason", err)
			reply.Verdicts = append(reply.Verdicts, wire.Verdict{Refused: err.Error()})
		default:
			return wire.ClaimReply{}, err
		}
	}
	if taken {
		d.hint([]string{caller.Name}, p.State().Revision)
	}
	return reply, nil
}

// judge accepts a claim, and reports whether that is news. What is refused, or in
// conflict, changes nothing: who holds the seat goes on holding it.
func (d *desk) judge(ctx context.Context, p *assign.Placement, caller identity.Caller, c seats.Claim) (bool, error) {
	if string(c.Node) != caller.Name {
		return false, c.Refused(fault.Refused, fmt.Errorf("node %q files it", caller.Name))
	}
	if _, err := subject.ParseSeat(string(c.Seat)); err != nil {
		return false, p.Judge(c, "") // there is none of that name
	}
	for {
		before, err := d.store.Claimed(ctx, caller.Name, c.Seat)
		if err != nil {
			return false, unknown(err)
		}
		if err := p.Judge(c, before.Module); err != nil {
			return false, err
		}
		if before.Module == c.Module {
			return false, nil
		}
		after, err := d.store.Claim(ctx, before, c.Module)
		if err == nil {
			d.claimed(ctx, p.State(), after)
			return true, nil
		}
		if !fault.Is(err, fault.Conflict) || ctx.Err() != nil {
			return false, unknown(err)
		}
	}
}

// unknown keeps what went wrong in the store from being taken for a verdict.
func unknown(err error) error {
	switch fault.ClassOf(err) {
	case fault.Refused, fault.Conflict:
		return fault.New(fault.Unavailable, "claim", "", errors.New(err.Error()))
	}
	return err
}

// claimed tells of a claim that was accepted.
func (d *desk) claimed(ctx context.Context, st *assign.State, c state.Claim) {
	d.log.Info("claim accepted", "node", c.Node, "seat", c.Seat, "module", c.Module)
	d.audit.add(ctx, wire.Event{
		ID: fmt.Sprintf("%s.claim.%d", st.Epoch, c.Revision), At: c.At, Source: source, Who: "runtime " + c.Node, Kind: "seat",
		Node: c.Node, Text: fmt.Sprintf("module %q holds seat %s", c.Module, c.Seat),
	})
}
