package systemd

import (
	"slices"
	"sync"
	"time"

	"stead/host/unit"
)

// mostUnits bounds the units that wait to be drained; beyond it everything is
// to be looked at.
const mostUnits = 4096

// changes gathers what happened until it is drained.
type changes struct {
	wake chan struct{} // capacity one

	mu        sync.Mutex
	all       bool
	reloading bool
	began     time.Time // no later than when the reload began that is under way, or the last one
	reloaded  time.Time // of one that ended since the last drain
	units     []unit.Name
	seen      map[unit.Name]bool
	jobs      []unit.JobEnd
	listeners map[chan<- struct{}][]unit.Name // see Manager.Notify
}

func newChanges() *changes {
	return &changes{wake: make(chan struct{}, 1), seen: map[unit.Name]bool{}, listeners: map[chan<- struct{}][]unit.Name{}}
}

func (c *changes) drain() unit.Changes {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := unit.Changes{All: c.all, Units: c.units, Jobs: c.jobs, Reloaded: c.reloaded}
	c.all, c.units, c.jobs, c.reloaded = false, nil, nil, time.Time{}
	clear(c.seen)
	select {
	case <-c.wake: // it was for what is drained now
	default:
	}
	return out
}

func (c *changes) signal() { hand(c.wake) }

// everything asks for a look at all units.
func (c *changes) everything() {
	c.mu.Lock()
	c.setAll()
	c.mu.Unlock()
	c.signal()
}

// lost is everything, at the end of a connection.
func (c *changes) lost() {
	c.mu.Lock()
	c.reloading = false
	c.setAll()
	c.mu.Unlock()
	c.signal()
}

func (c *changes) setAll() {
	c.all, c.units = true, nil
	clear(c.seen)
	for ch := range c.listeners {
		hand(ch)
	}
}

// notify makes ch hear of changes of names, or no more of any.
func (c *changes) notify(ch chan<- struct{}, names []unit.Name) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.listeners, ch); len(names) > 0 {
		c.listeners[ch] = slices.Clone(names)
	}
}

// spread tells those that wait for n.
func (c *changes) spread(n unit.Name) {
	for ch, names := range c.listeners {
		if slices.Contains(names, n) {
			hand(ch)
		}
	}
}

func hand(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// reload notes that a reload began or ended; no sooner than since.
func (c *changes) reload(active bool, since time.Time) {
	c.mu.Lock()
	switch {
	case active && !c.reloading:
		c.began = since
	case !active && c.reloading: // of one that began before anybody listened it is not known when
		c.reloaded = c.began
	}
	c.reloading = active
	if !active {
		c.setAll()
	}
	c.mu.Unlock()
	if !active {
		c.signal()
	}
}

// changed notes that the state of n changed.
func (c *changes) changed(n unit.Name) {
	c.mu.Lock()
	added := c.add(n)
	c.mu.Unlock()
	if added {
		c.signal()
	}
}

// ended notes the end of a job, which is also a change of its unit.
func (c *changes) ended(j unit.JobEnd) {
	c.mu.Lock()
	if len(c.jobs) < mostJobEnds {
		c.jobs = append(c.jobs, j)
	}
	c.add(j.Unit)
	c.mu.Unlock()
	c.signal()
}

func (c *changes) add(n unit.Name) bool {
	c.spread(n)
	if c.reloading || c.all || c.seen[n] {
		return false
	}
	if len(c.units) >= mostUnits {
		c.setAll()
		return true
	}
	c.seen[n] = true
	c.units = append(c.units, n)
	return true
}
