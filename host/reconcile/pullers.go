package reconcile

import (
	"context"
	"maps"
	"slices"
	"time"

	"stead/host/unit"
)

// pullersFor is how long what is known of the units that others are enabled for
// does for a warning.
const pullersFor = time.Minute

// lookPullers looks at the units that others are enabled for, all at once: when one
// of those of the batch was not looked at yet, or not lately.
func (l *Loop) lookPullers(ctx context.Context, batch []*managed) error {
	wanted, fresh := false, l.now().Sub(l.pulledAt) < pullersFor
	for _, m := range batch {
		if !m.same {
			m.pulledBy = nil
			if m.decl != nil && m.decl.Service.Enabled != nil && *m.decl.Service.Enabled {
				m.pulledBy = m.disk.Pullers()
			}
		}
		for _, n := range m.pulledBy {
			_, known := l.pullers[n]
			wanted, fresh = true, fresh && known
		}
	}
	if wanted && !fresh {
		if err := l.observePullers(ctx); err != nil {
			return err
		}
	}
	for _, m := range batch {
		for _, n := range m.pulledBy {
			m.same = m.same && l.pullers[n].Active == m.pullers[n].Active && l.pullers[n].Load == m.pullers[n].Load
		}
		m.pullers = l.pullers
	}
	return nil
}

func (l *Loop) observePullers(ctx context.Context) error {
	need := make(map[unit.Name]bool)
	for _, m := range l.units {
		for _, n := range m.pulledBy {
			need[n] = true
		}
	}
	names := slices.Sorted(maps.Keys(need))
	all, err := l.o.Manager.Observe(ctx, names)
	if err != nil {
		return err
	}
	l.pullers = make(map[unit.Name]unit.Status, len(names)) // others may look at the old one
	for i, n := range names {
		l.pullers[n] = all[i]
	}
	l.pulledAt = l.now()
	return nil
}
