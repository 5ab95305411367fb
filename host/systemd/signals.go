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
	m *Manager

	mu   sync.Mutex
	live bool // between attach and detach: what comes outside is covered by Changes.All
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
			r.m.cache.changed(n)
			r.m.changes.changed(n)
		}
	case managerIfc + ".JobRemoved":
		r.jobRemoved(s.Body)
	case managerIfc + ".UnitNew", managerIfc + ".UnitRemoved":
		var name string
		if len(s.Body) == 2 && dbus.Store(s.Body[:1], &name) == nil {
			r.m.cache.forget(unit.Name(name))
		}
	case managerIfc + ".Reloading":
		var active bool
		if dbus.Store(s.Body, &active) == nil {
			r.m.cache.clear()
			r.m.changes.reload(active)
		}
	}
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
