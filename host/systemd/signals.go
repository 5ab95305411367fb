package systemd

import (
	"sync"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// receiver takes in the signals of one link. godbus calls it from the goroutine
// that reads the socket, one signal after the other and in order with replies,
// so it only notes what happened.
type receiver struct {
	m      *Manager
	wary   bool   // of what the other side says
	sealer sealer // of the goroutine that reads

	answered answered

	mu        sync.Mutex
	live      bool // between attach and detach: what comes outside is covered by Changes.All
	reloading bool
	prints    map[unit.Name]*prints
	id        uint64 // of the connection
	words     uint64 // changes and unloads that were told
	removal   uint64 // words at the last unload
}

// prints tell apart the signals that carry a change of a unit from those that
// are sent because another unit was loaded or unloaded, which is what our own
// looks do, or because the unit spoke (StatusText).
type prints struct {
	unit, kind facts
	words      uint64   // of the receiver, at the last change
	run        *running // what the last signal of the type's interface said, until that of Unit comes
}

func newReceiver(m *Manager) *receiver {
	return &receiver{m: m, wary: m.door != nil, prints: map[unit.Name]*prints{}, id: m.links.Add(1)}
}

func (r *receiver) setLive(live bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = live
}

// DeliverSignal implements dbus.SignalHandler.
func (r *receiver) DeliverSignal(iface, member string, s *dbus.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live {
		return
	}
	switch iface + "." + member {
	case managerIfc + ".JobRemoved":
		r.jobRemoved(s.Body)
	case managerIfc + ".UnitNew":
		r.m.cache.loaded(nameIn(s.Body))
	case managerIfc + ".UnitRemoved":
		n := nameIn(s.Body)
		r.m.cache.unloaded(n)
		if !r.reloading { // a reload announces all units anew, as they were
			delete(r.prints, n)
			r.words++
			r.removal = r.words
		}
	case managerIfc + ".Reloading":
		if dbus.Store(s.Body, &r.reloading) == nil {
			r.m.cache.restart(!r.reloading)
			r.m.changes.reload(r.reloading, r.answered.since())
		}
	}
}

// Mark is that of what was told of a unit so far. It is as new as the last answer
// to a call: the manager says what changed before it reads the next message.
func (m *Manager) Mark(name unit.Name) unit.Mark {
	l := m.conn.current()
	if l == nil {
		return unit.Mark{}
	}
	r := l.signals
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.prints[name]; p != nil {
		return unit.MarkOf(r.id, p.words)
	}
	return unit.MarkOf(r.id, r.removal)
}

// Standing is how a unit stands by the manager's last word of it, which costs no
// call; ok is false where there is none, as of a unit that did not change since it
// was loaded, and while a reload is going on. Before the end of a job is told, so is
// what it made of its unit (seen on systemd 252; bus_job_send_removed_signal). Name
// is the unit's own: of an alias there is no word.
func (m *Manager) Standing(name unit.Name) (active unit.ActiveState, sub string, ok bool) {
	l := m.conn.current()
	if l == nil {
		return "", "", false
	}
	r := l.signals
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.prints[name]
	if p == nil || r.reloading || p.unit.has&(hasActive|hasSub) != hasActive|hasSub {
		return "", "", false
	}
	return unit.ActiveState(p.unit.active), p.unit.sub, true
}

// nameIn reads the name in UnitNew(name, path) and UnitRemoved(name, path).
func nameIn(body []any) unit.Name {
	if len(body) == 0 {
		return ""
	}
	return nameOf(body[0])
}

// jobRemoved takes in JobRemoved(id, job, unit, result).
func (r *receiver) jobRemoved(body []any) {
	var end unit.JobEnd
	var path dbus.ObjectPath
	var name, result string
	if dbus.Store(body, &end.ID, &path, &name, &result) != nil || !short(name, result) {
		return
	}
	end.Unit, end.Result = unit.Name(name), unit.JobResult(result)
	r.m.cache.changed(end.Unit)
	r.m.changes.ended(end)
}

// propertiesChanged takes in that properties of n changed. Every such signal
// invalidates; only a change wakes.
func (r *receiver) propertiesChanged(n unit.Name, iface string, f facts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live {
		return
	}
	r.m.cache.changed(n)
	if f.has == 0 {
		return
	}
	p := r.prints[n]
	if p == nil {
		if len(r.prints) >= mostPrints {
			clear(r.prints) // each unit's next signal counts as a change
		}
		p = &prints{}
		r.prints[n] = p
	}
	p.take(n, iface, f, r.m.cache)
	last := &p.kind
	if iface == unitIfc {
		last = &p.unit
		// A unit that nothing refers to is unloaded at once after a start that was
		// skipped, before anybody can ask.
		if f.has&(hasTried|hasMet) == hasTried|hasMet && f.tried > 0 {
			r.m.cache.tried(n, !f.met)
		}
	}
	if f != *last {
		*last = f
		r.words++
		p.words = r.words
		r.m.changes.changed(n)
	}
}
