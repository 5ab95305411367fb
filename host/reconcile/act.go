package reconcile

import (
	"context"
	"slices"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// act queues all jobs of a batch in one go and returns how many were queued.
// What a job depends on is durable before: how the unit was before the first
// one, and which definition is loaded.
func (l *Loop) act(ctx context.Context, batch []*managed) (int, error) {
	var failed []unit.Name
	var jobs []unit.JobRequest
	var whose []work
	for _, m := range batch {
		for _, s := range m.plan.Steps {
			if s.Action == plan.ResetFailed {
				failed = append(failed, s.Unit)
				l.step(m, s, 0, nil)
				continue
			}
			j, ok := s.Job()
			if !ok {
				continue
			}
			if m.mem.Activity == "" {
				m.mem.Activity, m.unsaved = rest(m.status), true
			}
			jobs, whose = append(jobs, j), append(whose, work{m, s})
		}
	}
	l.settleMemory(batch)
	rec := plan.Record{}
	if l.memory.OwesReload != l.saved.OwesReload || !slices.Equal(l.memory.Made, l.saved.Made) {
		mem := l.memory
		rec.Manager = &mem
	}
	if err := l.save(batch, rec); err != nil {
		return 0, err
	}
	if len(failed) > 0 {
		for i, err := range l.o.Manager.ResetFailed(ctx, failed) {
			if err != nil {
				l.o.Logger.Debug("reset-failed", "scope", l.o.Scope, "unit", failed[i], "error", err)
			}
		}
	}
	if len(jobs) == 0 {
		return 0, nil
	}
	l.o.Point("remembered")
	for i, q := range l.o.Manager.Enqueue(ctx, jobs) {
		l.queued(whose[i], q)
	}
	l.o.Point("queued")
	return len(jobs), nil
}

// rest is the state that a unit is given back in.
func rest(st unit.Status) unit.ActiveState {
	switch {
	case st.Active.Up(), st.Active == unit.Activating:
		return unit.Active
	case st.Active == unit.FailedState:
		return unit.FailedState
	}
	return unit.Inactive
}

func (l *Loop) queued(w work, q unit.Queued) {
	now := l.now()
	l.step(w.m, w.step, 0, q.Err)
	if q.Err != nil {
		w.m.trials = append(w.m.trials, q.Err)
		w.m.track = w.m.track.Rejected(now)
		w.m.again = w.m.track.NotBefore
		if fault.Is(q.Err, fault.Timeout) {
			w.m.dirty = true // it may have been queued: look
		}
		return
	}
	w.m.track = w.m.track.Queued(plan.Job{ID: q.ID, Type: q.Request.Type, Digest: w.m.disk.Loaded, At: now})
}

// settleMemory forgets paths that are as they were found and are not wanted.
func (l *Loop) settleMemory(batch []*managed) {
	c := l.o.Clock()
	for _, m := range batch {
		if m.decl == nil || m.stale {
			continue
		}
		if mem, changed := plan.Forget(m.input(l, c)); changed {
			m.mem, m.unsaved = mem, true
		}
	}
}

// failure states in the report what the disk or the manager answered.
func (m *managed) failure() {
	if len(m.trials) == 0 {
		return
	}
	err := m.trials[0]
	reason := report.CallError
	for _, s := range m.steps {
		if s.Error == err.Error() && plan.Step.OnDisk(plan.Step{Action: plan.Action(s.Action)}) {
			reason = report.DiskError
		}
	}
	m.plan.Outcome, m.plan.Reason, m.plan.Text = report.Failed, reason, err.Error()
	if fault.Is(err, fault.Refused) {
		m.plan.Outcome = report.Refused
	}
}
