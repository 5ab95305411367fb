package systemdtest

import (
	"context"
	"slices"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// Observe is systemd.Manager's.
func (f *Fake) Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error) {
	if len(names) == 0 {
		return nil, nil
	}
	_, after, err := f.enter(ctx, "Observe")
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]unit.Status, len(names))
	for i, n := range names {
		out[i] = f.status(n)
	}
	f.collect()
	if err := after(nil); err != nil {
		return nil, err
	}
	return out, nil
}

func (f *Fake) status(n unit.Name) unit.Status {
	s := unit.Status{Asked: n, ID: n, Active: unit.Inactive}
	if _, err := unit.ParseName(string(n)); err != nil {
		s.Load, s.Trouble.LoadError = unit.LoadFailed, err.Error()
		return s
	}
	if n.IsTemplate() {
		s.Load = f.read(n).load
		return s
	}
	if n == "multi-user.target" && f.find(n) == "" { // a machine has reached it
		s.Load, s.Active, s.Sub = unit.Loaded, unit.Active, "active"
		return s
	}
	u := f.load(n)
	s = unit.Status{
		Asked: n, ID: u.name, Load: u.def.load, Active: u.active, Sub: u.sub,
		Fragment: u.def.fragment, DropIns: slices.Clone(u.def.dropIns), CanReload: u.def.reloads() && f.keeps(u),
		Invocation: u.invocation, Started: u.started, Changed: u.changed, Restarts: u.restarts, MainPID: u.pid,
	}
	if u.job != nil {
		s.Job = unit.Job{ID: u.job.id, Type: u.job.kind}
	}
	s.Trouble = f.trouble(u)
	return s
}

func (f *Fake) trouble(u *loaded) unit.Trouble {
	var t unit.Trouble
	if u.def.load != unit.Loaded {
		t.LoadError = u.def.words
	}
	if u.active.Up() || u.def.load == unit.NotFound && u.active.Down() {
		return t
	}
	if hasResult(u.name) {
		t.Result = u.result
	}
	if u.name.Type() == "service" {
		t.ExitCode, t.ExitStatus = u.last.code, u.last.status
	}
	t.Unmet = slices.Clone(u.unmet)
	t.Triggers = f.triggersOf(u.name)
	return t
}

func hasResult(n unit.Name) bool {
	return slices.Contains([]string{"service", "socket", "mount", "automount", "swap", "timer", "path", "scope"}, n.Type())
}

// Enqueue is systemd.Manager's.
func (f *Fake) Enqueue(ctx context.Context, requests []unit.JobRequest) []unit.Queued {
	out := make([]unit.Queued, len(requests))
	for i, r := range requests {
		out[i].Request = r
	}
	if len(requests) == 0 {
		return out
	}
	v, after, err := f.enter(ctx, "Enqueue")
	for i, r := range requests {
		if err != nil {
			out[i].Err = err
			continue
		}
		afterOne, errOne := v.suffer(r.Name)
		if errOne != nil {
			out[i].Err = errOne
			continue
		}
		f.mu.Lock()
		out[i] = f.enqueue(r)
		if out[i].Err == nil {
			f.log = append(f.log, string(r.Type)+" "+string(r.Name))
		}
		f.mu.Unlock()
		if out[i].Err = after(afterOne(out[i].Err)); out[i].Err != nil {
			out[i].ID = 0
		}
	}
	return out
}

// Reload is systemd.Manager's.
func (f *Fake) Reload(ctx context.Context) (time.Duration, error) {
	_, after, err := f.enter(ctx, "Reload")
	if err != nil {
		return 0, err
	}
	began := time.Now()
	time.Sleep(f.opts.ReloadTook)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, "reload")
	f.reload(began)
	return time.Since(began), after(nil)
}

// reload loads all definitions anew; it began then.
func (f *Fake) reload(began time.Time) {
	clear(f.starts)
	clear(f.skipped)
	for _, u := range f.units {
		u.def, u.reloaded = f.read(u.name), 0 // the manager forgets that
	}
	f.rename()
	f.pin()
	f.collect()
	if f.link != nil {
		f.pending.Reloaded = began
		f.tellAll()
	}
}

// Reloads is systemd.Manager's.
func (f *Fake) Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error) {
	_, after, err := f.enter(ctx, "Reloads")
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]time.Duration, len(names))
	for i, n := range names {
		if u := f.units[f.names[n]]; u != nil {
			out[i] = u.reloaded
		}
	}
	if err := after(nil); err != nil {
		return nil, err
	}
	return out, nil
}

// ResetFailed is systemd.Manager's.
func (f *Fake) ResetFailed(ctx context.Context, names []unit.Name) []error {
	errs := make([]error, len(names))
	if len(names) == 0 {
		return errs
	}
	v, after, err := f.enter(ctx, "ResetFailed")
	for i, n := range names {
		if errs[i] = err; err != nil {
			continue
		}
		afterOne, errOne := v.suffer(n)
		if errs[i] = errOne; errOne == nil {
			errs[i] = after(afterOne(f.resetFailed(n)))
		}
	}
	return errs
}

func (f *Fake) resetFailed(n unit.Name) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.units[f.names[n]]
	if u == nil {
		return fault.New(fault.NotFound, "reset-failed", string(n), says("Unit %s not loaded.", n))
	}
	f.log = append(f.log, "reset-failed "+string(n))
	delete(f.starts, u.name)
	if u.active == unit.FailedState {
		u.result, u.restarts = "success", 0
		f.set(u, unit.Inactive, "dead")
		f.collect()
	}
	return nil
}

// UnitPath is systemd.Manager's.
func (f *Fake) UnitPath(ctx context.Context) ([]string, error) {
	_, after, err := f.enter(ctx, "UnitPath")
	if err != nil {
		return nil, err
	}
	return slices.Clone(f.opts.Dirs), after(nil)
}

// Version is systemd.Manager's.
func (f *Fake) Version(ctx context.Context) (string, error) {
	_, after, err := f.enter(ctx, "Version")
	if err != nil {
		return "", err
	}
	return "252 (fake)", after(nil)
}
