package plan

import (
	"fmt"
	"strings"
	"time"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// activity decides the jobs of a unit whose files are right and loaded.
func activity(in Input, d *Decision) {
	if in.Service.Unit.IsTemplate() {
		d.converge()
		return
	}
	if crashing(in, d) || in.Status.Job.ID != 0 && queued(in, d) {
		return
	}
	switch ensure(in) {
	case shape.Running:
		running(in, d)
	case shape.Stopped:
		stopped(in, d)
	default:
		unmanaged(in, d)
	}
}

// queued deals with a job in the queue: ours is waited for within the budget,
// one of somebody else's too, unless it works against what is declared.
func queued(in Input, d *Decision) bool {
	j, t := in.Status.Job, in.Track
	if j.ID != t.Job.ID && j.ID != t.ended && ensure(in) == shape.Stopped && j.Type != unit.StopJob && in.Status.Active != unit.Deactivating &&
		!(in.Status.Active.Down() && t.pathTriggered()) {
		return false
	}
	reason, verb, from := report.Starting, string(j.Type)+"ing", t.otherSince
	switch j.Type {
	case unit.StopJob:
		reason, verb = report.Stopping, "stopping"
	case unit.TryRestartJob, unit.RestartJob:
		verb = "restarting"
	case unit.ReloadJob:
		reason = report.Refreshing
	}
	if j.ID == t.Job.ID || j.ID == t.ended { // a look may be behind the word of its end
		if from = t.Job.At; !t.stale.IsZero() && j.Type != unit.StartJob && j.Type != unit.StopJob {
			reason, from = report.Refreshing, t.stale // a refresh has a budget of its own
		}
	} else {
		reason = report.Busy
		verb = "somebody's job is in the queue, " + verb
	}
	if from.IsZero() {
		from = in.Clock.Wall
	}
	end := from.Add(in.Service.Timeout)
	if in.Clock.Wall.Before(end) {
		d.wait(reason, "%s (job %d)", verb, j.ID)
		d.by(end)
		return true
	}
	d.fail(report.BudgetSpent, "not done within %s: still %s (job %d, left in the queue)", in.Service.Timeout, verb, j.ID)
	return true
}

func running(in Input, d *Decision) {
	st := in.Status
	switch {
	case st.Active.Up():
		up(in, d)
	case st.Active == unit.Activating:
		activating(in, d)
	case st.Active.Down():
		down(in, d)
	default:
		coming(in, d, report.Stopping)
	}
}

// up judges a unit that runs and shall run.
func up(in Input, d *Decision) {
	if restartOwed(in) {
		restartOnce(in, d)
		return
	}
	if refresh(in, d) {
		return
	}
	if in.Status.Active != unit.Active {
		coming(in, d, report.Settling)
		return
	}
	settle(in, d)
}

// settle converges when the state has held for long enough.
func settle(in Input, d *Decision) {
	if end := in.Track.at.Add(Settle); in.Clock.Wall.Before(end) {
		d.wait(report.Settling, "%s for less than %s", in.Status.Active, Settle)
		d.by(end)
		return
	}
	d.converge()
}

// activating judges a unit that is on its way up with no job in the queue.
func activating(in Input, d *Decision) {
	st := in.Status
	if st.Sub != unit.SubAutoRestart && st.Sub != "auto-restart-queued" {
		coming(in, d, report.Starting)
		return
	}
	if in.Memory.Taken.Digest != in.Disk.Loaded && in.Memory.Taken.Digest != "" && in.Track.Tries == 0 {
		d.job(Start, in, "it crashed with an older definition")
		d.wait(report.Starting, "starting with its new definition")
		return
	}
	d.fail(report.CrashLoop, "crash loop: %s; %ssystemd waits to restart it", ending(st), restarted(st.Restarts))
}

// restarted counts what systemd did by itself, as the beginning of a clause.
func restarted(n uint32) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "restarted by systemd once; "
	}
	return fmt.Sprintf("restarted by systemd %d times; ", n)
}

// crashing judges a unit that died twice within the budget and was started
// again, whatever its state is at this moment: it runs in between, too.
func crashing(in Input, d *Decision) bool {
	if ensure(in) != shape.Running || in.Status.Active.Down() || in.Status.Job.ID != 0 && in.Status.Job.ID == in.Track.Job.ID {
		return false
	}
	n, last := in.Track.risen(in.Clock.Wall, in.Service.Timeout)
	if n < 2 || pending(in) {
		return false
	}
	how := in.Track.ending
	if how == "" {
		how = "its process dies"
	}
	d.fail(report.CrashLoop, "crash loop: %s; %d times within %s", how, n, in.Service.Timeout)
	d.by(last.Add(in.Service.Timeout))
	return true
}

// coming waits for a state that passes by itself, within the budget.
func coming(in Input, d *Decision, r report.Reason) {
	end := in.Track.at.Add(in.Service.Timeout)
	if in.Clock.Wall.Before(end) {
		d.wait(r, "%s (%s)", in.Status.Active, in.Status.Sub)
		d.by(end)
		return
	}
	d.fail(report.BudgetSpent, "%s (%s) for longer than %s", in.Status.Active, in.Status.Sub, in.Service.Timeout)
}

