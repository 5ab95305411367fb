package reconcile

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
)

// A dry run is a copy of the loop that works on an imagined machine: the same
// code accepts, looks, decides, orders and numbers the steps, so what it says
// cannot drift from what is done. The copy is made between two turns; the rest
// happens in the goroutine of whoever asks, and repairs go on beside it.

// maxTurns bounds the turns of a dry run. Writing, stopping, reloading and
// starting take six; each owner that has to go first adds as many.
const maxTurns = 40

// Plan says what would be done if these declarations were in force besides what
// is, in the place of those of their names, and those of the names withdrawn. It
// looks at the machine anew, does nothing, and records nothing. It supposes that
// systemd loads what is declared, that jobs do what they are asked to, and that
// nobody else does anything meanwhile; a job that is on its way already is told
// as what is waited for.
//
// The answer has one preview of each declaration, in order, each followed by one
// of every unit that its declaration gives up; then those of the withdrawn names,
// then those of others that would be touched, by name. While an obstacle stands it
// is what each says, without steps. Errors: Unavailable when
// the loop has taken no set over yet or the manager is out of reach, and ctx's.
func (l *Loop) Plan(ctx context.Context, declared []Declared, withdrawn []string) ([]plan.Preview, error) {
	s, err := l.ask(ctx)
	if err != nil {
		return nil, err
	}
	if !s.begun {
		return nil, fault.New(fault.Unavailable, "plan", string(l.o.Scope)+" scope", errors.New("nothing was declared yet"))
	}
	d := &dry{Loop: s, machine: imagine(l.o), about: make(map[string]bool), steps: make(map[*managed][]plan.Foreseen)}
	d.o.Manager, d.o.Disk, d.o.Ledger, d.o.Clock, d.heard = d.machine, d.machine, d.machine, d.machine.clock, d.hear
	d.machine.took = max(d.machine.took, d.reloads.took) // it keeps the next one off for as long
	for _, n := range declared {
		d.about[n.Service.Name] = true
	}
	for _, n := range withdrawn {
		d.about[n] = true
	}
	d.Loop.asked = d.about
	d.wasOf, d.secret = d.unitsOf(), make(map[*managed]bool)
	for _, m := range d.units {
		d.secret[m] = m.mem.Sensitive
	}
	d.accept(d.set(declared))
	if d.obstacle != nil {
		d.bar(d.anyOf(func(m *managed) bool { return d.about[m.mem.Name] }))
	} else if err := d.run(ctx); err != nil {
		return nil, err
	}
	return d.previews(declared, withdrawn), nil
}

// ask gets a copy of the loop from its goroutine.
func (l *Loop) ask(ctx context.Context) (*Loop, error) {
	answer := make(chan *Loop, 1)
	select {
	case l.shadows <- answer:
		return <-answer, nil
	case <-ctx.Done():
		return nil, l.late(ctx.Err())
	}
}

// late is the error of a dry run whose asker waits no longer.
func (l *Loop) late(err error) error {
	class := fault.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		class = fault.Timeout
	}
	return fault.New(class, "plan", string(l.o.Scope)+" scope", err)
}

// shadow is a copy of the loop that shares nothing with it that either changes,
// and in which nothing is due.
func (l *Loop) shadow() *Loop {
	s := New(Options{Scope: l.o.Scope, ConfigDir: l.o.ConfigDir, Watcher: deaf{}, Clock: l.o.Clock, Logger: slog.New(slog.DiscardHandler)})
	s.memory, s.saved, s.begun, s.reloads, s.aside = l.memory, l.saved, l.begun, l.reloads, maps.Clone(l.aside)
	s.rests, s.asked = maps.Clone(l.rests), make(map[string]bool)
	s.places, s.others = l.places, l.others
	s.obstacle, s.boot, s.pullers, s.pulledAt = l.obstacle, l.boot, l.pullers, l.pulledAt
	s.memory.Made, s.saved.Made = slices.Clone(l.memory.Made), slices.Clone(l.saved.Made)
	twin := make(map[*managed]*managed, len(l.units))
	for name, m := range l.units {
		c := *m
		c.dirty, c.again, c.trials, c.kept, c.verified = false, time.Time{}, nil, nil, nil
		s.units[name], twin[m] = &c, &c
	}
	for p, m := range l.owners {
		s.owners[p] = twin[m]
	}
	for id, all := range l.ids {
		for _, m := range all {
			s.ids[id] = append(s.ids[id], twin[m])
		}
	}
	return s
}

// deaf is the watcher of a loop that is told nothing.
type deaf struct{}

func (deaf) Set([]string)            {}
func (deaf) Wake() <-chan struct{}   { return nil }
func (deaf) Drain() ([]string, bool) { return nil, false }

// dry is one dry run.
type dry struct {
	*Loop
	machine *imagined
	about   map[string]bool       // the names that were asked about
	wasOf   map[string][]*managed // name → the units that were its before
	steps   map[*managed][]plan.Foreseen
	secret  map[*managed]bool // of which what stands there is shown to nobody
}

