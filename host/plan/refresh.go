package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// onChange is what the running unit does about a change of what it is made of. A
// unit that is being given back does what it was declared with.
func onChange(in Input) shape.OnChange {
	how := in.Memory.OnChange
	if in.Service != nil {
		how = in.Service.OnChange
	}
	switch {
	case how != "":
		return how
	case restarts(in.Status.ID):
		return shape.RestartOnChange
	}
	return shape.IgnoreChange
}

// canReload reports whether the unit has a way to reload: of one that runs the
// manager knows it, of others their files tell.
func canReload(in Input) bool {
	if in.Status.Active.Up() {
		return in.Status.CanReload
	}
	return reloadable(in.Status.ID, in.Disk)
}

// reloadable reports whether a unit has a way to reload by what its files say.
func reloadable(n unit.Name, k Disk) bool { return k.Text.Reloads || n.Type() == "mount" }

// stale says in which way the run has not taken in what the unit is made of: its
// loaded definition, or a trigger; "" when it has. That is the pending refresh.
func stale(in Input) string {
	st, m := in.Status, in.Memory
	if !st.Active.Up() || st.Invocation == "" {
		return ""
	}
	if in.Disk.Loaded != "" && m.Taken.Invocation == st.Invocation && m.Taken.Digest != in.Disk.Loaded {
		return "it runs an older definition"
	}
	for _, p := range slices.Sorted(maps.Keys(in.Disk.Triggers)) {
		now, t := in.Disk.Triggers[p].Digest, m.Triggers[p]
		if now != "" && t.Run == st.Invocation && t.Taken != "" && t.Taken != now {
			return p + " changed"
		}
	}
	return ""
}

// pending reports whether there is a refresh to do.
func pending(in Input) bool { return stale(in) != "" }

// older reports whether the last run that was seen had not taken in what the unit
// is made of now.
func older(in Input) bool {
	m := in.Memory
	if newer(m.Taken.Digest, in) || newer(in.Track.Job.Digest, in) {
		return true
	}
	for p, now := range in.Disk.Triggers {
		if t := m.Triggers[p]; t.Taken != "" && now.Digest != "" && t.Taken != now.Digest {
			return true
		}
	}
	return false
}

// newer reports whether the definition is another one than the run, or job, began with.
func newer(began string, in Input) bool { return began != "" && began != in.Disk.Loaded }

// refreshes is the step that takes a change in; false when there is none to take.
func refreshes(in Input) (Action, bool) {
	switch how := onChange(in); {
	case how == shape.ReloadOnChange && in.Status.CanReload:
		return ReloadUnit, true
	case how == shape.ReloadOrRestart:
		return ReloadOrRestart, true
	case how == shape.RestartOnChange:
		return Restart, true
	}
	return "", false
}

// refresh has a run take in what it has not yet.
func refresh(in Input, d *Decision) bool {
	why := stale(in)
	if why == "" || onChange(in) == shape.IgnoreChange {
		return false
	}
	act, can := refreshes(in)
	verb, busy := "restart", "restarting: "
	if act == ReloadUnit || act == ReloadOrRestart && in.Status.CanReload {
		verb, busy = "reload", "reloading: "
	}
	switch {
	case !can:
		d.fail(report.CannotReload, "%s, and %s", why, noReload(in))
		d.Hint = reloadHint
		return true
	case verb == "restart" && (in.Disk.Text.RefuseStop || in.Disk.Text.RefuseStart):
		d.warn("%s: %s, and it cannot be restarted by hand (RefuseManualStart= or RefuseManualStop=)", in.Status.ID, why)
		return false
	case !in.Track.free(in.Clock.Wall):
		reason := report.RefreshFailed
		if verb == "restart" {
			reason = report.JobEnded
		}
		d.fail(reason, "%s, and its %s ended: %s; tried again at %s", why, verb, jobWords(in.Track.Last), in.Track.NotBefore.Format("15:04:05"))
		d.by(in.Track.NotBefore)
		return true
	}
	d.job(act, in, why)
	d.wait(report.Refreshing, "%s%s", busy, why)
	return true
}

const reloadHint = "on_change: reload_or_restart, or ExecReload= in its unit file"

func noReload(in Input) string {
	return fmt.Sprintf("on_change: reload is declared, and %s has no way to reload", in.Status.ID)
}

// noted warns of what keeps changes from being seen, or taken in.
func (d *Decision) noted(in Input) {
	if onChange(in) == shape.ReloadOnChange && !canReload(in) && d.Reason != report.CannotReload {
		d.warn("%s: %s", noReload(in), reloadHint)
	}
	if how := onChange(in); in.Service.Unit.Type() == "timer" && (how == shape.RestartOnChange || how == shape.ReloadOrRestart) {
		d.warn("on_change: %s of a timer may start what it is for at once (OnActiveSec=, Persistent=); without it the timer takes a new schedule in as it is", how)
	}
	if restartWaits(in) {
		d.warn("%s runs since before its definition changed: what only a start takes in, such as ExecStart= and Environment=, waits for a restart", in.Status.ID)
	}
	for _, p := range slices.Sorted(maps.Keys(in.Disk.Triggers)) {
		if t := in.Disk.Triggers[p].Trouble; t != "" {
			d.warn("trigger %s: %s", p, t)
		}
	}
}

