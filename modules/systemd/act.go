package systemd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	v := m.in(a.Scope)
	wait, err := waitOf(string(act), a)
	if err != nil {
		return reply, err
	}
	jobs, err := v.jobs(ctx, act, a, order{wait: wait, noWait: a.Wait != nil && !*a.Wait})
	if err != nil {
		return reply, err
	}
	v.after(ctx, act, jobs)
	if err := failed(jobs, isGlob(a.Unit)); err != nil {
		return reply, err
	}
	for _, j := range jobs {
		reply.Units = append(reply.Units, j.acted)
	}
	return reply, nil
}

// jobs acts on the units that a means.
func (v view) jobs(ctx context.Context, act escalate.Act, a seats.ActArguments, o order) ([]job, error) {
	if !isGlob(a.Unit) {
		j, err := v.alone(ctx, act, a.Unit, o)
		return []job{j}, err
	}
	var err error
	if o.of, err = v.begun(ctx, act); err != nil {
		return nil, err
	}
	targets, err := v.targets(ctx, act, a, o.of)
	if err != nil {
		return nil, err
	}
	return v.run(ctx, act, targets, o), nil
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
	stood  *escalate.Stood // as the helper saw it before; nil: it did not say
}

// alone acts on one unit that is named. What it is called and how it stands the
// helper says with the act, which it judges by all of the unit's names: to ask
// systemd besides would take a quarter of the time that a restart does.
func (v view) alone(ctx context.Context, act escalate.Act, name string, o order) (job, error) {
	n, err := named(string(act), name)
	if err != nil {
		return job{}, err
	}
	if n.IsTemplate() {
		return job{}, about(fault.Invalid, string(act), n, "it is a template, and only its instances can be started and stopped")
	}
	if why := v.forbidden(act, n); why != "" {
		return job{}, about(fault.Refused, string(act), n, "it is protected: %s", why)
	}
	j := job{target: unit.Details{ID: n, Names: []unit.Name{n}}, acted: seats.Acted{Scope: string(v.scope)}}
	v.do(ctx, act, &j, o)
	switch {
	case fault.Is(j.err, fault.NotFound):
		return j, v.unknown(ctx, string(act), string(n))
	case j.stood != nil:
		j.target = v.calledAs(ctx, n, *j.stood)
		j.acted.Before = seats.State{Active: string(j.stood.Active), Sub: j.stood.Sub}
	}
	j.acted.Unit, j.acted.DeclaredBy = string(j.target.ID), v.m.owners(v.scope).of(namesOf(j.target)...)
	if j.err == nil {
		j.acted.Note = joined(undone(act, j.acted.DeclaredBy), j.acted.Note)
	}
	return j, nil
}

// calledAs is a unit with its names, as the helper told them.
func (v view) calledAs(ctx context.Context, n unit.Name, s escalate.Stood) unit.Details {
	d := unit.Details{ID: s.ID, Names: append(s.Names, n), TriggeredBy: s.TriggeredBy}
	if !s.Cut {
		return d
	}
	if all, err := v.Details(ctx, n); err == nil {
		return all
	}
	return d
}

// run acts on all targets, and waits for the end of their jobs as o says.
func (v view) run(ctx context.Context, act escalate.Act, targets []unit.Details, o order) []job {
	own := v.m.owners(v.scope)
	jobs := make([]job, len(targets))
	each(len(targets), func(i int) {
		d := targets[i]
		jobs[i] = job{target: d, acted: seats.Acted{
			Unit: string(d.ID), Scope: string(v.scope), Before: seats.State{Active: string(d.Active), Sub: d.Sub},
			DeclaredBy: own.of(namesOf(d)...),
		}}
		if stood, again := o.of[d.ID]; again {
			jobs[i].acted.Before = stood
		}
		v.do(ctx, act, &jobs[i], o)
	})
	return jobs
}

// do acts on one unit.
func (v view) do(ctx context.Context, act escalate.Act, j *job, o order) {
	until := time.Now().Add(o.wait)
	if end, ok := ctx.Deadline(); ok && end.Add(-lookAhead).Before(until) {
		until = end.Add(-lookAhead)
	}
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	began := time.Now()
	out, err := v.m.o.Acts.Do(ctx, escalate.Request{Act: act, Unit: j.target.ID, Scope: v.asked(), NoWait: o.noWait, Before: before(j.acted.Before)})
	j.id, j.err, j.stood = out.Job, err, out.Before
	j.acted.After = seats.State{Active: string(out.After.Active), Sub: out.After.Sub}
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

// after looks at what became of the units of which the helper did not say it, and at
// what may start again those that were stopped, all in one call, and tells it.
func (v view) after(ctx context.Context, act escalate.Act, jobs []job) {
	var names []unit.Name
	for _, j := range jobs {
		if j.acted.After == (seats.State{}) {
			names = append(names, j.target.ID)
		}
		if act == escalate.Stop {
			names = append(names, j.target.TriggeredBy...)
		}
	}
	var units []unit.Listed
	if len(names) > 0 {
		var err error
		if units, err = v.Named(ctx, names); err != nil {
			for i := range jobs {
				jobs[i].unseen(act, err)
			}
			return
		}
	}
	now := map[unit.Name]unit.Listed{}
	for i, u := range units {
		now[names[i]] = u
	}
	for i := range jobs {
		j := &jobs[i]
		if u, looked := now[j.target.ID]; looked && j.acted.After == (seats.State{}) {
			j.acted.After = seats.State{Active: string(u.Active), Sub: u.Sub}
		}
		j.late(fmt.Sprintf("; the unit is %s (%s)", j.acted.After.Active, j.acted.After.Sub))
		if act == escalate.Stop && j.err == nil {
			j.acted.Note = joined(j.acted.Note, triggered(j.target.TriggeredBy, now))
		}
	}
	if act != escalate.Stop {
		v.skips(ctx, jobs)
	}
}

// asksTogether is how many units are asked about at one time.
const asksTogether = 8

// skips tells of units whose start job is done, and that do not run for all that,
// which condition kept them from it.
func (v view) skips(ctx context.Context, jobs []job) {
	var asks sync.WaitGroup
	turn := make(chan struct{}, asksTogether)
	for i := range jobs {
		j := &jobs[i]
		if j.err != nil || j.acted.Result != string(unit.JobDone) || unit.ActiveState(j.acted.After.Active) != unit.Inactive {
			continue
		}
		asks.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			j.acted.Note = joined(j.acted.Note, v.skipped(ctx, j.target.ID))
		})
	}
	asks.Wait()
}

// skipped says which condition kept a unit from being started, whose start job is
// done all the same; "" when it was none, or systemd has forgotten it.
func (v view) skipped(ctx context.Context, n unit.Name) string {
	d, err := v.Details(ctx, n)
	if err != nil || len(d.Unmet) == 0 || d.Unmet[0].Text == "" {
		return ""
	}
	return "it was not started: " + d.Unmet[0].Text + " is not met"
}

// unseen tells that nothing could be read behind an act.
func (j *job) unseen(act escalate.Act, err error) {
	switch {
	case j.acted.After == (seats.State{}):
		j.acted.Note = joined(j.acted.Note, fmt.Sprintf("how it stands now is not known: %v", err))
	case act == escalate.Stop && len(j.target.TriggeredBy) > 0:
		j.acted.Note = joined(j.acted.Note, fmt.Sprintf("whether %s can start it again is not known: %v", listed(j.target.TriggeredBy), err))
	}
	j.late("")
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
func triggered(by []unit.Name, now map[unit.Name]unit.Listed) string {
	var names []unit.Name
	for _, n := range by {
		if now[n].Active.Up() {
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
