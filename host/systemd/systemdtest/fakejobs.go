package systemdtest

import (
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

// job is a job in the fake's queue.
type job struct {
	id   uint32
	kind unit.JobType
	unit *loaded
	gone bool // it ended
}

// enqueue takes or refuses one request, in systemd's words.
func (f *Fake) enqueue(r unit.JobRequest) unit.Queued {
	q := unit.Queued{Request: r}
	refuse := func(c fault.Class, format string, args ...any) unit.Queued {
		q.Err = fault.New(c, string(r.Type), string(r.Name), says(format, args...))
		f.collect()
		return q
	}
	switch r.Type {
	case unit.StartJob, unit.StopJob, unit.RestartJob, unit.ReloadJob, unit.TryRestartJob, unit.ReloadOrTryRestartJob:
	default:
		return refuse(fault.Invalid, "%q is not a type of job", r.Type)
	}
	if n, err := unit.ParseName(string(r.Name)); err != nil {
		return refuse(fault.Invalid, "Unit name %s is not valid.", r.Name)
	} else if n.IsTemplate() {
		return refuse(fault.Invalid, "Unit name %s is missing the instance name.", r.Name)
	}
	u := f.load(r.Name)
	starts := r.Type == unit.StartJob || r.Type == unit.RestartJob
	down := u.active.Down()
	switch {
	case r.Type == unit.StopJob && u.def.load == unit.NotFound && down:
		return refuse(fault.NotFound, "Unit %s not loaded.", r.Name)
	case r.Type != unit.StopJob && u.def.load == unit.NotFound:
		return refuse(fault.NotFound, "Unit %s not found.", u.name)
	case r.Type != unit.StopJob && u.def.load == unit.Masked:
		return refuse(fault.Refused, "Unit %s is masked.", u.name)
	case r.Type != unit.StopJob && u.def.load != unit.Loaded:
		return refuse(fault.Failed, "%s", u.def.words)
	case starts && u.def.noStart, (r.Type == unit.StopJob || r.Type == unit.RestartJob) && u.def.noStop:
		return refuse(fault.Refused, "Operation refused, unit %s may be requested by dependency only (it is configured to refuse manual start/stop).", u.name)
	case r.Type == unit.ReloadJob && !u.def.reloads():
		return refuse(fault.Unsupported, "Job type reload is not applicable for unit %s.", u.name)
	}
	kind := r.Type
	if kind == unit.ReloadOrTryRestartJob {
		if kind = unit.TryRestartJob; u.def.reloads() && !down {
			kind = unit.ReloadJob
		}
	}
	if old := u.job; r.Yield && old != nil && (old.kind == unit.StopJob) != (kind == unit.StopJob) {
		return refuse(fault.Conflict, "Transaction for %s/%s is destructive (%s has '%s' job queued, but '%s' is included in transaction).",
			u.name, kind, u.name, old.kind, kind)
	}
	q.ID = f.install(u, kind).id
	return q
}

// install puts a job into the queue, in place of another one of the unit.
func (f *Fake) install(u *loaded, kind unit.JobType) *job {
	if old := u.job; old != nil {
		if old.kind == kind {
			return old
		}
		f.end(old, unit.JobCanceled)
	}
	f.lastJob++
	j := &job{id: f.lastJob, kind: kind, unit: u}
	u.job = j
	f.queue = append(f.queue, j)
	if len(f.queue) == 1 {
		time.AfterFunc(0, f.work)
	}
	f.tell(u.name)
	return j
}

// work gives every waiting job its turn, in order.
func (f *Fake) work() {
	f.mu.Lock()
	defer f.mu.Unlock()
	queue := f.queue
	f.queue = nil
	for _, j := range queue {
		if !j.gone && !f.closed {
			f.begin(j)
		}
	}
	f.collect()
}

// begin carries out a job as far as that is possible at once.
func (f *Fake) begin(j *job) {
	u := j.unit
	switch j.kind {
	case unit.StopJob:
		f.stop(u)
	case unit.StartJob:
		f.beginStart(j)
	case unit.RestartJob, unit.TryRestartJob:
		if j.kind == unit.TryRestartJob && u.active.Down() {
			f.end(j, unit.JobDone)
			return
		}
		if !u.active.Down() && u.sub != unit.SubAutoRestart {
			f.halt(u)
		}
		f.start(u)
	case unit.ReloadJob:
		f.beginReload(j)
	}
}

func (f *Fake) beginStart(j *job) {
	u := j.unit
	switch {
	case u.active.Up():
		f.end(j, unit.JobDone)
	case u.active == unit.Activating && u.sub != unit.SubAutoRestart:
		// it ends with the start that is under way
	default:
		f.start(u)
	}
}

func (f *Fake) beginReload(j *job) {
	u := j.unit
	if !u.active.Up() {
		f.end(j, unit.JobInvalid)
		return
	}
	f.set(u, unit.Reloading, "reload")
	began := f.opts.Clock()
	took, how := f.sequence(u.def.reload)
	f.later(&u.timeout, took, func() {
		if u.active != unit.Reloading {
			return
		}
		f.set(u, unit.Active, "running")
		if how.status != 0 {
			f.end(j, unit.JobFailed)
			u.reloaded = 0
		} else {
			if len(u.def.reload) > 0 {
				u.reloaded = began
			}
			f.end(j, unit.JobDone)
		}
	})
}

// end takes a job out of the queue.
func (f *Fake) end(j *job, result unit.JobResult) {
	if j == nil || j.gone {
		return
	}
	j.gone = true
	if j.unit.job == j {
		j.unit.job = nil
	}
	f.tellEnd(unit.JobEnd{ID: j.id, Unit: j.unit.name, Result: result})
}

// later does something after d, unless the timer is stopped or f is closed.
func (f *Fake) later(t **time.Timer, d time.Duration, do func()) {
	if *t != nil {
		(*t).Stop()
	}
	var mine *time.Timer
	mine = time.AfterFunc(d, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.closed || *t != mine { // another one took its place
			return
		}
		do()
		f.collect()
	})
	*t = mine
}
