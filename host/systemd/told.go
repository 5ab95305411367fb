package systemd

import (
	"encoding/hex"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// A change of a unit is announced by two signals, sent together: one of its
// type's interface, then one of Unit. Each carries all of its interface's
// changing properties (seen on systemd 247, 252 and 257), and so all that a look
// would ask for, but for what triggers the unit and which conditions were not
// met. Taking them in saves those calls, which is most of what a look costs
// while units start. They are what the manager says of a unit, in order with its
// replies; a look holds them against the list all the same, and asks where the
// two do not agree.

// take puts together what the signals say, and gives it to the cache when it is
// whole.
func (p *prints) take(n unit.Name, iface string, values map[string]dbus.Variant, c *cache) {
	kind := typeIfcs[n.Type()]
	switch {
	case iface == kind:
		p.run = ofKind(n.Type(), values)
	case iface == unitIfc:
		r := p.run
		if p.run = nil; kind == "" {
			r = &running{}
		}
		if r != nil && r.ofUnit(values) {
			c.told(n, r)
		}
	}
}

// said reads properties of one type off a signal.
type said struct {
	values map[string]dbus.Variant
	lacks  bool
}

func value[T any](s *said, name string) T {
	v, ok := s.values[name].Value().(T)
	s.lacks = s.lacks || !ok
	return v
}

func (s *said) stamp(name string) time.Duration {
	return time.Duration(value[uint64](s, name)) * time.Microsecond
}

// ofKind reads the signal of a type's interface; nil when it does not say all.
func ofKind(kind string, values map[string]dbus.Variant) *running {
	s := &said{values: values}
	r := &running{}
	r.trouble.Result = value[string](s, "Result")
	if kind == "service" {
		r.restarts = value[uint32](s, "NRestarts")
		r.mainPID = value[uint32](s, "MainPID")
		r.trouble.ExitCode = value[int32](s, "ExecMainCode")
		r.trouble.ExitStatus = value[int32](s, "ExecMainStatus")
	}
	if s.lacks {
		return nil
	}
	return r
}

// ofUnit adds what the signal of the Unit interface says, and reports whether
// that is all there is to know.
func (r *running) ofUnit(values map[string]dbus.Variant) bool {
	s := &said{values: values}
	r.seen = key{load: unit.Loaded, active: unit.ActiveState(value[string](s, "ActiveState")), sub: value[string](s, "SubState")}
	if job := value[[]any](s, "Job"); len(job) > 0 {
		r.seen.job, _ = job[0].(uint32)
	}
	if id := value[[]byte](s, "InvocationID"); len(id) > 0 {
		r.invocation = hex.EncodeToString(id)
	}
	r.changed, r.started = s.stamp("StateChangeTimestampMonotonic"), s.stamp("InactiveExitTimestampMonotonic")
	met := s.held("Condition") && s.held("Assert")
	switch {
	case s.lacks:
		return false
	case r.seen.active.Up():
		r.trouble = unit.Trouble{}
		return true
	case r.seen.active.Down():
		r.mainPID = 0
	}
	return met
}

// held reports whether the conditions, or asserts, were met when they were last
// tested, or never were.
func (s *said) held(what string) bool {
	at := value[uint64](s, what+"TimestampMonotonic")
	return value[bool](s, what+"Result") || at == 0
}
