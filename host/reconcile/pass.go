package reconcile

import (
	"context"
	"slices"
	"time"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// crowd is how many units a pass may have whose steps are logged one by one.
const crowd = 50

// pass brings a batch of units nearer to what is declared.
func (l *Loop) pass(ctx context.Context, batch []*managed) {
	start := l.now()
	if !l.look(ctx, batch, false) {
		return
	}
	batch = l.news(batch)
	l.crowd = len(batch) > crowd
	l.decide(batch)
	wrote, done, err := l.write(ctx, batch)
	if err != nil {
		l.stall(batch, report.DiskError, err)
		return
	}
	again := l.reload(ctx, batch)
	if len(again) > 0 {
		l.o.Point("reloaded")
		if !l.look(ctx, again, true) {
			return
		}
		l.decide(again)
		batch = join(batch, again)
		for _, m := range again {
			m.dirty = m.dirty || slices.ContainsFunc(m.plan.Steps, plan.Step.OnDisk) // changed since it was written
		}
	}
	if more := l.touched(done, again); len(more) > 0 {
		if !l.look(ctx, more, false) {
			return
		}
		l.decide(more)
		batch = join(batch, more)
	}
	jobs, err := l.act(ctx, batch)
	if err != nil {
		l.stall(batch, report.DiskError, err)
		return
	}
	if ctx.Err() != nil {
		return // what an ending host could not do any more is no failure
	}
	if l.conclude(batch) {
		l.unreach = 0
	}
	l.watch()
	l.space()
	if wrote+jobs > 0 {
		l.o.Logger.Info("pass", "scope", l.o.Scope, "units", len(batch), "writes", wrote, "jobs", jobs,
			"took", l.now().Sub(start).Round(time.Microsecond))
	}
}

// join adds to a batch the units that it lacks.
func join(batch, more []*managed) []*managed {
	in := make(map[*managed]bool, len(batch))
	for _, m := range batch {
		in[m] = true
	}
	for _, m := range more {
		if !in[m] {
			m.dirty, m.again = false, time.Time{}
			batch = append(batch, m)
		}
	}
	return batch
}

// look observes a batch in bulk, the manager first, then the disk. After a
// reload of ours the manager is known to have read what is on disk.
func (l *Loop) look(ctx context.Context, batch []*managed, reloaded bool) bool {
	statuses, err := l.observe(ctx, unitsIn(batch))
	if err == nil {
		l.drainJobs(batch)
		err = l.lookDisk(ctx, batch, statusesOf(batch, statuses))
	}
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		l.stall(batch, report.Unreachable, err)
		return false
	}
	if err := l.lookPullers(ctx, batch); err != nil {
		l.stall(batch, report.Unreachable, err)
		return false
	}
	l.own(batch)
	l.rivals(batch)
	c := l.o.Clock()
	for _, m := range batch {
		m.looked = c.Wall
		read := reloaded || m.reread
		m.reread = false
		if m.same = m.same && !read && m.owner.Name == ""; m.same {
			continue
		}
		if read {
			m.track = m.track.Reloaded(m.disk)
		}
		m.track = m.track.See(m.input(c))
	}
	l.unsure(ctx, batch, c)
	for _, m := range batch {
		if m.same {
			continue
		}
		if mem, changed := plan.Remember(m.input(c)); changed {
			m.mem, m.unsaved = mem, true
		}
		m.track = m.track.Remembered()
	}
	return true
}

// observe asks the manager about units; without any it is not asked.
func (l *Loop) observe(ctx context.Context, names []unit.Name) ([]unit.Status, error) {
	if len(names) == 0 {
		return nil, nil
	}
	return l.o.Manager.Observe(ctx, names)
}

// unsure asks when units last reloaded of which nobody knows whether they did what
// they were asked to. Without an answer they are asked to again.
func (l *Loop) unsure(ctx context.Context, batch []*managed, c plan.Clock) {
	var some []*managed
	var names []unit.Name
	for _, m := range batch {
		if m.reload = 0; !m.same && plan.Unsure(m.input(c)) {
			some, names = append(some, m), append(names, m.status.ID)
		}
	}
	if len(some) == 0 {
		return
	}
	last, err := l.o.Manager.Reloads(ctx, names)
	if err != nil {
		l.o.Logger.Debug("last reloads", "scope", l.o.Scope, "error", err)
		return
	}
	for i, m := range some {
		m.reload = last[i]
	}
}

// drainJobs takes in what happened up to the look, so that a job that ended
// before it is known to have ended. The units of the batch are being looked at
// and need not be looked at again for it.
func (l *Loop) drainJobs(batch []*managed) {
	ch := l.o.Manager.Drain()
	l.heardReload(ch.Reloaded)
	in := make(map[*managed]bool, len(batch))
	for _, m := range batch {
		in[m] = true
	}
	now := l.now()
	for _, e := range ch.Jobs {
		for _, m := range l.ids[e.Unit] {
			m.track, m.dirty = m.track.Ended(e, now), true
		}
	}
	for _, id := range ch.Units {
		for _, m := range l.ids[id] {
			m.dirty = true
		}
	}
	if ch.All {
		for _, m := range l.units {
			m.dirty = m.dirty || !in[m]
		}
	}
}

