package systemdtest

import (
	"fmt"
	"time"

	"stead/host/unit"
)

// exit is how a process ended: ExecMainCode and ExecMainStatus.
type exit struct{ code, status int32 }

// Values of ExecMainCode.
const (
	exited   = 1
	signaled = 2
)

func (e exit) good() bool { return e.code == exited && e.status == 0 }

func (e exit) result() string {
	switch {
	case e.good():
		return "success"
	case e.code == signaled:
		return "signal"
	}
	return "exit-code"
}

// set gives u a state.
func (f *Fake) set(u *loaded, a unit.ActiveState, sub string) {
	if u.active == a && u.sub == sub {
		return
	}
	if u.active.Down() && !a.Down() {
		u.started = f.opts.Clock()
	}
	if u.active != a && !(u.active.Up() && a.Up()) {
		u.since = time.Now()
	}
	u.active, u.sub = a, sub
	u.changed = f.opts.Clock()
	f.tell(u.name)
}

// start starts a unit that is down or between two runs.
func (f *Fake) start(u *loaded) {
	u.stopTimers()
	if f.limited(u) {
		f.set(u, unit.FailedState, "failed")
		f.end(u.job, unit.JobFailed)
		return
	}
	u.unmet = nil
	delete(f.skipped, u.name)
	for _, c := range u.def.conditions {
		if !c.met() {
			u.unmet = append(u.unmet, unit.Condition{Text: c.text, Assert: c.assert})
			f.skip(u, c)
			return
		}
	}
	f.lastRun++
	u.invocation = fmt.Sprintf("%032x", f.lastRun)
	u.last = exit{}
	switch u.name.Type() {
	case "service":
		f.exec(u)
	case "timer", "path":
		f.up(u, "waiting")
	case "socket":
		f.up(u, "listening")
	default:
		f.up(u, "active")
	}
}

// skip ends a start that a condition forbids.
func (f *Fake) skip(u *loaded, c condition) {
	if !u.active.Down() {
		f.set(u, unit.Inactive, "dead")
	}
	f.tell(u.name)
	if c.assert {
		f.end(u.job, unit.JobAssert)
		return
	}
	f.end(u.job, unit.JobDone)
}

// limited reports whether u was started too often, and counts this start.
func (f *Fake) limited(u *loaded) bool {
	now := time.Now()
	var recent []time.Time
	for _, at := range f.starts[u.name] {
		if now.Sub(at) < u.def.limitWithin {
			recent = append(recent, at)
		}
	}
	if u.def.limitWithin > 0 && len(recent) >= u.def.limitBurst {
		f.starts[u.name] = recent
		if u.result == "success" {
			u.result = "start-limit-hit"
		}
		return true
	}
	f.starts[u.name] = append(recent, now)
	return false
}

// up makes u active and ends its start.
func (f *Fake) up(u *loaded, sub string) {
	u.result = "success"
	f.set(u, unit.Active, sub)
	f.end(u.job, unit.JobDone)
}

// ready ends the start of a service that had to report it.
func (f *Fake) ready(u *loaded) {
	if u.timeout != nil {
		u.timeout.Stop()
		u.timeout = nil
	}
	f.running(u)
}

func (f *Fake) running(u *loaded) { f.up(u, "running") }

// exec runs the start programs of a service.
func (f *Fake) exec(u *loaded) {
	took, how, ends := f.whole(u.def.start)
	f.lastPID++
	u.pid = f.lastPID
	switch u.def.kind {
	case "oneshot", "notify", "notify-reload", "forking":
		f.set(u, unit.Activating, "start")
		if u.def.startFor > 0 {
			f.later(&u.timeout, u.def.startFor, func() { f.died(u, exit{signaled, 15}, "timeout") })
		}
	case "exec":
		if how.status == 203 && ends {
			f.set(u, unit.Activating, "start")
			f.died(u, how, how.result())
			return
		}
		f.running(u)
	default:
		f.running(u)
	}
	if ends {
		f.later(&u.process, took, func() { f.processEnded(u, how) })
	}
}

// whole is how long programs run one after the other, and how the last one that
// runs ends; ends is false when one of them never does.
func (f *Fake) whole(programs []program) (took time.Duration, how exit, ends bool) {
	how = exit{code: exited}
	for _, p := range programs {
		if !p.ends {
			return 0, exit{}, false
		}
		took += p.after
		if how = p.how; !how.good() {
			break
		}
	}
	return took, how, true
}

// sequence is whole for programs that are not expected to run for ever; one
// that does is taken to end at once.
func (f *Fake) sequence(programs []program) (time.Duration, exit) {
	took, how, _ := f.whole(programs)
	return took, how
}

// processEnded is the end of u's main process, or of a start program.
func (f *Fake) processEnded(u *loaded, e exit) {
	starting := u.active == unit.Activating
	switch {
	case starting && u.def.kind == "oneshot" && e.good():
		f.remainOrEnd(u, e)
	case starting && u.def.kind == "forking" && e.good():
		f.ready(u) // what it forked has the process id of its parent here
	case starting && e.good():
		f.died(u, e, "protocol")
	case !starting && e.good() && u.def.remain:
		f.remainOrEnd(u, e)
	default:
		f.died(u, e, e.result())
	}
	f.collect()
}

// remainOrEnd is the good end of a service whose work is done.
func (f *Fake) remainOrEnd(u *loaded, e exit) {
	u.stopTimers()
	u.pid, u.last, u.result = 0, e, "success"
	if u.def.remain {
		f.up(u, "exited")
		return
	}
	f.set(u, unit.Inactive, "dead")
	f.end(u.job, unit.JobDone)
}

// died is the end of a run: u rests, or is started again.
func (f *Fake) died(u *loaded, e exit, result string) {
	u.stopTimers()
	u.pid, u.last, u.result = 0, e, result
	good := result == "success"
	if again(u.def.restart, good) {
		f.set(u, unit.Activating, unit.SubAutoRestart)
		f.end(u.job, unit.JobFailed)
		f.later(&u.restart, u.def.restartSec, func() {
			u.restarts++
			f.install(u, unit.RestartJob)
		})
		return
	}
	if good {
		f.set(u, unit.Inactive, "dead")
	} else {
		f.set(u, unit.FailedState, "failed")
	}
	f.end(u.job, unit.JobFailed)
}

func again(policy string, good bool) bool {
	switch policy {
	case "always":
		return true
	case "on-success":
		return good
	case "on-failure":
		return !good
	}
	return false
}

// stop stops u, in as long as its stop programs take, and ends its job.
func (f *Fake) stop(u *loaded) {
	took, _ := f.sequence(u.def.stop)
	j := u.job
	if u.active.Down() || took == 0 {
		f.halt(u)
		f.end(j, unit.JobDone)
		return
	}
	u.stopTimers()
	f.set(u, unit.Deactivating, "stop")
	f.later(&u.process, took, func() {
		f.halt(u)
		f.end(j, unit.JobDone)
	})
}

// halt makes u inactive at once.
func (f *Fake) halt(u *loaded) {
	u.stopTimers()
	u.pid, u.restarts = 0, 0
	if u.active.Down() {
		return
	}
	u.result = "success"
	f.set(u, unit.Inactive, "dead")
}
