package systemd

import (
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// receiver takes in the signals of one link. godbus calls it from the goroutine
// that reads the socket, one signal after the other and in order with replies,
// so it only notes what happened.
type receiver struct {
	m    *Manager
	seed maphash.Seed

	mu        sync.Mutex
	live      bool // between attach and detach: what comes outside is covered by Changes.All
	reloading bool
	prints    map[unit.Name]*prints
}

// prints tell apart the signals that carry a change of a unit from those that
// are sent because another unit was loaded or unloaded, which is what our own
// looks do, or because the unit spoke (StatusText).
type prints struct {
	unit, kind uint64
	run        *running // what the last signal of the type's interface said, until that of Unit comes
}

func newReceiver(m *Manager) *receiver {
	return &receiver{m: m, seed: maphash.MakeSeed(), prints: map[unit.Name]*prints{}}
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
	case "org.freedesktop.DBus.Properties.PropertiesChanged":
		if n, ok := unitOfPath(s.Path); ok {
			r.propertiesChanged(n, s.Body)
		}
	case managerIfc + ".JobRemoved":
		r.jobRemoved(s.Body)
	case managerIfc + ".UnitNew":
		r.m.cache.loaded(nameIn(s.Body))
	case managerIfc + ".UnitRemoved":
		n := nameIn(s.Body)
		r.m.cache.unloaded(n)
		if !r.reloading { // a reload announces all units anew, as they were
			delete(r.prints, n)
		}
	case managerIfc + ".Reloading":
		if dbus.Store(s.Body, &r.reloading) == nil {
			r.m.cache.restart(!r.reloading)
			r.m.changes.reload(r.reloading)
		}
	}
}

// nameIn reads the name in UnitNew(name, path) and UnitRemoved(name, path).
func nameIn(body []any) unit.Name {
	if len(body) == 0 {
		return ""
	}
	s, _ := body[0].(string)
	return unit.Name(s)
}

// jobRemoved takes in JobRemoved(id, job, unit, result).
func (r *receiver) jobRemoved(body []any) {
	var end unit.JobEnd
	var path dbus.ObjectPath
	var name, result string
	if dbus.Store(body, &end.ID, &path, &name, &result) != nil {
		return
	}
	end.Unit, end.Result = unit.Name(name), unit.JobResult(result)
	r.m.cache.changed(end.Unit)
	r.m.changes.ended(end)
}

// propertiesChanged takes in PropertiesChanged(interface, changed, invalidated)
// of n. Every kind of it invalidates; only a change wakes.
func (r *receiver) propertiesChanged(n unit.Name, body []any) {
	r.m.cache.changed(n)
	if len(body) < 2 {
		return
	}
	iface, _ := body[0].(string)
	values, _ := body[1].(map[string]dbus.Variant)
	p := r.prints[n]
	if p == nil {
		p = &prints{}
		r.prints[n] = p
	}
	p.take(n, iface, values, r.m.cache)
	if r.news(p, n, iface, values) {
		r.m.changes.changed(n)
	}
}

// What a signal of the Unit interface, and one of a unit type's, says of a
// unit's state.
var (
	unitState = [...]string{"ActiveState", "SubState", "Job", "InvocationID", "StateChangeTimestampMonotonic",
		"InactiveExitTimestampMonotonic", "ConditionTimestampMonotonic", "AssertTimestampMonotonic"}
	kindState = [...]string{"Result", "NRestarts", "MainPID", "ExecMainCode", "ExecMainStatus"}
)

// news reports whether values differ from those of the last such signal of n.
func (r *receiver) news(p *prints, n unit.Name, iface string, values map[string]dbus.Variant) bool {
	last, fields := &p.kind, kindState[:]
	if iface == unitIfc {
		last, fields = &p.unit, unitState[:]
		r.conditions(n, values)
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	some := false
	for _, f := range fields {
		v, ok := values[f]
		some = some || ok
		fmt.Fprint(&h, v.Value(), "\n")
	}
	now := h.Sum64()
	news := some && *last != now
	*last = now
	return news
}

// conditions keeps whether a start was skipped: a unit that nothing refers to
// is unloaded at once after that, before anybody can ask.
func (r *receiver) conditions(n unit.Name, values map[string]dbus.Variant) {
	at, _ := values["ConditionTimestampMonotonic"].Value().(uint64)
	met, ok := values["ConditionResult"].Value().(bool)
	if ok && at > 0 {
		r.m.cache.tried(n, !met)
	}
}
