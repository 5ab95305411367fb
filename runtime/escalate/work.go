package escalate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// jobber is what queues jobs and says how they end.
type jobber interface {
	Enqueue(ctx context.Context, requests []unit.JobRequest) []unit.Queued
	ResetFailed(ctx context.Context, names []unit.Name) []error
	Wake() <-chan struct{}
	Drain() unit.Changes
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
}

// linker is what makes and removes the links of unit files.
type linker interface {
	Enable(ctx context.Context, names []unit.Name) (unit.Linking, error)
	Disable(ctx context.Context, names []unit.Name) (unit.Linking, error)
	Reload(ctx context.Context) (time.Duration, error)
}

// call takes one call. What it finds out without a manager it answers at once.
func (s *Server) call(life context.Context, c *conn, a asked) {
	if e := s.book.known(a.ID); e != nil { // it was sent again, by another connection
		c.tell(e)
		return
	}
	r, err := a.check()
	if err == nil && a.Since > 0 && s.book.forgotten(time.Now().Add(-time.Duration(a.Since)*time.Millisecond)) {
		err = fault.New(fault.Timeout, string(r.Act), string(r.Unit), errors.New("what became of it is known no longer; it may have been done"))
	}
	way, most := s.acts, maxCalls
	if r.Scope == unit.User {
		way, most = s.userActs, maxUserCalls
	}
	if err == nil && s.book.underWay(r.Scope) >= most {
		err = fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("busy: %d calls are under way", most))
	}
	if err == nil && r.Scope == unit.User && s.tenants == nil {
		err = fault.New(fault.Unsupported, string(r.Act), string(r.Unit), errors.New("this root helper serves no user scope"))
	}
	if err != nil {
		s.refuseCall(c, a, err)
		return
	}
	select {
	case way <- struct{}{}:
	default:
		s.refuseCall(c, a, fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("busy: %d calls are being begun", cap(way))))
		return
	}
	s.wg.Go(func() {
		defer func() { <-way }()
		ctx, cancel := context.WithTimeout(life, actFor)
		defer cancel()
		if r.Scope != unit.User {
			s.system.begin(ctx, c, a, r)
			return
		}
		t, err := s.tenants.enter(ctx)
		if err != nil {
			s.refuseCall(c, a, during(string(r.Act), string(r.Unit), err))
			return
		}
		defer t.leave()
		t.begin(ctx, c, a, r)
	})
}

// refuseCall answers a call that is not done.
func (s *Server) refuseCall(c *conn, a asked, err error) {
	s.o.Logger.Warn("act refused", append(about(a.Act, fmt.Sprintf("%.255s", a.Unit), a.For, a.Scope), "error", err)...)
	_ = c.send(answered{ID: a.ID, Act: a.Act, Unit: unit.Name(a.Unit), Scope: a.Scope, For: a.For, Began: time.Now(), End: failed(err)})
}

// begin asks once more who asks, judges, notes and does.
func (sd *side) begin(ctx context.Context, c *conn, a asked, r Request) {
	s := sd.s
	ties, err := judge(ctx, sd.m, r)
	still := c.still
	if r.Scope == unit.User {
		still = c.is // it is not PID 1 who answered
	}
	switch same, failed := still(ctx); {
	case failed != nil:
		s.refuseCall(c, a, notDone(r, failed))
		return
	case !same:
		s.o.Logger.Warn("act refused", append(about(r.Act, string(r.Unit), a.For, r.Scope), "pid", c.from.pid, "reason", "the runtime's main process is another one now")...)
		_ = c.nc.Close()
		return
	}
	if err != nil {
		s.refuseCall(c, a, sd.explain(string(r.Act), string(r.Unit), err))
		return
	}
	e := &entry{ID: a.ID, Call: a.Call, Act: r.Act, Unit: r.Unit, Of: sd.of, NoWait: r.NoWait, For: a.For, Began: time.Now(), Before: before{ties.Active.Up(), ties.Invocation}, Said: a.Before}
	if _, job := r.Act.job(); job {
		e.Stood = stoodOf(ties)
	}
	known, err := s.book.begin(e)
	switch {
	case err != nil:
		s.refuseCall(c, a, fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("nothing was done: %w", err)))
	case known != nil:
		c.tell(known)
	default:
		sd.do(ctx, e)
	}
}

// still reports whether the peer is the main process of the runtime at this moment,
// or was when PID 1 last answered us: it is asked, unless it said nothing new of that
// unit since it said so. It says what changed before it answers anything else, so
// its answer to judge is proof.
func (c *conn) still(ctx context.Context) (bool, error) {
	now := c.s.o.Manager.Mark(c.s.o.Unit)
	if now != (unit.Mark{}) && now == *c.mark.Load() {
		return true, nil
	}
	is, err := c.is(ctx)
	if is {
		c.mark.Store(&now)
	}
	return is, err
}

// is asks PID 1 whether the peer is the main process of the runtime at this moment.
func (c *conn) is(ctx context.Context) (bool, error) {
	word, err := c.s.o.Manager.Process(ctx, c.s.o.Unit)
	return err == nil && word == c.word, err
}