func (l *Loop) lookDisk(ctx context.Context, batch []*managed, statuses []unit.Status) error {
	queries := make([]plan.Query, len(batch))
	for i, m := range batch {
		queries[i] = plan.Query{Unit: m.name, Status: statuses[i], Memory: m.mem}
		if m.decl != nil {
			queries[i].Service, queries[i].Files = m.decl.Service, l.files(m.decl.Service)
		}
	}
	disks, err := l.o.Disk.Look(ctx, queries)
	if err != nil {
		return err
	}
	l.share(batch, disks)
	for i, m := range batch {
		oldID := m.status.ID
		m.identify(&statuses[i], disks[i])
		m.same = m.seen(statuses[i], disks[i])
		l.index(m, oldID)
	}
	return nil
}

// stall reports that the batch could not be looked at, or not recorded, and
// tries again with growing delay. Nothing was done that the ledger does not know
// of.
func (l *Loop) stall(batch []*managed, why report.Reason, err error) {
	if why == report.Unreachable && l.barred() {
		return
	}
	l.unreach++
	wait := min(time.Duration(l.unreach)*time.Second, 30*time.Second)
	l.o.Logger.Warn("pass given up", "scope", l.o.Scope, "units", len(batch), "error", err, "retry", wait)
	outcome := report.Failed
	if why == report.Unreachable && fault.ClassOf(err).Retry() {
		outcome = report.Waiting
	}
	now := l.now()
	for _, m := range batch {
		m.again, m.trials = now.Add(wait), nil
		m.plan = plan.Decision{Outcome: outcome, Reason: why, Text: err.Error(), Hint: fault.HintOf(err), Again: m.again}
		l.report(m)
	}
}

func (l *Loop) decide(batch []*managed) {
	c := l.o.Clock()
	for _, m := range batch {
		m.trials = nil
		m.plan, m.decided = plan.Decide(m.input(c)), m.decl
	}
	l.apart(batch, c)
	l.conceal(batch)
	l.hold(batch, c)
}

// conclude takes each decision's outcome in and drops what is given back; it
// reports whether the ledger took that.
func (l *Loop) conclude(batch []*managed) bool {
	now := l.now()
	var done []*managed
	for _, m := range batch {
		if m.plan.Done {
			done = append(done, m)
			continue
		}
		m.track = m.track.Judged(m.plan.Right, now)
		if !m.plan.Again.IsZero() && (m.again.IsZero() || m.plan.Again.Before(m.again)) {
			m.again = m.plan.Again
		}
		l.report(m)
	}
	return l.forget(done)
}

// forget ends the records of units that were given back.
func (l *Loop) forget(done []*managed) bool {
	if len(done) == 0 {
		return true
	}
	l.empty(done) // before they are forgotten: the next host goes on from there
	mem := l.memory
	rec := plan.Record{Scope: l.o.Scope, Manager: &mem}
	for _, m := range done {
		rec.Delete = append(rec.Delete, m.name)
	}
	if err := l.o.Ledger.Record(rec); err != nil {
		l.stall(done, report.DiskError, err)
		return false
	}
	l.saved = mem
	l.saved.Made = slices.Clone(mem.Made)
	for _, m := range done {
		l.o.Logger.Info("given back", "scope", l.o.Scope, "unit", m.name, "declaration", m.mem.Name)
		l.o.GivenBack(&report.Report{Name: m.mem.Name, UID: m.mem.UID, Generation: m.mem.Generation, Scope: l.o.Scope, Unit: m.name,
			Since: l.now(), Steps: m.steps})
	}
	l.drop(done)
	return true
}

// space keeps passes apart while many jobs run, since every job's end makes its
// unit dirty; a few jobs, such as those that undo a drift, are followed at once.
func (l *Loop) space() {
	if flying := l.flying(); flying > 20 {
		l.passAt = l.now().Add(min(2*time.Duration(flying)*time.Millisecond, 750*time.Millisecond))
	}
}

// flying counts jobs of ours that are in the manager's queue.
func (l *Loop) flying() int {
	n := 0
	for _, m := range l.units {
		if m.track.Job.ID != 0 {
			n++
		}
	}
	return n
}

// save makes the memory of a batch durable, together with what rec holds.
func (l *Loop) save(batch []*managed, rec plan.Record) error {
	rec.Scope = l.o.Scope
	for _, m := range batch {
		if m.unsaved {
			rec.Put = append(rec.Put, m.mem)
		}
	}
	if rec.Empty() {
		return nil
	}
	slices.SortFunc(rec.Put, func(a, b plan.Memory) int {
		if a.Unit < b.Unit {
			return -1
		}
		return 1
	})
	if err := l.o.Ledger.Record(rec); err != nil {
		return err
	}
	for _, m := range batch {
		m.unsaved = false
	}
	if rec.Manager != nil {
		l.saved = *rec.Manager
		l.saved.Made = slices.Clone(l.saved.Made)
	}
	return nil
}