// restartWaits reports whether the run has taken a new definition in as far as that
// goes without a restart, by a reload or because on_change: none says so.
func restartWaits(in Input) bool {
	st, m := in.Status, in.Memory
	return st.Active.Up() && restarts(st.ID) && m.Began.Invocation == st.Invocation && m.Began.Digest != "" &&
		m.Taken.Invocation == st.Invocation && m.Taken.Digest == in.Disk.Loaded && m.Began.Digest != m.Taken.Digest
}

// triggers brings up to date what was seen and taken in of each trigger. Bytes that
// are seen for the first time count as taken in; a run that began after bytes were
// first seen has taken them in, and so has one that has reloaded.
func triggers(in Input) (map[string]Trigger, bool) {
	if len(in.Disk.Triggers) == 0 {
		return nil, len(in.Memory.Triggers) > 0
	}
	all := make(map[string]Trigger, len(in.Disk.Triggers))
	for p, now := range in.Disk.Triggers {
		old, known := in.Memory.Triggers[p]
		if now.Digest == "" { // nobody knows what is there
			if known {
				all[p] = old
			}
			continue
		}
		all[p] = in.trigger(p, now.Digest, old, known)
	}
	return all, !maps.Equal(all, in.Memory.Triggers)
}

func (in Input) trigger(p, now string, old Trigger, known bool) Trigger {
	st, c := in.Status, in.Clock
	t := old
	if !known || old.Digest != now {
		t.Digest, t.Boot, t.At = now, c.Boot, c.Monotonic
	}
	if !st.Active.Up() || st.Invocation == "" {
		return t
	}
	switch {
	case !known, onChange(in) == shape.IgnoreChange, t.Boot != c.Boot, st.Started >= t.At:
		t.Taken = now
	case in.reloaded() && in.Memory.Refresh.Triggers[p] != "":
		t.Taken = in.Memory.Refresh.Triggers[p]
	case old.Run != st.Invocation || old.Taken == "":
		t.Taken = old.Digest // which stood there when the run began, at least
	}
	t.Run = st.Invocation
	return t
}

// reloaded reports whether the reload that was asked for last has succeeded, and
// the run is the one that it was asked of.
func (in Input) reloaded() bool {
	r := in.Memory.Refresh
	if r.Invocation == "" || r.Invocation != in.Status.Invocation {
		return false
	}
	return in.Track.reloaded || in.Reloaded > 0 && r.Boot == in.Clock.Boot && in.Reloaded >= r.At
}

// Unsure reports whether a reload was asked for whose end nobody heard of: then the
// manager is to be asked when the unit last reloaded.
func Unsure(in Input) bool {
	r, t := in.Memory.Refresh, in.Track
	return r.Invocation != "" && r.Invocation == in.Status.Invocation && r.Boot == in.Clock.Boot &&
		t.Job.ID == 0 && t.Last == "" && !t.reloaded && in.Status.Job.ID == 0 && pending(in)
}

// Intend notes in the memory what a job is asked for: the run that it is asked of,
// and what there is to take in. It must be durable before the job is queued.
func Intend(in Input, s Step) (Memory, bool) {
	m, st := in.Memory, in.Status
	switch s.Action {
	case ReloadUnit, ReloadOrRestart:
		m.Refresh = Refresh{Invocation: st.Invocation, Boot: in.Clock.Boot, At: in.Clock.Monotonic, Digest: in.Disk.Loaded}
		if len(in.Disk.Triggers) > 0 {
			m.Refresh.Triggers = make(map[string]string, len(in.Disk.Triggers))
		}
		for p, now := range in.Disk.Triggers {
			m.Refresh.Triggers[p] = now.Digest
		}
		return m, true
	case Start, Restart:
		if !restartOwed(in) {
			return m, false
		}
		was := m.Restarted
		m.Restarted = Restarted{UID: m.UID, Generation: in.Generation, Old: st.Invocation}
		return m, m.Restarted != was
	}
	return m, false
}

// restartOwed reports whether the unit is declared restarted, and that was not done
// yet for this generation. Any run but the one before counts.
func restartOwed(in Input) bool {
	if in.Service == nil || in.Service.Ensure != shape.Restarted || in.masked() {
		return false
	}
	r, st := in.Memory.Restarted, in.Status
	if r.UID != in.Memory.UID || r.Generation != in.Generation {
		return true
	}
	return !r.Done && !(st.Active.Up() && st.Invocation != "" && st.Invocation != r.Old)
}

// restartOnce restarts a unit that is declared restarted.
func restartOnce(in Input, d *Decision) {
	t := in.Track
	switch {
	case in.Disk.Text.RefuseStop || in.Disk.Text.RefuseStart:
		d.refuse(report.ManualOnly, "%s refuses to be restarted by hand (RefuseManualStart= or RefuseManualStop=)", in.Status.ID)
	case !t.free(in.Clock.Wall):
		d.fail(report.JobEnded, "its restart ended: %s; tried again at %s", jobWords(t.Last), t.NotBefore.Format("15:04:05"))
		d.by(t.NotBefore)
	default:
		d.job(Restart, in, "ensure: restarted")
		d.wait(report.Starting, "restarting")
	}
}

// seenTriggers is a text of what stands at the triggers.
func seenTriggers(k Disk) string {
	if len(k.Triggers) == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(k.Triggers)) {
		fmt.Fprintf(&b, " %s=%s", p, k.Triggers[p].Digest)
	}
	return b.String()
}

// reloads reports whether a job of that type takes a change in without a new run.
func reloads(j unit.JobType) bool { return j == unit.ReloadJob || j == unit.ReloadOrTryRestartJob }