// do does what was judged and noted.
func (sd *side) do(ctx context.Context, e *entry) {
	if kind, is := e.Act.job(); is {
		sd.queue(ctx, e, kind)
		return
	}
	var err error
	if e.Act == ResetFailed {
		err = sd.m.ResetFailed(ctx, []unit.Name{e.Unit})[0]
	} else {
		err = sd.link(ctx, e)
	}
	out := Outcome{Took: time.Since(e.Began)}
	if e.Links != nil {
		out.Links = *e.Links
	}
	sd.s.end(e.ID, endOf(out, sd.explain(string(e.Act), string(e.Unit), err)))
}

// link changes links, and notes which before the manager is told: a helper that goes
// on from there only tells it.
func (sd *side) link(ctx context.Context, e *entry) error {
	if e.Links == nil {
		change := sd.m.Enable
		if e.Act == Disable {
			change = sd.m.Disable
		}
		links, err := change(ctx, []unit.Name{e.Unit})
		if err != nil {
			return err
		}
		links = fewer(links)
		e.Links = &links
		if _, err := sd.s.book.change(e.ID, func(e *entry) { e.Links = &links }); err != nil {
			sd.s.o.Logger.Error("calls are not noted", "error", err)
		}
	}
	// As systemctl does: what lies on disk is not what systemd knows.
	if err := sd.reloads.do(ctx); err != nil {
		return fault.New(fault.Failed, string(e.Act), string(e.Unit), fmt.Errorf("the links are changed, and systemd does not know it: %w", err)).
			WithHint(sd.systemctl("daemon-reload"))
	}
	return nil
}

func endOf(out Outcome, err error) *end {
	if err != nil {
		return failed(err)
	}
	return &end{Outcome: out}
}

// queue asks for the job and tells its id; its end comes by watch.
func (sd *side) queue(ctx context.Context, e *entry, kind unit.JobType) {
	s := sd.s
	q := sd.m.Enqueue(ctx, []unit.JobRequest{{Name: e.Unit, Type: kind}})[0]
	if q.Err != nil {
		s.end(e.ID, failed(sd.explain(string(e.Act), string(e.Unit), q.Err)))
		return
	}
	now, err := s.book.change(e.ID, func(e *entry) { e.Job = q.ID })
	if err != nil {
		s.o.Logger.Error("calls are not noted", "error", err)
	}
	if now == nil {
		return
	}
	s.o.Logger.Info("job queued", append(e.about(), "job", q.ID)...)
	result, over := sd.ends.of(q.ID)
	switch {
	case e.NoWait:
		s.end(e.ID, &end{Outcome: Outcome{Job: q.ID, Took: time.Since(e.Began)}})
	case over:
		sd.jobsEnded(context.WithoutCancel(ctx), []jobEnd{{now, result, time.Since(e.Began)}})
	default:
		s.tell(now)
	}
}

// jobEnd is the end of the job that a call waits for.
type jobEnd struct {
	of     *entry
	result unit.JobResult
	took   time.Duration
}

// jobsEnded ends calls, each with how its unit stands behind its job. The manager
// told that with the end of most.
func (sd *side) jobsEnded(ctx context.Context, all []jobEnd) {
	var untold []jobEnd
	for _, j := range all {
		if active, sub, ok := sd.m.Standing(j.of.name()); ok {
			sd.s.jobEnded(j, Standing{active, sub})
		} else {
			untold = append(untold, j)
		}
	}
	if len(untold) > 0 {
		sd.s.wg.Go(func() { sd.lookBehind(ctx, untold) })
	}
}

// lookBehind asks how units stand behind their jobs. When the manager does not say,
// whoever asked for the act looks for itself.
func (sd *side) lookBehind(ctx context.Context, all []jobEnd) {
	names := make([]unit.Name, len(all))
	for i, j := range all {
		names[i] = j.of.Unit
	}
	ctx, cancel := context.WithTimeout(ctx, afterFor)
	defer cancel()
	seen, err := sd.m.Named(ctx, names)
	for i, j := range all {
		var after Standing
		if err == nil {
			after = Standing{seen[i].Active, seen[i].Sub}
		}
		sd.s.jobEnded(j, after)
	}
}

func (s *Server) jobEnded(j jobEnd, after Standing) {
	s.end(j.of.ID, &end{Outcome: Outcome{Job: j.of.Job, Result: j.result, After: after, Took: j.took}})
}

// end notes how a call ended, tells the runtime, and logs it. Only the first end
// of a call counts.
func (s *Server) end(id string, how *end) {
	e, err := s.book.change(id, func(e *entry) { e.End = how })
	if err != nil {
		s.o.Logger.Error("calls are not noted", "error", err)
	}
	if e == nil {
		return
	}
	s.tell(e)
	log := s.o.Logger.With(append(e.about(), "took", time.Since(e.Began).Round(time.Millisecond))...)
	switch err := how.err(); {
	case err != nil:
		log.Warn("act failed", "error", err)
	case e.Job != 0:
		log.Info("act done", "job", e.Job, "result", how.Result, "note", how.Note)
	default:
		log.Info("act done", "made", len(how.Links.Made), "removed", len(how.Links.Removed))
	}
}
