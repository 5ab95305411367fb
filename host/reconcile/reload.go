package reconcile

import (
	"context"
	"strings"
	"time"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/unit"
)

// reloads spaces the manager's reloads: with many running units one takes a
// second in which the manager does nothing else.
type reloads struct {
	ended time.Time
	took  time.Duration
	fails int
}

const (
	// reloadShare is how many times its own length a reload keeps the next away.
	reloadShare = 10
	mostApart   = 10 * time.Second // in user scope
	// longReload is what a reload may take before it is said that it is waited for.
	longReload = 3 * time.Second
	// forkHold is how long a forking unit with a PID file may hold a reload up; a
	// reload in that time makes systemd lose the file.
	forkHold = 5 * time.Second
	// gatherBound is how long units that are given back wait for others to stop
	// before the reload that they share, and gatherStep how often they look.
	gatherBound = 2 * time.Second
	gatherStep  = 100 * time.Millisecond
)

// reload reloads the manager once for all units that wait for it, those of
// earlier batches too, and returns them; none when no reload is wanted or
// possible now. A reload that is owed and not possible is asked for again by the
// units' next look.
func (l *Loop) reload(ctx context.Context, batch []*managed) []*managed {
	var waiting []*managed
	for _, m := range batch {
		for _, s := range m.plan.Steps {
			if s.Action == plan.Reload {
				waiting = append(waiting, m)
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	now := l.now()
	if l.gathering(batch, waiting, now) {
		for _, m := range waiting {
			m.again = now.Add(gatherStep)
		}
		return nil
	}
	if at := l.reloadAt(now); now.Before(at) {
		for _, m := range waiting {
			m.plan.Outcome, m.plan.Reason, m.plan.Text = report.Waiting, report.OwedReload, "the manager reloads again at "+at.Format("15:04:05.0")
			m.again = at
		}
		return nil
	}
	took, err := l.reloading(ctx, batch)
	now = l.now()
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		l.reloads.fails++
		again := now.Add(min(5*time.Second<<min(l.reloads.fails-1, 6), 5*time.Minute))
		l.o.Logger.Warn("reload", "scope", l.o.Scope, "error", err, "retry", again.Sub(now))
		for _, m := range waiting {
			m.trials = append(m.trials, err)
			l.step(m, plan.Step{Action: plan.Reload, Reason: reasonOf(m)}, took, err)
			m.again = again
		}
		return nil
	}
	l.reloads = reloads{ended: now, took: took}
	l.memory.OwesReload = false
	for _, m := range waiting {
		m.owes = ""
	}
	for _, m := range l.units {
		if m.owes != "" {
			waiting, m.owes = append(waiting, m), ""
		}
	}
	for _, m := range waiting {
		l.step(m, plan.Step{Action: plan.Reload, Reason: reasonOf(m)}, took, nil)
	}
	return waiting
}

// heardReload takes in that somebody's reload has ended: it pays for what was written
// before it began.
func (l *Loop) heardReload(began time.Time) {
	if began.IsZero() {
		return
	}
	owed := false
	for _, m := range l.units {
		if m.owes != "" && m.owed.Before(began) {
			m.owes, m.reread, m.dirty = "", true, true
		}
		owed = owed || m.owes != ""
	}
	l.memory.OwesReload = l.memory.OwesReload && owed
}

// reloading reloads the manager. One that takes long over it must not have old
// reports stand the while: what was found before is said.
func (l *Loop) reloading(ctx context.Context, batch []*managed) (time.Duration, error) {
	type ended struct {
		took time.Duration
		err  error
	}
	done := make(chan ended, 1)
	go func() {
		took, err := l.o.Manager.Reload(ctx)
		done <- ended{took, err}
	}()
	long := time.NewTimer(longReload)
	defer long.Stop()
	select {
	case e := <-done:
		return e.took, e.err
	case <-long.C:
	}
	for _, m := range batch {
		l.report(m)
	}
	l.publish()
	e := <-done
	return e.took, e.err
}

// gathering reports whether a reload that only units being given back wait for
// can do with waiting a moment: others of them are about to stop, and then one
// reload serves all.
func (l *Loop) gathering(batch, waiting []*managed, now time.Time) bool {
	for _, m := range waiting {
		if m.decl != nil {
			return false
		}
	}
	for _, m := range batch {
		for _, s := range m.plan.Steps {
			if m.decl == nil && s.Action == plan.Stop {
				return true
			}
		}
	}
	for _, m := range l.units {
		if j := m.track.Job; m.decl == nil && j.ID != 0 && j.Type == unit.StopJob && now.Sub(j.At) < gatherBound {
			return true
		}
	}
	return false
}

func reasonOf(m *managed) string {
	for _, s := range m.plan.Steps {
		if s.Action == plan.Reload {
			return s.Reason
		}
	}
	return "its files changed"
}

// reloadAt is when the next reload may begin.
func (l *Loop) reloadAt(now time.Time) time.Time {
	at := now
	if !l.reloads.ended.IsZero() {
		apart := reloadShare * l.reloads.took
		if l.o.Scope == unit.User { // how long it takes is in the account's hands, and burdens nobody else
			apart = min(apart, mostApart)
		}
		at = l.reloads.ended.Add(apart)
	}
	for _, m := range l.units {
		if m.forking() && now.Sub(m.track.Job.At) < forkHold {
			if t := m.track.Job.At.Add(forkHold); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// forking reports whether a start of ours is in flight that a reload would
// harm.
func (m *managed) forking() bool {
	j := m.track.Job
	return j.ID != 0 && j.Type != unit.StopJob && j.Type != unit.ReloadJob && strings.EqualFold(m.disk.Text.Type, "forking") && m.disk.Text.PIDFile != ""
}
