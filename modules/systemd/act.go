package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stead/host/fault"
	"stead/host/unit"
	"stead/runtime/escalate"
	"stead/seats"
)

// queued is the result of a job that was not waited for.
const queued = "queued"

// lookAhead is what the deadline of a call leaves for a look at what became of an
// act.
const lookAhead = 50 * time.Millisecond

// Start is the verb.
func (m *Module) Start(ctx context.Context, a seats.ActArguments) (seats.ActReply, error) {
	return m.act(ctx, escalate.Start, a)
}

// Stop is the verb.
func (m *Module) Stop(ctx context.Context, a seats.ActArguments) (seats.ActReply, error) {
	return m.act(ctx, escalate.Stop, a)
}

// Restart is the verb.
func (m *Module) Restart(ctx context.Context, a seats.ActArguments) (seats.ActReply, error) {
	return m.act(ctx, escalate.Restart, a)
}

// act does a verb that is a job. What is asked for by name fails with an error;
// of what a pattern means, each unit has its own, unless all fail alike.
func (m *Module) act(ctx context.Context, act escalate.Act, a seats.ActArguments) (seats.ActReply, error) {
	reply := seats.ActReply{Units: []seats.Acted{}}
	if err := actsIn(string(act), a.Unit, a.Scope); err != nil {
		return reply, err
	}
	wait, err := waitOf(string(act), a)
	if err != nil {
		return reply, err
	}
	of, err := m.begun(ctx, act)
	if err != nil {
		return reply, err
	}
	targets, err := m.targets(ctx, act, a, of)
	if err != nil {
		return reply, err
	}
	jobs := m.run(ctx, act, targets, order{wait: wait, noWait: a.Wait != nil && !*a.Wait, of: of})
	m.after(ctx, act, jobs)
	if err := failed(jobs, isGlob(a.Unit)); err != nil {
		return reply, err
	}
	for _, j := range jobs {
		reply.Units = append(reply.Units, j.acted)
	}
	return reply, nil
}

// order is how jobs are waited for.
type order struct {
	wait   time.Duration
	noWait bool
	of     begun
}

// waitOf is how long the job's end is waited for.
func waitOf(verb string, a seats.ActArguments) (time.Duration, error) {
	if a.Timeout == "" {
		return jobFor, nil
	}
	wait, err := time.ParseDuration(a.Timeout)
	if err != nil || wait <= 0 || wait > mostJobFor {
		return 0, fault.New(fault.Invalid, verb, a.Unit, fmt.Errorf("timeout: %q; more than 0s, at most 10m, is wanted", a.Timeout))
	}
	return wait, nil
}

// job is an act on one unit.
type job struct {
	target unit.Details
	acted  seats.Acted
	id     uint32 // of systemd's job, 0: there is none
	err    error
}

// run acts on all targets, and waits for the end of their jobs as o says.
func (m *Module) run(ctx context.Context, act escalate.Act, targets []unit.Details, o order) []job {
	own := m.owners()
	jobs := make([]job, len(targets))
	each(len(targets), func(i int) {
		d := targets[i]
		jobs[i] = job{target: d, acted: seats.Acted{
			Unit: string(d.ID), Scope: string(unit.System), Before: seats.State{Active: string(d.Active), Sub: d.Sub},
			DeclaredBy: own.of(namesOf(d)...),
		}}
		if stood, again := o.of[d.ID]; again {
			jobs[i].acted.Before = stood
		}
		m.do(ctx, act, &jobs[i], o)
	})
	return jobs
}

// do acts on one unit.
func (m *Module) do(ctx context.Context, act escalate.Act, j *job, o order) {
	until := time.Now().Add(o.wait)
	if end, ok := ctx.Deadline(); ok && end.Add(-lookAhead).Before(until) {
		until = end.Add(-lookAhead)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	began := time.Now()
	out, err := m.o.Acts.Do(ctx, escalate.Request{Act: act, Unit: j.target.ID, NoWait: o.noWait, Before: before(j.acted.Before)})
	j.id, j.err = out.Job, err
	if out.Took == 0 {
		out.Took = time.Since(began)
	}
	j.acted.Took = out.Took.Seconds()
	j.acted.Result = string(out.Result)
	if j.acted.Result == "" && j.id != 0 {
		j.acted.Result = queued
	}
	if err != nil {
		return
	}
	j.acted.Note = joined(undone(act, j.acted.DeclaredBy), out.Note)
}

// after looks at what became of the units, all in one call, and tells it.
func (m *Module) after(ctx context.Context, act escalate.Act, jobs []job) {
	var names []unit.Name
	for _, j := range jobs {
		names = append(names, j.target.ID)
	}
	if act == escalate.Stop {
		for _, j := range jobs {
			names = append(names, j.target.TriggeredBy...)
		}
	}
	units, err := m.o.Reader.Named(ctx, names)
	if err != nil {
		for i := range jobs {
			j := &jobs[i]
			j.acted.Note = joined(j.acted.Note, fmt.Sprintf("how it stands now is not known: %v", err))
			j.late("")
		}
		return
	}
	up := map[unit.Name]bool{}
	for i, u := range units {
		up[names[i]] = u.Active.Up()
	}
	for i := range jobs {
		j := &jobs[i]
		j.acted.After = seats.State{Active: string(units[i].Active), Sub: units[i].Sub}
		j.late(fmt.Sprintf("; the unit is %s (%s)", units[i].Active, units[i].Sub))
		if act == escalate.Stop && j.err == nil {
			j.acted.Note = joined(j.acted.Note, triggered(j.target.TriggeredBy, up))
		}
	}
}

// late words the error of a job, and that of one that goes on with how the unit
// stands.
func (j *job) late(stands string) {
	if fault.Is(j.err, fault.Timeout) && j.id != 0 {
		j.err = fault.New(fault.Timeout, "wait for job", string(j.target.ID),
			fmt.Errorf("job %d has not ended after %s, and goes on%s", j.id, short(j.acted.Took), stands))
	}
	if j.err != nil {
		j.acted.Error = cut(j.err.Error(), mostWords)
	}
}

// short is a duration for people.
func short(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) }

// triggered says what may start a unit again that was stopped, as systemctl does.
func triggered(by []unit.Name, up map[unit.Name]bool) string {
	var names []unit.Name
	for _, n := range by {
		if up[n] {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "it can still be started by " + listed(names)
}

func joined(notes ...string) string {
	var all []string
	for _, n := range notes {
		if n != "" {
			all = append(all, n)
		}
	}
	return strings.Join(all, "; ")
}

// failed is the error of an act: that of the unit that was named, or when nothing
// was done to any that a pattern means, and for one kind of reason, the first.
func failed(jobs []job, pattern bool) error {
	if len(jobs) == 0 || jobs[0].err == nil {
		return nil
	}
	first := jobs[0].err
	for _, j := range jobs {
		if j.err == nil || pattern && j.id != 0 || fault.ClassOf(j.err) != fault.ClassOf(first) {
			return nil
		}
	}
	var known *fault.Error
	if len(jobs) == 1 || !errors.As(first, &known) {
		return first
	}
	return fault.New(known.Class, known.Op, known.Object, fmt.Errorf("%w; and so for %d more", known.Cause, len(jobs)-1)).WithHint(known.Hint)
}