// down brings a unit up that is down.
func down(in Input, d *Decision) {
	t, now := in.Track, in.Clock.Wall
	switch {
	case oneshotDone(in) && !restartOwed(in):
		oneshot(in, d)
		return
	case in.Rival != "":
		d.refuse(report.OwnedBy, "conflict with %s: it runs as declared, and a start of %s would stop it (Conflicts=)", in.Rival, in.Status.ID)
		d.Hint = "declare ensure: stopped for one of the two"
		d.by(now.Add(lookAgain))
		return
	case in.Disk.Text.RefuseStart:
		d.refuse(report.ManualOnly, "%s refuses to be started by hand (RefuseManualStart=)", in.Status.ID)
		return
	case t.free(now):
		if in.Status.Active == unit.FailedState && older(in) {
			d.Steps = append(d.Steps, Step{Action: ResetFailed, Unit: in.Status.Asked, Reason: whyReset(in)})
		}
		d.job(Start, in, whyStart(in))
		d.wait(report.Starting, "starting")
		if t.Tries > 0 || t.Fought > 0 {
			whyDown(in, d) // it has been tried: what came of it is what there is to say
		}
		return
	}
	whyDown(in, d)
	d.by(t.NotBefore)
}

func whyReset(in Input) string {
	if newer(in.Memory.Taken.Digest, in) || newer(in.Track.Job.Digest, in) {
		return "it failed with an older definition"
	}
	return "it failed before its triggers changed"
}

func whyStart(in Input) string {
	switch {
	case in.Track.Tries > 0:
		return fmt.Sprintf("try %d", in.Track.Tries+1)
	case in.Track.UndoneHow != "" && in.Clock.Wall.Sub(in.Track.Begun) < time.Second:
		return in.Track.UndoneHow + "; ensure: running"
	}
	return fmt.Sprintf("it is %s; ensure: %s", in.Status.Active, in.Service.Ensure)
}

// whyDown states why a unit that was tried is down.
func whyDown(in Input, d *Decision) {
	st, t := in.Status, in.Track
	var c unit.Condition
	if len(t.unmet) > 0 {
		c = t.unmet[0]
	}
	switch {
	case c.Assert, t.Last == unit.JobAssert && (len(t.unmet) > 0 || len(in.Disk.Text.Asserts) > 0):
		d.fail(report.JobEnded, "%s", in.unmet(c.Text, "assert", in.Disk.Text.Asserts))
	case len(t.unmet) > 0:
		d.wait(report.Condition, "%s", in.unmet(c.Text, "condition", in.Disk.Text.Conditions))
	case t.Fought > 0 && t.Tries <= 1:
		d.contested(in)
	case st.Active == unit.Inactive && t.Last != "" && t.Last != unit.JobDone:
		d.fail(report.JobEnded, "its %s job ended: %s", t.Job.Type, jobWords(t.Last))
	case st.Active == unit.Inactive && t.Last == unit.JobDone && st.Trouble.ExitCode == 0:
		// systemd has forgotten the run.
		d.fail(report.Exited, "it was started, and %s", t.downBy(in))
	default:
		d.fail(report.Exited, "%s", ending(st))
	}
}

// unmet names the condition, or assert, that held a start back. systemd forgets which
// one it was when nothing refers to the unit; then the lines of its files tell. Those
// of a sensitive declaration are shown to nobody.
func (in Input) unmet(text, word string, lines []string) string {
	switch {
	case in.Memory.Sensitive:
		return "one " + word + " of it is unmet, which is not shown: the declaration is sensitive"
	case text != "":
		return text + " is not met"
	case len(lines) == 1:
		return lines[0] + " is not met"
	case len(lines) > 1:
		return fmt.Sprintf("one of its %ss is not met: %s", word, strings.Join(lines, ", "))
	}
	return "its " + word + " is not met"
}

// oneshot converges a oneshot that has run, and says when that was not now.
func oneshot(in Input, d *Decision) {
	d.converge()
	if in.Memory.Oneshot.Boot != in.Clock.Boot {
		d.Text = "it ran before this boot; a boot runs it again only if it is enabled"
	}
}

func stopped(in Input, d *Decision) {
	st := in.Status
	for _, by := range in.Track.triggers {
		if !in.masked() {
			d.warn("%s may start it again", by)
		}
	}
	switch {
	case st.Active.Down() && st.Job.ID == 0:
		settle(in, d)
		if st.Load == unit.Loaded && st.Trouble.Triggers == nil {
			d.by(in.Clock.Wall.Add(Settle)) // for what may start it again, which the first look leaves out
		}
	case st.Active == unit.Deactivating:
		coming(in, d, report.Stopping)
	case in.Disk.Text.RefuseStop:
		d.refuse(report.ManualOnly, "%s refuses to be stopped by hand (RefuseManualStop=)", st.ID)
	case !in.Track.free(in.Clock.Wall):
		switch {
		case in.Track.Fought > 0:
			d.contested(in)
		case in.Track.Last == unit.JobDone:
			d.fail(report.JobEnded, "it was stopped, and is started again from outside")
		default:
			d.fail(report.JobEnded, "it is still %s; its stop job ended: %s", st.Active, jobWords(in.Track.Last))
		}
		d.by(in.Track.NotBefore)
	default:
		d.job(Stop, in, whyStop(in))
		d.wait(report.Stopping, "stopping")
	}
}

// unmanaged leaves activity alone; a running unit takes its new definition in.
func unmanaged(in Input, d *Decision) {
	st := in.Status
	switch {
	case st.Active.Up() && refresh(in, d):
	case st.Active == unit.FailedState && in.Track.Tries > 0:
		d.fail(report.Exited, "%s, after the restart that its new definition asked for", ending(st))
	default:
		d.converge()
	}
}
