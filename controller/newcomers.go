package controller

import (
	"context"
	"sync"
	"time"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/mesh/bucket"
)

// newcomers gives nodes that were not known a record each, and nodes that report
// something else than their record says another. Those that appear at one time are written in one commit: a thousand commits, each of which all
// others are in the way of, would take their time.
type newcomers struct {
	join func(ctx context.Context, nodes []string) error

	mu   sync.Mutex
	wait *company // of the commit that is not begun yet
}

// company are the nodes of one commit.
type company struct {
	nodes map[string]bool
	full  chan struct{} // closed when no more fit into one commit
	done  chan struct{}
	err   error
}

const (
	// gather is how long the first of a company waits for others.
	gather = 10 * time.Millisecond
	// joinFor bounds one commit.
	joinFor = 10 * time.Second
)

// add returns when node is known, or why it is not. Whoever comes first commits
// for those who come within a moment, also when its own context ends.
func (n *newcomers) add(ctx context.Context, node string) error {
	n.mu.Lock()
	c := n.wait
	first := c == nil
	if first {
		c = &company{nodes: map[string]bool{}, full: make(chan struct{}), done: make(chan struct{})}
		n.wait = c
	}
	c.nodes[node] = true
	if len(c.nodes) == bucket.MaxCommit {
		n.wait = nil
		close(c.full)
	}
	n.mu.Unlock()
	if first {
		n.lead(context.WithoutCancel(ctx), c)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// lead waits for the others of c and commits for all of them.
func (n *newcomers) lead(ctx context.Context, c *company) {
	select {
	case <-time.After(gather):
	case <-c.full:
	}
	n.mu.Lock()
	if n.wait == c {
		n.wait = nil
	}
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, joinFor)
	defer cancel()
	c.err = n.join(ctx, sortedKeys(c.nodes))
	close(c.done)
}

// join makes records for those of nodes that have none or report something else,
// and tells of it.
func (d *desk) join(ctx context.Context, nodes []string) error {
	before, after, err := d.store.Decide(ctx, func(st *assign.State) ([]state.Change, error) {
		var changes []state.Change
		for _, name := range nodes {
			switch n, err := d.record(ctx, st, name); {
			case err != nil:
				return nil, err
			case n != nil:
				changes = append(changes, state.Change{Node: n})
			}
		}
		return changes, nil
	})
	if err == nil && before != after {
		d.changed(ctx, before, after, nil)
	}
	return err
}
