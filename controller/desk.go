package controller

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"stead/controller/admit"
	"stead/controller/assign"
	"stead/controller/state"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/trail"
	"stead/mesh/wire"
)

// means are what a desk is given.
type means struct {
	life  context.Context // ends when the controller is to end
	keys  *identity.Mesh
	conn  *mesh.Conn
	store *state.Store
	trail *trail.Trail
	bring admit.Catalogue // seats and modules of this version
	by    string          // who this controller is, for the records
	log   *slog.Logger
	clock func() time.Time
}

// desk answers calls: it has all that handlers work with, and nothing of its own
// that must not be lost.
type desk struct {
	means
	now       func() time.Time
	audit     *audit
	newcomers *newcomers
	uploads   *uploads
	visits    *visits
	troubles  *troubles
	large     chan struct{} // taken while a request that may be large is judged
	indexing  chan struct{} // taken while an index is made

	mu     sync.Mutex
	placed []*assign.Placement // of the last states, the newest last
}

const (
	// largeTogether is how many requests that may be large are judged at one time:
	// reading 16 MiB of declarations takes many times as much memory.
	largeTogether = 2
	// keepPlaced is how many placements are kept: of the state of now, and of the
	// one before while a change goes on.
	keepPlaced = 2
)

func newDesk(m means) *desk {
	d := &desk{
		means: m, now: func() time.Time { return m.clock().UTC() }, audit: newAudit(m.trail, m.log),
		uploads: newUploads(), visits: newVisits(), troubles: newTroubles(m.log),
		large: make(chan struct{}, largeTogether), indexing: make(chan struct{}, nodesTogether),
	}
	d.newcomers = &newcomers{join: d.join}
	return d
}

// place returns who has what in s; it is worked out once.
func (d *desk) place(s *assign.State) *assign.Placement {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.placed {
		if p.State() == s {
			return p
		}
	}
	p := assign.Place(s)
	d.keep(p)
	return p
}

// keep is called with the lock held.
func (d *desk) keep(p *assign.Placement) {
	if len(d.placed) == keepPlaced {
		d.placed = slices.Delete(d.placed, 0, 1)
	}
	d.placed = append(d.placed, p)
}

// current is who has what now.
func (d *desk) current() *assign.Placement { return d.place(d.store.Now()) }

// summaries are what nodes reported last, of those that did.
func (d *desk) summaries(nodes []string) map[string]*state.Summary {
	all := make(map[string]*state.Summary, len(nodes))
	for _, name := range nodes {
		if s := d.store.Summary(name); s != nil {
			all[name] = s
		}
	}
	return all
}

// kept says which nodes keep what, by name of the declaration.
func (d *desk) kept(p *assign.Placement) map[string][]string {
	kept := map[string][]string{}
	for _, node := range p.Nodes() {
		if s := d.store.Summary(node); s != nil {
			for _, name := range s.Source.Kept {
				kept[name] = append(kept[name], node)
			}
		}
	}
	return kept
}

// standing says how a node stands.
func (d *desk) standing(n *assign.Node, s *state.Summary) string {
	seen := d.store.Seen(n.Name)
	switch {
	case n.Removed:
		return wire.Removed
	case seen.IsZero():
		return wire.Unknown
	case d.silent(seen):
		return wire.Silent
	case d.store.Double(n.Name) != nil:
		return wire.Double
	case s != nil && s.Source.Trouble != "":
		return wire.Refusing
	}
	return wire.Ready
}

// silentAfter is how long nothing is heard of a node before it counts as silent:
// four times what a host lets pass.
const silentAfter = 2 * time.Minute

func (d *desk) silent(seen time.Time) bool { return d.now().Sub(seen) > silentAfter }

// profile is the profile of a node, nil for none.
func (d *desk) profile(node string) *wire.Profile {
	p, ok := d.store.Profiles()[node]
	if !ok {
		return nil
	}
	p.Vocabulary, p.Wires, p.Capabilities = slices.Clone(p.Vocabulary), slices.Clone(p.Wires), slices.Clone(p.Capabilities)
	return &p
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
