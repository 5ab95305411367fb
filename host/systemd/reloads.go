package systemd

import (
	"context"
	"errors"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

// command is an entry of ExecReload: a command, and how its last run went
// (org.freedesktop.systemd1(5), Service.ExecStart). Times are in microseconds.
type command struct {
	Path          string
	Argv          []string
	Ignore        bool
	Began, BeganM uint64
	Ended, EndedM uint64
	PID           uint32
	Code, Status  int32
}

// Reloads says when the last reload of each of names that has succeeded began, as
// CLOCK_MONOTONIC; 0 where that is not known: for what is no service, what is
// reloaded without a command, and where the manager was made to read its files
// since then.
func (m *Manager) Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error) {
	out := make([]time.Duration, len(names))
	var calls []call
	var at []int
	for i, n := range names {
		if n.Type() == "service" {
			calls, at = append(calls, get(pathOfUnit(n), typeIfcs["service"], "ExecReload")), append(at, i)
		}
	}
	if len(calls) == 0 {
		return out, nil
	}
	l, err := m.using(ctx, "read last reloads")
	if err != nil {
		return nil, err
	}
	for c, r := range l.do(ctx, calls) {
		var a *answer
		var v dbus.Variant
		var all []command
		switch {
		case errors.As(r.err, &a):
			continue
		case r.err != nil:
			return nil, looking("read last reloads", string(names[at[c]]), r.err)
		case dbus.Store(r.body, &v) != nil || v.Store(&all) != nil:
			return nil, strange("Get ExecReload", errors.New("it is no list of commands"))
		}
		out[at[c]] = succeeded(all)
	}
	return out, nil
}

// succeeded is when the first of the commands began, if all have run well since.
func succeeded(all []command) time.Duration {
	const exited = 1 // CLD_EXITED
	var from uint64
	for i, c := range all {
		if i == 0 {
			from = c.BeganM
		}
		if c.BeganM < from || c.EndedM == 0 || !c.Ignore && (c.Code != exited || c.Status != 0) {
			return 0
		}
	}
	return stamp(from)
}
