package systemd

import (
	"context"

	"github.com/godbus/dbus/v5"
)

// UnitPath returns the folders in which the manager looks for unit files, the
// one that wins first.
func (m *Manager) UnitPath(ctx context.Context) ([]string, error) {
	return property[[]string](ctx, m, "UnitPath")
}

// Version returns the manager's version, such as "252.38-1~deb12u1".
func (m *Manager) Version(ctx context.Context) (string, error) {
	return property[string](ctx, m, "Version")
}

// property reads a property of the manager itself.
func property[T any](ctx context.Context, m *Manager, name string) (T, error) {
	var out T
	l, err := m.using(ctx, "read "+name)
	if err != nil {
		return out, err
	}
	r := l.one(ctx, get(busPath, managerIfc, name))
	if r.err != nil {
		return out, looking("read "+name, string(m.opts.Scope), r.err)
	}
	var v dbus.Variant
	if err := dbus.Store(r.body, &v); err != nil {
		return out, strange("Get "+name, err)
	}
	if err := v.Store(&out); err != nil {
		return out, strange("Get "+name, err)
	}
	return out, nil
}
