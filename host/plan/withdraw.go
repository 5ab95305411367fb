package plan

import (
	"stead/host/report"
	"stead/host/unit"
)

// withdraw gives a unit back: stop what stead started, while the old files are
// there; then links and files; then the reload; then what was running before.
func withdraw(in Input, d *Decision) {
	d.wait(report.Withdrawing, "putting back what stood there before")
	if wasDown(in.Memory) && unstopped(in, d) {
		return
	}
	if steps := giveBack(in, nil, "withdrawn"); len(steps) > 0 {
		if in.Track.held(d, in.Clock.Wall) {
			return
		}
		d.Steps = append(steps, reloadStep("files were given back"))
		return
	}
	if why := NeedsReload(in); why != "" {
		d.Steps = append(d.Steps, reloadStep(why))
		return
	}
	if in.Memory.Activity != "" && in.Status.Active == unit.FailedState && in.Memory.Activity != unit.FailedState &&
		in.Track.Tries < 3 {
		d.Steps = append(d.Steps, Step{Action: ResetFailed, Unit: in.Status.Asked, Reason: "withdrawn"})
	}
	d.Done = in.Status.Job.ID == 0 && rerun(in, d)
}

// wasDown reports whether the unit was at rest when stead first gave it a job.
func wasDown(m Memory) bool { return m.Activity.Down() }

// unstopped reports whether the unit still runs that stead started.
func unstopped(in Input, d *Decision) bool {
	st := in.Status
	switch {
	case st.Load == unit.NotFound && st.Active.Down(), st.Active.Down() && st.Job.ID == 0:
		return false
	case st.Job.ID != 0 && st.Job.Type == unit.StopJob, st.Active == unit.Deactivating:
		d.wait(report.Withdrawing, "stopping it (job %d)", st.Job.ID)
		return true
	case !in.Track.free(in.Clock.Wall):
		d.by(in.Track.NotBefore)
		return true
	case in.Disk.Text.RefuseStop:
		return false
	}
	d.job(Stop, in, "withdrawn; it was not running before")
	return true
}

// rerun brings back a unit that ran before, with the definition that it had; it
// reports whether there is nothing left to do.
func rerun(in Input, d *Decision) bool {
	st := in.Status
	if in.Memory.Activity == "" || wasDown(in.Memory) || st.Load != unit.Loaded || in.Track.Tries >= 3 {
		return true
	}
	switch {
	case st.Active.Up() && pending(in):
		act, can := refreshes(in)
		if !can {
			return true
		}
		d.job(act, in, "withdrawn; it ran before with the old definition")
	case st.Active.Down():
		d.job(Start, in, "withdrawn; it was running before")
	default:
		return true
	}
	return false
}
