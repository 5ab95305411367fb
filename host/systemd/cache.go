package systemd

import (
	"sync"
	"time"

	"stead/host/unit"
)

// cache keeps what was read of units until a signal says that it may be no
// longer so. It holds only units that the manager keeps loaded: one that is
// unloaded is forgotten.
//
// A reply and a signal that overtakes its reader are told apart by the entry's
// version: what was asked for before an invalidation is never stored after it.
type cache struct {
	mu    sync.Mutex
	units map[unit.Name]*entry
}

type entry struct {
	version uint64
	def     *definition
	run     *running
}

// definition is what a unit was loaded from. It stays so until a reload, or
// until the unit is loaded anew.
type definition struct {
	fragment   string
	dropIns    []string
	source     string
	needReload bool
}

// running is how a unit stands, together with what the list said when it was
// read. It stays so until the unit changes.
type running struct {
	seen key

	invocation string
	started    time.Duration
	changed    time.Duration
	restarts   uint32
	mainPID    uint32
	trouble    unit.Trouble
}

// key is what the list says of a unit's state.
type key struct {
	load   unit.LoadState
	active unit.ActiveState
	sub    string
	job    unit.Job
}

func newCache() *cache { return &cache{units: map[unit.Name]*entry{}} }

// ticket is what is known of a unit, and the right to store what is missing.
type ticket struct {
	entry   *entry
	version uint64
	def     *definition // nil when it must be read
	run     *running    // nil when it must be read
}

// open returns what is known of n, whose state the list has just said to be k.
func (c *cache) open(n unit.Name, k key) ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.units[n]
	if e == nil {
		e = &entry{}
		c.units[n] = e
	}
	t := ticket{entry: e, version: e.version, def: e.def, run: e.run}
	if t.run != nil && t.run.seen != k {
		t.run = nil
	}
	return t
}

// store keeps what was read for t, unless the unit changed in the meantime.
func (c *cache) store(n unit.Name, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units[n] == t.entry && t.entry.version == t.version {
		t.entry.def, t.entry.run = t.def, t.run
	}
}

// changed invalidates how n stands.
func (c *cache) changed(n unit.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.units[n]; e != nil {
		e.version++
		e.run = nil
	}
}

// forget invalidates all of n.
func (c *cache) forget(n unit.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.units, n)
}

// clear invalidates everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.units)
}
