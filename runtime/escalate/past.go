package escalate

import (
	"slices"
	"time"
)

const (
	// maxPast is how many calls are kept whose end somebody was told: who was told may
	// have died with it, and the call is then asked again.
	maxPast = 2048
	// onItsWay is how long a call that is asked again may have been on its way, by
	// which it seems to be younger than it is.
	onItsWay = time.Minute
)

// past are calls whose end somebody was told, the newest. It is guarded by the
// book.
type past struct {
	calls map[string]*entry
	order []string // ids, the oldest first
	// forgot is the end of the time of which not all is known: what was first asked
	// in it, and is not known, may have been done.
	forgot time.Time
}

func (p *past) add(e *entry) {
	e.Told = true
	if p.calls[e.ID] == nil {
		p.order = append(p.order, e.ID)
	}
	p.calls[e.ID] = e
	for len(p.order) > maxPast {
		p.forget(p.calls[p.order[0]].Began.Add(onItsWay))
		delete(p.calls, p.order[0])
		p.order = p.order[1:]
	}
}

func (p *past) forget(until time.Time) {
	if until.After(p.forgot) {
		p.forgot = until
	}
}

// forgotten reports whether a call that is not known, and was first asked at that
// time, may have been one that was forgotten.
func (b *book) forgotten(asked time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return asked.Before(b.past.forgot)
}

// about are the acts that were begun of a call of the runtime's, by unit.
func (b *book) about(call string) []Begun {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Begun
	for _, calls := range []map[string]*entry{b.calls, b.past.calls} {
		for _, e := range calls {
			if e.Call == call && len(all) < maxCalls {
				all = append(all, Begun{e.Act, e.Unit, e.scope(), e.Said})
			}
		}
	}
	slices.SortFunc(all, compareBegun)
	return all
}
