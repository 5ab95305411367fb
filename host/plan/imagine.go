package plan

import (
	"path/filepath"

	"stead/host/unit"
)

// What follows says what a manager's answers would be after acts that nobody
// has done, for those who ask what stead would do.

// Reread is st as it would be after a reload: was is the disk that the manager
// has read, now the one that it reads. What systemd would make of bytes that it
// has not seen is not known, so they are taken for good. A name that has come to
// mean another unit is told as that unit at rest.
func Reread(st unit.Status, was, now Disk) unit.Status {
	changed := st.NeedReload || Definition(was) != Definition(now)
	st.NeedReload = false
	switch {
	case st.Asked.IsTemplate(): // answered by its file alone
		st.Load = reloaded(st.Load, now, changed)
		return st
	case now.Fragment == "" && st.Fragment == "": // none, or not one of a file
		st.DropIns = now.DropIns
		return st
	}
	if id := primary(st.Asked, now.Fragment); id != st.ID { // it has run under its old name, if at all
		st = unit.Status{Asked: st.Asked, ID: id, Load: st.Load, Active: unit.Inactive, Sub: "dead"}
	}
	st.Load = reloaded(st.Load, now, changed)
	st.Fragment, st.DropIns = now.Fragment, now.DropIns
	if st.Load == unit.Loaded {
		st.Trouble.LoadError = ""
	}
	if changed {
		st.Trouble.Unmet = nil
		st.CanReload = st.Active.Up() && reloadable(st.ID, now)
	}
	return st
}

func reloaded(load unit.LoadState, now Disk, changed bool) unit.LoadState {
	switch {
	case now.Fragment == "":
		return unit.NotFound
	case now.Mask != "":
		return unit.Masked
	case changed, load == unit.NotFound, load == unit.Masked:
		return unit.Loaded
	}
	return load
}

// primary is the name of the unit that n is loaded as from a fragment.
func primary(n unit.Name, fragment string) unit.Name {
	if fragment == "" {
		return n
	}
	id := unit.Name(filepath.Base(fragment))
	if id.IsTemplate() {
		return id.WithInstance(n.Instance())
	}
	return id
}

// Obeyed is st as it would be when a job has ended as it was asked to. Run
// stands for the run that a start begins.
func Obeyed(st unit.Status, j unit.JobType, k Disk, c Clock, run string) unit.Status {
	again := j == unit.TryRestartJob || j == unit.ReloadOrTryRestartJob && !st.CanReload
	starts := j == unit.StartJob && !st.Active.Up() || again && st.Active.Up()
	switch {
	case starts:
		st.Active, st.Sub = unit.Active, "running"
		st.Invocation, st.Started, st.Restarts = run, c.Monotonic, 0
		st.CanReload = reloadable(st.ID, k)
	case j == unit.StopJob && !st.Active.Down():
		st.Active, st.Sub = unit.Inactive, "dead"
	default:
		return st
	}
	st.Changed, st.MainPID, st.Job = c.Monotonic, 0, unit.Job{}
	st.Trouble = unit.Trouble{LoadError: st.Trouble.LoadError, Triggers: st.Trouble.Triggers}
	if starts && transientRun(Input{Disk: k}) {
		st.Active, st.Sub = unit.Inactive, "dead"
	}
	if st.Active.Down() {
		st.Trouble.Result = "success"
	}
	return st
}
