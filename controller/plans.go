package controller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

const (
	// planFor is how long a node may take for its plan.
	planFor = 5 * time.Second
	// plansTogether is how many nodes are asked at one time.
	plansTogether = 64
	// plansIn bounds the plans of one answer, in bytes of JSON.
	plansIn = 700 << 10
)

// plan asks nodes what they would do, and puts it into the reply: sorted by node,
// as many as fit. A node that does not answer is named with the reason.
func (d *desk) plan(ctx context.Context, ask map[string][]wire.PlanRequest, reply *wire.ChangeReply) {
	nodes := sortedKeys(ask)
	plans, problems := make([][]wire.Plan, len(nodes)), make([]error, len(nodes))
	places := make(chan struct{}, plansTogether)
	var group sync.WaitGroup
	for i, node := range nodes {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			plans[i], problems[i] = d.planOf(ctx, node, ask[node])
		})
	}
	group.Wait()
	left := plansIn
	for i, node := range nodes {
		if err := problems[i]; err != nil {
			if reply.Unplanned == nil {
				reply.Unplanned = map[string]string{}
			}
			reply.Unplanned[node] = err.Error()
		}
		for _, p := range plans[i] {
			one := wire.NodePlan{Node: node, Plan: p}
			if left -= size(one); left < 0 {
				reply.More++
				continue
			}
			reply.Plans = append(reply.Plans, one)
		}
	}
}

// planOf asks one node, in as many questions as it takes.
func (d *desk) planOf(ctx context.Context, node string, ask []wire.PlanRequest) ([]wire.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, planFor)
	defer cancel()
	n, err := subject.ParseNode(node)
	if err != nil {
		return nil, err
	}
	var plans []wire.Plan
	for _, r := range ask {
		r.Wire = wire.Version
		payload, err := encode(r)
		if err != nil {
			return plans, err
		}
		answer, err := d.conn.Call(ctx, subject.ForNode(n, subject.Plan), payload)
		switch {
		case fault.Is(err, fault.Unavailable):
			return plans, errors.New("it is not connected")
		case fault.Is(err, fault.Timeout):
			return plans, errors.New("it did not answer within " + planFor.String())
		case err != nil:
			return plans, err
		}
		var reply wire.PlanReply
		if err := json.Unmarshal(answer, &reply); err != nil {
			return plans, errors.New("its answer cannot be read")
		}
		plans = append(plans, reply.Plans...)
	}
	slices.SortStableFunc(plans, func(a, b wire.Plan) int { return strings.Compare(a.Name, b.Name) })
	return plans, nil
}
