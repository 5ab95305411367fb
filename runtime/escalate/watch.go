package escalate

import (
	"context"
	"fmt"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	// recheck is how often jobs that are waited for are looked for in the queue: their
	// end may have been told while there was no connection to PID 1, or no helper.
	recheck = 500 * time.Millisecond
	// settle is how long a call is under way before its job is missed: an answer
	// can be ahead of the signal of what it shows.
	settle = 100 * time.Millisecond
)

// watch takes in how jobs end, until ctx ends. What it began by then has until life
// ends.
func (sd *side) watch(ctx, life context.Context) {
	missed := map[string]time.Time{}
	next := time.NewTimer(recheck)
	defer next.Stop()
	for {
		look := false
		select {
		case <-sd.m.Wake():
		case <-next.C:
			look = true
		case <-ctx.Done():
			return
		}
		changes := sd.m.Drain()
		sd.take(life, changes.Jobs)
		if !look && !changes.All {
			continue
		}
		sd.lookFor(ctx, life, missed, sd.interrupted(life))
		if next.Reset(recheck); len(missed) > 0 {
			next.Reset(settle)
		}
	}
}

// take ends the calls that wait for jobs.
func (sd *side) take(life context.Context, jobs []unit.JobEnd) {
	if len(jobs) == 0 {
		return
	}
	waiting := map[uint32][]entry{}
	for _, j := range jobs {
		sd.ends.add(j)
	}
	// Behind ends: a call whose job was noted since finds its end there.
	for _, e := range sd.s.book.all(func(e *entry) bool { return e.End == nil && e.Job != 0 && sd.mine(e) }) {
		waiting[e.Job] = append(waiting[e.Job], e)
	}
	var all []jobEnd
	for _, j := range jobs {
		for _, e := range waiting[j.ID] {
			all = append(all, jobEnd{&e, j.Result, time.Since(e.Began)})
		}
	}
	sd.jobsEnded(life, all)
}

// lookFor looks for the jobs of calls under way, and of those that an earlier
// helper was ended in, and makes out how those ended that are in the queue no
// longer.
func (sd *side) lookFor(ctx, life context.Context, missed map[string]time.Time, interrupted map[string]func()) {
	open := sd.s.book.all(func(e *entry) bool {
		_, is := e.Act.job()
		return e.End == nil && is && sd.mine(e) && (e.Job != 0 && time.Since(e.Began) > settle || interrupted[e.ID] != nil)
	})
	if len(open) == 0 {
		clear(missed)
		return
	}
	names := make([]unit.Name, len(open))
	for i, e := range open {
		names[i] = e.Unit
	}
	ctx, cancel := context.WithTimeout(ctx, actFor)
	defer cancel()
	seen, err := sd.m.Observe(ctx, names)
	if err != nil {
		if why := err.Error(); why != sd.blind {
			sd.blind = why
			sd.s.o.Logger.Warn("jobs cannot be looked for", "error", err, "retry", recheck)
		}
		return
	}
	sd.blind = ""
	for i, e := range open {
		job := seen[i].Job
		switch {
		case e.Job != 0 && job.ID == e.Job:
			delete(missed, e.ID)
		case e.Job == 0 && sameJob(e.Act, job.Type):
			sd.adopt(life, e.ID, job.ID)
		case missed[e.ID].IsZero():
			missed[e.ID] = time.Now()
		case time.Since(missed[e.ID]) >= settle:
			delete(missed, e.ID)
			how := madeOut(e, seen[i])
			if again := interrupted[e.ID]; again != nil && how.Fault != nil && untouched(e, seen[i]) {
				again()
				continue
			}
			sd.s.end(e.ID, how)
		}
	}
}

// adopt takes the job in the queue for that of a call whose own id was lost.
func (sd *side) adopt(life context.Context, id string, job uint32) {
	now, err := sd.s.book.change(id, func(e *entry) { e.Job = job })
	if err != nil {
		sd.s.o.Logger.Error("calls are not noted", "error", err)
	}
	if result, over := sd.ends.of(job); over && now != nil {
		sd.jobsEnded(life, []jobEnd{{now, result, time.Since(now.Began)}})
	}
}

// sameJob reports whether a job in the queue can be that of an act. A restart
// becomes a start once its stop is done.
func sameJob(a Act, t unit.JobType) bool {
	kind, is := a.job()
	return is && (t == kind || a == Restart && t == unit.StartJob)
}

// madeOut says how a call ended whose end nobody heard, by what the unit is now.
func madeOut(e entry, st unit.Status) *end {
	stands := fmt.Sprintf("the unit is %s (%s) now", st.Active, st.Sub)
	again := st.Invocation != "" && st.Invocation != e.Before.Invocation
	done := false
	switch e.Act {
	case Start:
		done = st.Active.Up() && (e.Before.Up || again)
	case Stop:
		done = st.Active.Down()
	case Restart:
		done = st.Active.Up() && again
	}
	if !done {
		return failed(fault.New(fault.Timeout, string(e.Act), string(e.Unit), fmt.Errorf("how it ended was not heard; %s", stands)))
	}
	return &end{Outcome: Outcome{Job: e.Job, Result: unit.JobDone, After: Standing{st.Active, st.Sub}, Took: time.Since(e.Began), Note: "systemd's own word was not heard: " + stands}}
}
