package systemd

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"stead/host/fault"
	"stead/host/unit"
)

// methods are the manager's methods for each type of job.
var methods = map[unit.JobType]string{
	unit.StartJob: "StartUnit", unit.StopJob: "StopUnit", unit.RestartJob: "RestartUnit",
	unit.ReloadJob: "ReloadUnit", unit.TryRestartJob: "TryRestartUnit", unit.ReloadOrTryRestartJob: "ReloadOrTryRestartUnit",
}

// Enqueue asks for jobs, in order and without waiting for one before asking for
// the next, and answers in the same order once the manager took or refused each.
// It does not wait for any job: its end comes by Drain, possibly before Enqueue
// returns. An Err of class Timeout means that the job may have been queued.
func (m *Manager) Enqueue(ctx context.Context, requests []unit.JobRequest) []unit.Queued {
	out := make([]unit.Queued, len(requests))
	calls := make([]call, 0, len(requests))
	at := make([]int, 0, len(requests)) // the request of each call
	for i, r := range requests {
		out[i].Request = r
		method, ok := methods[r.Type]
		if !ok {
			out[i].Err = fault.New(fault.Invalid, string(r.Type), string(r.Name), fmt.Errorf("%q is not a type of job", r.Type))
			continue
		}
		calls, at = append(calls, onManager(method, string(r.Name), r.Mode())), append(at, i)
	}
	if len(calls) == 0 {
		return out
	}
	l, err := m.using(ctx, "queue jobs")
	if err != nil {
		for _, i := range at {
			out[i].Err = err
		}
		return out
	}
	for c, r := range l.do(ctx, calls) {
		q := &out[at[c]]
		if r.err != nil {
			q.Err = acting(string(q.Request.Type), string(q.Request.Name), r.err)
			continue
		}
		q.ID, q.Err = jobOf(calls[c].member, r.body)
	}
	return out
}

// jobOf reads the job's id off its bus path.
func jobOf(method string, body []any) (uint32, error) {
	var path dbus.ObjectPath
	if err := dbus.Store(body, &path); err != nil {
		return 0, strange(method, err)
	}
	id, err := strconv.ParseUint(strings.TrimPrefix(string(path), "/org/freedesktop/systemd1/job/"), 10, 32)
	if err != nil {
		return 0, strange(method, err)
	}
	return uint32(id), nil
}

// Reload makes the manager read all its unit files anew, waits until it has
// done so, at most Options.ReloadTimeout, and says how long that took. Drain
// reports All for it.
func (m *Manager) Reload(ctx context.Context) (time.Duration, error) {
	l, err := m.using(ctx, "reload")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.opts.ReloadTimeout)
	defer cancel()
	l.reloads.Add(1)
	defer l.reloads.Add(-1)
	began := time.Now()
	r := l.one(ctx, onManager("Reload"))
	return time.Since(began), acting("reload", string(m.opts.Scope), r.err)
}

// ResetFailed lets each unit's failed state and start counter be forgotten, and
// answers in the order of names: nil where it was done.
func (m *Manager) ResetFailed(ctx context.Context, names []unit.Name) []error {
	errs := make([]error, len(names))
	if len(names) == 0 {
		return errs
	}
	l, err := m.using(ctx, "reset-failed")
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	calls := make([]call, len(names))
	for i, n := range names {
		calls[i] = onManager("ResetFailedUnit", string(n))
	}
	for i, r := range l.do(ctx, calls) {
		errs[i] = acting("reset-failed", string(names[i]), r.err)
	}
	return errs
}
