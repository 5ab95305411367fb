package reconcile

import (
	"stead/host/plan"
	"stead/host/report"
)

// gate says what stands between the loop and its manager.
type gate interface {
	Obstacle() *report.Obstacle // nil when nothing does
	Changed() <-chan struct{}   // has a token when the answer may be another one; for one receiver
}

// open is the gate of a loop that nothing is in the way of.
type open struct{}

func (open) Obstacle() *report.Obstacle { return nil }
func (open) Changed() <-chan struct{}   { return nil }

// barred reports whether there is an obstacle. While one stands nothing is looked
// at and nothing is done, and every declaration is reported with it; when it goes
// everything is looked at.
func (l *Loop) barred() bool {
	now := l.o.Gate.Obstacle()
	if now == nil {
		if l.obstacle != nil {
			l.obstacle, l.unreach = nil, 0
			l.all()
			l.o.Logger.Info("obstacle is gone", "scope", l.o.Scope)
		}
		return false
	}
	news := l.obstacle == nil || *l.obstacle != *now
	if news {
		l.o.Logger.Debug("obstacle", "scope", l.o.Scope, "outcome", now.Outcome, "reason", now.Reason, "text", now.Text)
	}
	l.obstacle = now
	if l.bar(l.anyOf(func(m *managed) bool { return news || !m.barred })) || news {
		l.publish()
	}
	return true
}

// anyOf are the units that is holds for.
func (l *Loop) anyOf(is func(*managed) bool) []*managed {
	var some []*managed
	for _, m := range l.units {
		if is(m) {
			some = append(some, m)
		}
	}
	return some
}

// bar reports the obstacle of units, and whether there were any. They are looked at
// when it goes.
func (l *Loop) bar(units []*managed) bool {
	for _, m := range units {
		if m.isLeft() {
			continue
		}
		o := l.obstacle
		m.barred, m.trials = true, nil
		m.plan = plan.Decision{Outcome: o.Outcome, Reason: o.Reason, Text: o.Text, Hint: o.Hint}
		l.report(m)
	}
	return len(units) > 0
}

// life ends what was owed to a manager that runs no more, and what was seen of its
// units: a new one has read everything anew.
func (l *Loop) life() {
	boot := l.o.Clock().Boot
	if l.boot == boot {
		return
	}
	first := l.boot == ""
	l.boot = boot
	if first {
		return
	}
	l.memory.OwesReload, l.reloads = false, reloads{}
	for _, m := range l.units {
		m.owes, m.track = "", plan.Track{}
	}
}
