package host

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/shape"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// planTimeout bounds one dry run.
const planTimeout = 20 * time.Second

// planner says what would be done.
type planner interface {
	Plan(ctx context.Context, declared []reconcile.Declared, withdrawn []string) ([]plan.Preview, error)
}

// service answers what controllers ask of this node.
func (m *member) service(c *mesh.Conn, node subject.Node) (*mesh.Service, error) {
	return mesh.NewService(c, mesh.ServiceOptions{
		Name: "host", Node: string(node), Version: "1.0.0", Logger: m.log,
		Drain: time.Second, // nobody waits long for a machine that goes down; of a dead connection nothing says that it is one
		Endpoints: []mesh.Endpoint{{
			Name: "plan", Subject: subject.ForNode(node, subject.Plan), Accounts: []identity.Account{identity.CTL}, Handler: m.plan,
			Timeout: planTimeout, Together: 2, Waiting: 8,
		}},
	})
}

// plan answers a dry run.
func (m *member) plan(ctx context.Context, r mesh.Request) ([]byte, error) {
	var q wire.PlanRequest
	if err := json.Unmarshal(r.Payload, &q); err != nil {
		return nil, fault.New(fault.Invalid, "read the request", "plan", err)
	}
	if q.Wire != wire.Version {
		return nil, refusal("plan", q.Wire)
	}
	return dryRun(ctx, m.loop, q)
}

func versionError(version int) error {
	return fmt.Errorf("it is of wire version %d, and this host speaks %d", version, wire.Version)
}

// dryRun answers q. A declaration that this version cannot read has a plan of its
// own, which refuses it.
func dryRun(ctx context.Context, loop planner, q wire.PlanRequest) ([]byte, error) {
	var declared []reconcile.Declared
	unread := map[int]wire.Plan{} // by place in the request
	for i, d := range q.Declarations {
		s, err := shape.FromCanonical(d.Canonical)
		if err != nil {
			unread[i] = refused(d, err)
			continue
		}
		declared = append(declared, reconcile.Declared{Service: s, UID: d.UID, Generation: d.Generation})
	}
	previews, err := loop.Plan(ctx, declared, q.Withdrawn)
	if err != nil {
		return nil, err
	}
	var reply wire.PlanReply
	for i := range q.Declarations {
		if p, is := unread[i]; is {
			reply.Plans = append(reply.Plans, p)
		}
	}
	for _, p := range previews {
		reply.Plans = append(reply.Plans, planned(p))
	}
	return fitPlans(reply)
}

func refused(d wire.Declared, err error) wire.Plan {
	var named struct {
		Name  string `json:"name"`
		Unit  string `json:"unit"`
		Scope string `json:"scope"`
	}
	_ = json.Unmarshal(d.Canonical, &named) // it stays unnamed when even that cannot be read
	return wire.Plan{Name: named.Name, Unit: named.Unit, Scope: named.Scope, Outcome: report.Refused, Reason: report.Unsupported,
		Text: err.Error(), Hint: "upgrade stead on this node"}
}

func planned(p plan.Preview) wire.Plan {
	w := wire.Plan{Name: p.Name, Unit: string(p.Unit), Scope: string(p.Scope), Outcome: p.Outcome, Reason: p.Reason, Text: p.Text,
		Hint: p.Hint, Warnings: p.Warnings}
	for _, s := range p.Steps {
		w.Steps = append(w.Steps, wire.PlanStep{Action: string(s.Action), Object: s.Object, Reason: s.Reason, Diff: s.Diff})
	}
	return w
}

// fitPlans writes the answer. Where it is more than one message carries, diffs
// are cut, evenly, until it is not.
func fitPlans(reply wire.PlanReply) ([]byte, error) {
	for most := 400; ; most /= 2 {
		data, err := json.Marshal(reply)
		if err != nil || len(data) <= wire.MaxPage {
			return data, err
		}
		if most == 0 {
			return nil, fault.New(fault.Failed, "plan", "", fmt.Errorf("the answer has %d bytes, and a message carries %d", len(data), wire.MaxPage)).
				WithHint("ask for fewer declarations at once")
		}
		for i := range reply.Plans {
			for j := range reply.Plans[i].Steps {
				s := &reply.Plans[i].Steps[j]
				if more := len(s.Diff) - most; more > 0 {
					s.Diff = append(s.Diff[:most:most], fmt.Sprintf("… and %d lines more", more))
				}
			}
		}
	}
}
