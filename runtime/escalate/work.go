package escalate

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// call takes one call. What it finds out without PID 1 it answers at once.
func (s *Server) call(life context.Context, c *conn, a asked) {
	if e := s.book.known(a.ID); e != nil { // it was sent again, by another connection
		c.tell(e)
		return
	}
	r, err := a.check()
	if err == nil && a.Since > 0 && s.book.forgotten(time.Now().Add(-time.Duration(a.Since)*time.Millisecond)) {
		err = fault.New(fault.Timeout, string(r.Act), string(r.Unit), errors.New("what became of it is known no longer; it may have been done"))
	}
	if err == nil && s.book.underWay() >= maxCalls {
		err = fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("busy: %d calls are under way", maxCalls))
	}
	if err != nil {
		s.refuseCall(c, a, err)
		return
	}
	select {
	case s.acts <- struct{}{}:
	default:
		s.refuseCall(c, a, fault.New(fault.Unavailable, string(r.Act), string(r.Unit), fmt.Errorf("busy: %d calls are being begun", maxActs)))
		return
	}
	s.wg.Go(func() {
		defer func() { <-s.acts }()
		ctx, cancel := context.WithTimeout(life, actFor)
		defer cancel()
		s.begin(ctx, c, a, r)
	})
}

// refuseCall answers a call that is not done.
func (s *Server) refuseCall(c *conn, a asked, err error) {
	s.o.Logger.Warn("act refused", "act", a.Act, "unit", fmt.Sprintf("%.255s", a.Unit), "for", a.For, "error", err)
	_ = c.send(answered{ID: a.ID, Act: a.Act, Unit: unit.Name(a.Unit), For: a.For, Began: time.Now(), End: failed(err)})
}

// begin asks once more who asks, judges, notes and does.
func (s *Server) begin(ctx context.Context, c *conn, a asked, r Request) {
	ties, err := judge(ctx, s.o.Manager, r)
	switch same, failed := c.still(ctx); {
	case failed != nil:
		s.refuseCall(c, a, notDone(r, failed))
		return
	case !same:
		s.o.Logger.Warn("act refused", "act", r.Act, "unit", r.Unit, "for", a.For, "pid", c.from.pid, "reason", "the runtime's main process is another one now")
		_ = c.nc.Close()
		return
	}
	if err != nil {
		s.refuseCall(c, a, err)
		return
	}
	e := &entry{ID: a.ID, Call: a.Call, Act: r.Act, Unit: r.Unit, NoWait: r.NoWait, For: a.For, Began: time.Now(), Before: before{ties.Active.Up(), ties.Invocation}, Said: a.Before}
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
		s.do(ctx, e)
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
	word, err := c.s.o.Manager.Process(ctx, c.s.o.Unit)
	if err != nil || word != c.word {
		return false, err
	}
	c.mark.Store(&now)
	return true, nil
}

// do does what was judged and noted.
func (s *Server) do(ctx context.Context, e *entry) {
	if kind, is := e.Act.job(); is {
		s.queue(ctx, e, kind)
		return
	}
	var err error
	if e.Act == ResetFailed {
		err = s.o.Manager.ResetFailed(ctx, []unit.Name{e.Unit})[0]
	} else {
		err = s.link(ctx, e)
	}
	out := Outcome{Took: time.Since(e.Began)}
	if e.Links != nil {
		out.Links = *e.Links
	}
	s.end(e.ID, endOf(out, err))
}

