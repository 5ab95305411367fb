package systemd

import (
	"sync"
	"time"

	"stead/host/unit"
)

// cache keeps what was read of units until a signal says that it may be no
// longer so.
//
// A reply and a signal that overtakes its reader are told apart by the entry's
// version: what was asked for before an invalidation is never stored after it.
type cache struct {
	mu    sync.Mutex
	epoch uint64 // rises when everything is forgotten
	fresh bool   // the epoch began with a reload
	units map[unit.Name]*entry
	// loose are the definitions of units that the manager does not keep loaded.
	// They are read off disk at every load, so one that is kept here can be older
	// than that; it then differs from what is on disk, which at worst asks for a
	// reload that was not needed.
	loose   map[unit.Name]*definition
	skipped map[unit.Name]bool // loose units whose last start was skipped by a condition
	watches map[*watch]bool
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
	needReload bool
	canReload  bool
}

// running is how a unit stands, together with what the list said when it was
// read. It stays so until the unit changes.
type running struct {
	seen      key
	looked    bool // a look has found it so
	triggered bool // trouble.Triggers was read

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
	job    uint32
}

// watch gathers the units that the manager unloads while it is held.
type watch struct{ removed map[unit.Name]bool }

func newCache() *cache {
	return &cache{
		units: map[unit.Name]*entry{}, loose: map[unit.Name]*definition{},
		skipped: map[unit.Name]bool{}, watches: map[*watch]bool{},
	}
}

// watch begins to note which units are unloaded, until unwatch.
func (c *cache) watch() *watch {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &watch{removed: map[unit.Name]bool{}}
	c.watches[w] = true
	return w
}

func (c *cache) unwatch(w *watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watches, w)
}

// ticket is what is known of a unit, and the right to store what is missing.
type ticket struct {
	epoch   uint64
	fresh   bool   // what the manager has loaded, it read in a reload that was seen to end
	entry   *entry // nil for a loose unit
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
	t := ticket{epoch: c.epoch, fresh: c.fresh, entry: e, version: e.version, def: e.def, run: e.run}
	if t.run != nil && t.run.seen != k {
		t.run = nil
	}
	return t
}

// openLoose is open for a unit that w saw being unloaded right after the list
// was made: it has no state but the one of a unit that was never started. The
// second value reports whether w saw that.
func (c *cache) openLoose(n unit.Name, w *watch) (ticket, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !w.removed[n] {
		delete(c.loose, n)
		delete(c.skipped, n)
		return ticket{}, false
	}
	r := &running{triggered: true, trouble: unit.Trouble{Triggers: []unit.Name{}}} // what triggers a unit keeps it loaded
	if typeIfcs[n.Type()] != "" {
		r.trouble.Result = "success"
	}
	if c.skipped[n] {
		r.trouble.Unmet = []unit.Condition{{}}
	}
	return ticket{epoch: c.epoch, def: c.loose[n], run: r}, true
}

// store keeps what was read for t, unless the unit changed in the meantime.
func (c *cache) store(n unit.Name, t ticket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.epoch != t.epoch:
	case t.entry == nil:
		c.loose[n] = t.def
	case c.units[n] == t.entry && t.entry.version == t.version:
		t.entry.def, t.entry.run = t.def, t.run
	}
}

// discard gives back a ticket that is not stored.
func (c *cache) discard(n unit.Name, e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units[n] == e && e.def == nil && e.run == nil {
		delete(c.units, n)
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

// told takes in how n stands by the manager's own signals, if n is a unit that
// was asked for.
func (c *cache) told(n unit.Name, r *running) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.units[n]
	if e == nil {
		if c.loose[n] == nil {
			return
		}
		e = &entry{}
		c.units[n] = e
	}
	e.version++
	e.run = r
}

// tried notes whether the last start of n was skipped because of a condition,
// which the manager forgets when it unloads the unit.
func (c *cache) tried(n unit.Name, skipped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if skipped && len(c.skipped) < mostUnits {
		c.skipped[n] = true
	} else if !skipped {
		delete(c.skipped, n)
	}
}

// loaded invalidates all of n, which was loaded anew.
func (c *cache) loaded(n unit.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.units[n] != nil {
		c.units[n] = &entry{} // and not those that hold tickets
	}
}

// unloaded invalidates all of n.
func (c *cache) unloaded(n unit.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.units, n)
	for w := range c.watches {
		w.removed[n] = true
	}
}

// clear invalidates everything. What a watch saw does not hold any longer.
func (c *cache) clear() { c.restart(false) }

// restart is clear, at the end of a reload where fresh is true.
func (c *cache) restart(fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.fresh = fresh
	clear(c.units)
	clear(c.loose)
	clear(c.skipped)
	for w := range c.watches {
		clear(w.removed)
	}
}
