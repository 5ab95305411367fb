package admit

import (
	"stead/controller/assign"
	"stead/mesh/wire"
)

// Plans returns what is to be asked of each node for its plan of the change: the
// declarations that it would get or get anew, and the names that it would lose.
// It holds the nodes of only, or all that are concerned when only is empty. Each
// list of requests is to be asked in its order; each request fits into a message.
func (d Decision) Plans(only []string) map[string][]wire.PlanRequest {
	wanted := map[string]bool{}
	for _, name := range only {
		wanted[name] = true
	}
	plans := map[string]*asking{}
	ask := func(node string) *asking {
		if plans[node] == nil {
			plans[node] = &asking{}
		}
		return plans[node]
	}
	each := func(nodes []string, do func(*asking)) {
		for _, node := range nodes {
			if len(only) == 0 || wanted[node] {
				do(ask(node))
			}
		}
	}
	for _, c := range d.changes {
		if c.how == wire.Unchanged {
			continue
		}
		nodes := c.gain
		if is := alive(c.is); is != nil && c.how != wire.Moved {
			nodes = d.After.NodesOf(is.Address)
		}
		each(nodes, func(a *asking) { a.declare(c.is) })
		each(c.lose, func(a *asking) { a.withdraw(c.is.Name) })
	}
	all := map[string][]wire.PlanRequest{}
	for node, a := range plans {
		all[node] = a.requests
	}
	return all
}

// asking gathers what one node is asked, in requests that fit into a message.
type asking struct {
	requests []wire.PlanRequest
	size     int // of the last request, about
}

// last returns the request that n more bytes go into.
func (a *asking) last(n int) *wire.PlanRequest {
	if len(a.requests) == 0 || a.size+n > wire.MaxPage {
		a.requests, a.size = append(a.requests, wire.PlanRequest{Wire: wire.Version}), 0
	}
	a.size += n
	return &a.requests[len(a.requests)-1]
}

func (a *asking) declare(d *assign.Declaration) {
	r := a.last(len(d.Canonical)*4/3 + 256)
	r.Declarations = append(r.Declarations, wire.Declared{UID: d.UID, Generation: d.Generation, Canonical: d.Canonical})
}

func (a *asking) withdraw(name string) {
	r := a.last(len(name) + 16)
	r.Withdrawn = append(r.Withdrawn, name)
}
