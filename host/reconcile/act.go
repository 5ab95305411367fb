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
	batch, whose := l.freed(ctx, batch)
	for _, m := range batch {
		for _, s := range m.plan.Steps {
			if s.Action == plan.ResetFailed {
				failed = append(failed, s.Unit)
				l.step(m, s, 0, nil)
				continue
			}
			if _, is := s.Job(); !is {
				continue
			}
			if m.mem.Activity == "" {
				m.mem.Activity, m.unsaved = plan.Rest(m.status), true
			}
			if mem, changed := plan.Intend(m.input(l.o.Clock()), s); changed {
				m.mem, m.unsaved = mem, true
			}
			whose = append(whose, work{m: m, step: s})
		}
	}
	asQueued(whose)
	jobs := make([]unit.JobRequest, len(whose))
	for i, w := range whose {
		jobs[i], _ = w.step.Job()
	}
	rec := plan.Record{Blobs: make(map[string][]byte)}
	before := l.settleMemory(batch, rec.Blobs)
	if l.memory.OwesReload != l.saved.OwesReload || !slices.Equal(l.memory.Made, l.saved.Made) {
		mem := l.memory
		rec.Manager = &mem
	}
	if err := l.save(batch, rec); err != nil {
		for m, mem := range before {
			m.mem = mem // its bytes are not in the ledger
		}
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

func (l *Loop) queued(w work, q unit.Queued) {
	now := l.now()
	l.step(w.m, w.step, 0, q.Err)
	if w.step.Unit != w.m.name {
		return // of a unit that nobody declares; what comes of it shows in the own job
	}
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

// settleMemory takes over the units of which nothing had to be written, and
// forgets paths that are as they were found and are not wanted: what comes to
// stand there later is somebody else's. It returns the memories that need blobs
// as they were before.
func (l *Loop) settleMemory(batch []*managed, blobs map[string][]byte) map[*managed]plan.Memory {
	before := make(map[*managed]plan.Memory)
	for _, m := range batch {
		if m.stale {
			continue
		}
		before[m] = m.mem
		if m.decl != nil {
			l.adopt(m, blobs)
		}
		if mem, changed := plan.Forget(m.input(l.o.Clock())); changed {
			m.mem, m.unsaved = mem, true
		}
	}
	return before
}

// adopt notes how a unit was found. That is durable before anything is done to
// it: what is written now a boot may act upon. It adds to blobs what the ledger
// needs for that.
func (l *Loop) adopt(m *managed, blobs map[string][]byte) {
	mem, fresh, changed := plan.Adopt(m.input(l.o.Clock()))
	if !changed {
		return
	}
	m.mem, m.unsaved = mem, true
	for _, w := range fresh {
		l.owners[w.Path], l.watched = m, true
		if w.Entry.Kind == plan.File {
			blobs[w.Entry.Digest] = w.Content
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
	m.plan.Outcome, m.plan.Reason, m.plan.Text, m.plan.Hint = report.Failed, reason, err.Error(), fault.HintOf(err)
	if fault.Is(err, fault.Refused) {
		m.plan.Outcome = report.Refused
	}
}
