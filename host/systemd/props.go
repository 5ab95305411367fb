package systemd

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

const unitIfc = "org.freedesktop.systemd1.Unit"

// typeIfcs are the interfaces of the unit types that have a Result.
var typeIfcs = map[string]string{
	"service": "org.freedesktop.systemd1.Service", "socket": "org.freedesktop.systemd1.Socket",
	"mount": "org.freedesktop.systemd1.Mount", "automount": "org.freedesktop.systemd1.Automount",
	"swap": "org.freedesktop.systemd1.Swap", "timer": "org.freedesktop.systemd1.Timer",
	"path": "org.freedesktop.systemd1.Path", "scope": "org.freedesktop.systemd1.Scope",
}

// want is one property that is to be read, and where it goes.
type want struct {
	look     *look
	iface    string
	property string
	into     func(dbus.Variant) error
}

// read asks for wants. A unit that is gone meanwhile keeps what the list said
// of it, and is not cached.
func read(ctx context.Context, l *link, wants []want) error {
	calls := make([]call, len(wants))
	for i, w := range wants {
		calls[i] = get(w.look.row.Path, w.iface, w.property)
	}
	for i, r := range l.do(ctx, calls) {
		var a *answer
		var v dbus.Variant
		switch {
		case errors.As(r.err, &a):
			wants[i].look.whole = false
			continue
		case r.err != nil:
			return r.err
		}
		if err := dbus.Store(r.body, &v); err != nil {
			return strange("Get "+wants[i].property, err)
		}
		if err := wants[i].into(v); err != nil {
			return strange("Get "+wants[i].property, err)
		}
	}
	return nil
}

// to stores a property as it is.
func to[T any](p *T) func(dbus.Variant) error {
	return func(v dbus.Variant) error { return v.Store(p) }
}

// toWord stores a state or a result; what is none counts as "".
func toWord(p *string) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		err := v.Store(p)
		if !short(*p) {
			*p = ""
		}
		return err
	}
}

// toTime stores a CLOCK_MONOTONIC stamp, which is in microseconds.
func toTime(p *time.Duration) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var us uint64
		err := v.Store(&us)
		*p = time.Duration(us) * time.Microsecond
		return err
	}
}

// toHex stores an id in hex; one of zeros is none.
func toHex(p *string) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var id []byte
		err := v.Store(&id)
		if slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
			*p = hex.EncodeToString(id)
		}
		return err
	}
}

// toNames stores unit names in order.
func toNames(p *[]unit.Name) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var names []string
		err := v.Store(&names)
		slices.Sort(names)
		*p = []unit.Name{} // asked for, if there is none
		for _, n := range names {
			if short(n) {
				*p = append(*p, unit.Name(n))
			}
		}
		return err
	}
}

// condition is an entry of Conditions or Asserts. State is negative when it was
// not met, positive when it was, zero when it was not tried.
type condition struct {
	Name    string
	Trigger bool
	Negate  bool
	Param   string
	State   int32
}

func (c condition) String() string {
	s := c.Name + "="
	if c.Trigger {
		s += "|"
	}
	if c.Negate {
		s += "!"
	}
	return s + c.Param
}

// toUnmet appends the conditions that were not met, unless *met.
func toUnmet(p *[]unit.Condition, met *bool, assert bool) func(dbus.Variant) error {
	return func(v dbus.Variant) error {
		var all []condition
		if err := v.Store(&all); err != nil || *met {
			return err
		}
		for _, c := range all {
			if c.State < 0 {
				*p = append(*p, unit.Condition{Text: clip(c.String()), Assert: assert})
			}
		}
		return nil
	}
}