// link changes links, and notes which before systemd is told: a helper that goes
// on from there only tells it.
func (s *Server) link(ctx context.Context, e *entry) error {
	if e.Links == nil {
		change := s.o.Manager.Enable
		if e.Act == Disable {
			change = s.o.Manager.Disable
		}
		links, err := change(ctx, []unit.Name{e.Unit})
		if err != nil {
			return err
		}
		e.Links = &links
		if _, err := s.book.change(e.ID, func(e *entry) { e.Links = &links }); err != nil {
			s.o.Logger.Error("calls are not noted", "error", err)
		}
	}
	// As systemctl does: what lies on disk is not what systemd knows.
	if err := s.reloads.do(ctx); err != nil {
		return fault.New(fault.Failed, string(e.Act), string(e.Unit), fmt.Errorf("the links are changed, and systemd does not know it: %w", err)).
			WithHint("systemctl daemon-reload")
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
func (s *Server) queue(ctx context.Context, e *entry, kind unit.JobType) {
	q := s.o.Manager.Enqueue(ctx, []unit.JobRequest{{Name: e.Unit, Type: kind}})[0]
	if q.Err != nil {
		s.end(e.ID, failed(q.Err))
		return
	}
	now, err := s.book.change(e.ID, func(e *entry) { e.Job = q.ID })
	if err != nil {
		s.o.Logger.Error("calls are not noted", "error", err)
	}
	if now == nil {
		return
	}
	s.o.Logger.Info("job queued", "act", e.Act, "unit", e.Unit, "for", e.For, "job", q.ID)
	result, over := s.ends.of(q.ID)
	switch {
	case e.NoWait:
		s.end(e.ID, &end{Outcome: Outcome{Job: q.ID, Took: time.Since(e.Began)}})
	case over:
		s.jobsEnded(context.WithoutCancel(ctx), []jobEnd{{now, result, time.Since(e.Began)}})
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

// jobsEnded ends calls, each with how its unit stands behind its job. PID 1 told
// that with the end of most.
func (s *Server) jobsEnded(ctx context.Context, all []jobEnd) {
	var untold []jobEnd
	for _, j := range all {
		if active, sub, ok := s.o.Manager.Standing(j.of.name()); ok {
			s.jobEnded(j, Standing{active, sub})
		} else {
			untold = append(untold, j)
		}
	}
	if len(untold) > 0 {
		s.wg.Go(func() { s.lookBehind(ctx, untold) })
	}
}

// lookBehind asks PID 1 how units stand behind their jobs. When it does not say,
// whoever asked for the act looks for itself.
func (s *Server) lookBehind(ctx context.Context, all []jobEnd) {
	names := make([]unit.Name, len(all))
	for i, j := range all {
		names[i] = j.of.Unit
	}
	ctx, cancel := context.WithTimeout(ctx, afterFor)
	defer cancel()
	seen, err := s.o.Manager.Named(ctx, names)
	for i, j := range all {
		var after Standing
		if err == nil {
			after = Standing{seen[i].Active, seen[i].Sub}
		}
		s.jobEnded(j, after)
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
	log := s.o.Logger.With("act", e.Act, "unit", e.Unit, "for", e.For, "took", time.Since(e.Began).Round(time.Millisecond))
	switch err := how.err(); {
	case err != nil:
		log.Warn("act failed", "error", err)
	case e.Job != 0:
		log.Info("act done", "job", e.Job, "result", how.Result, "note", how.Note)
	default:
		log.Info("act done", "made", len(how.Links.Made), "removed", len(how.Links.Removed))
	}
}

// ends are the last jobs that ended: the end of one can be there before its
// caller has seen its id.
type ends struct {
	mu     sync.Mutex
	result map[uint32]unit.JobResult
	order  []uint32
}

// maxEnds is more than jobs can end while a call is looked at.
const maxEnds = 8192

func newEnds() *ends { return &ends{result: map[uint32]unit.JobResult{}} }

func (e *ends) add(j unit.JobEnd) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, old := e.result[j.ID]; !old {
		e.order = append(e.order, j.ID)
	}
	e.result[j.ID] = j.Result
	if len(e.order) > maxEnds {
		delete(e.result, e.order[0])
		e.order = e.order[1:]
	}
}

func (e *ends) of(id uint32) (unit.JobResult, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r, ok := e.result[id]
	return r, ok
}

// reloads makes one reload serve all who came before it began.
type reloads struct {
	m    linker
	life context.Context // of reloads: that of the server, and not of a call
	wg   sync.WaitGroup

	mu      sync.Mutex
	running bool
	next    *reload // for those who came since the one that runs began
}

type reload struct {
	done chan struct{}
	err  error
}

func newReloads(m linker) *reloads { return &reloads{m: m} }

// do returns when a reload that began after do was called has ended.
func (r *reloads) do(ctx context.Context) error {
	r.mu.Lock()
	if r.next == nil {
		r.next = &reload{done: make(chan struct{})}
	}
	mine := r.next
	if !r.running {
		r.running = true
		r.wg.Go(func() { r.run(r.life) })
	}
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return fault.New(fault.Timeout, "reload", "system", errors.New("it goes on"))
	}
}

// run reloads for as long as somebody waits for one. The manager bounds each.
func (r *reloads) run(ctx context.Context) {
	for {
		r.mu.Lock()
		now := r.next
		r.next = nil
		r.running = now != nil
		r.mu.Unlock()
		if now == nil {
			return
		}
		_, now.err = r.m.Reload(ctx)
		close(now.done)
	}
}