// hear notes a step. One that does not succeed would not come about, and the
// outcome says why.
func (d *dry) hear(m *managed, s report.Step) {
	if s.Error != "" {
		return
	}
	f := plan.Foreseen{Action: plan.Action(s.Action), Object: s.Object, Reason: s.Reason}
	if (plan.Step{Action: f.Action}).OnDisk() {
		f.Diff = d.machine.diffs[s.Object]
		if d.secret[m] || m.mem.Sensitive {
			f.Diff = d.machine.concealed[s.Object]
		}
	}
	d.steps[m] = append(d.steps[m], f)
}

// unitsOf are the units of each declaration, sorted.
func (l *Loop) unitsOf() map[string][]*managed {
	all := make(map[string][]*managed)
	for _, name := range slices.Sorted(maps.Keys(l.units)) {
		m := l.units[name]
		all[m.mem.Name] = append(all[m.mem.Name], m)
	}
	return all
}

// set is what would be in force.
func (d *dry) set(declared []Declared) Set {
	next := Set{Declared: slices.Clone(declared), Files: d.others}
	for _, name := range slices.Sorted(maps.Keys(d.units)) {
		if m := d.units[name]; m.decl != nil && !d.about[m.mem.Name] {
			next.Declared = append(next.Declared, *m.decl)
		}
	}
	for name, a := range d.aside {
		switch {
		case d.about[name]:
		case a.decl != nil:
			next.Declared = append(next.Declared, *a.decl)
		default:
			next.Leave = append(next.Leave, a.Left)
		}
	}
	return next
}

// run turns until nothing more would happen.
func (d *dry) run(ctx context.Context) error {
	for _, m := range d.units {
		m.dirty = m.dirty || d.about[m.mem.Name] && !m.isLeft()
	}
	for range maxTurns {
		d.drain()
		batch := d.due(d.now())
		if len(batch) == 0 && d.skip() {
			batch = d.due(d.now())
		}
		if len(batch) == 0 {
			return nil
		}
		d.pass(ctx, batch)
		if err := ctx.Err(); err != nil {
			return d.late(err)
		}
		if d.machine.err != nil {
			return d.machine.err
		}
	}
	return nil
}

// skip lets the time pass for which a unit waits for nothing but the manager's
// next reload, and reports whether there was such a unit.
func (d *dry) skip() bool {
	var at time.Time
	for _, m := range d.units {
		waits := slices.ContainsFunc(m.plan.Steps, func(s plan.Step) bool { return s.Action == plan.Reload })
		if waits && !m.again.IsZero() && (at.IsZero() || m.again.Before(at)) {
			at = m.again
		}
	}
	if at.IsZero() {
		return false
	}
	d.machine.late += at.Sub(d.now())
	return true
}

// previews tells what came of it.
func (d *dry) previews(declared []Declared, withdrawn []string) []plan.Preview {
	var all []plan.Preview
	told := make(map[*managed]bool)
	add := func(m *managed, name string, besides bool) {
		told[m] = true
		all = append(all, d.preview(m, name, besides))
	}
	for i := range declared {
		n := &declared[i]
		m := d.units[n.Service.Object()]
		if m != nil && m.decl != nil && m.mem.Name == n.Service.Name {
			add(m, n.Service.Name, false)
		} else {
			all = append(all, d.refused(n))
		}
		for _, old := range d.wasOf[n.Service.Name] {
			if !told[old] && old.decl == nil {
				add(old, n.Service.Name, false)
			}
		}
	}
	for _, name := range withdrawn {
		units := d.wasOf[name]
		for _, m := range units {
			if !told[m] && m.decl == nil {
				add(m, name, false)
			}
		}
		if len(units) == 0 {
			all = append(all, plan.Preview{Name: name, Scope: d.o.Scope, Withdrawn: true, Text: "nothing of it is on this node"})
		}
	}
	var rest []*managed
	for m := range d.steps {
		if !told[m] {
			rest = append(rest, m)
		}
	}
	slices.SortFunc(rest, func(a, b *managed) int {
		return cmp.Or(cmp.Compare(a.mem.Name, b.mem.Name), cmp.Compare(a.name, b.name))
	})
	for _, m := range rest {
		add(m, m.mem.Name, true)
	}
	return all
}

// preview tells of one unit.
func (d *dry) preview(m *managed, name string, besides bool) plan.Preview {
	p := plan.Preview{Name: name, UID: m.mem.UID, Generation: m.mem.Generation, Scope: d.o.Scope, Unit: m.name,
		Withdrawn: m.decl == nil, Besides: besides, Steps: d.steps[m]}
	if !m.plan.Done {
		p.Conclude(m.plan)
	}
	d.adjourn(&p)
	p.Warnings = append(slices.Clip(p.Warnings), m.kept...)
	return p
}

// refused tells of a declaration whose unit another one has.
func (d *dry) refused(n *Declared) plan.Preview {
	p := plan.Preview{Name: n.Service.Name, UID: n.UID, Generation: n.Generation, Scope: d.o.Scope, Unit: n.Service.Object()}
	if a, is := d.aside[n.Service.Name]; is && a.report != nil {
		p.Outcome, p.Reason, p.Text, p.Hint = a.report.Outcome, a.report.Reason, a.report.Text, a.report.Hint
	}
	return p
}
