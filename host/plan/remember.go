package plan

import (
	"maps"
	"strconv"

	"stead/host/shape"
	"stead/host/unit"
)

func (in Input) key() string {
	return strconv.FormatUint(in.Generation, 10) + " " + in.Disk.Loaded + seenTriggers(in.Disk)
}

// unknown marks a run that began among bytes that are not known.
const unknown = "stale"

// Remember brings the memory up to date with a look at which no reload was owed:
// which definition the manager has loaded, which of them the run has taken in,
// and how a oneshot ended. It reports whether anything changed; the result must
// be durable before a job is queued.
//
// Equal bytes count as taken in at first sight. A run that began after its
// definition was loaded has taken it in, whoever started it.
func Remember(in Input) (Memory, bool) {
	m, st, was := in.Memory, in.Status, in.Memory
	var news bool
	if m.Triggers, news = triggers(in); !news {
		m.Triggers = was.Triggers
	}
	if in.reloaded() {
		m.Taken = Taken{Digest: m.Refresh.Digest, Invocation: st.Invocation}
	}
	if r := &m.Restarted; r.Generation != 0 && !r.Done && in.Service != nil && !restartOwed(in) {
		r.Done = true
	}
	in.Memory = m
	if in.Disk.Loaded == "" || NeedsReload(in) != "" {
		if m.Taken.Invocation == "" && st.Active.Up() && st.Invocation != "" {
			m.Taken = Taken{Digest: unknown, Invocation: st.Invocation}
		}
		if in.Disk.Loaded != "" && m.Loaded.Digest != "" && in.Disk.Loaded != m.Loaded.Digest {
			m.Loaded.Boot = "" // these bytes may be loaded by now: from when on ours are again, the reload tells
		}
		return m, news || m.differs(was)
	}
	if st.Active.Up() && st.Invocation != "" {
		m.Taken = Taken{Digest: taken(in), Invocation: st.Invocation}
		if m.Began.Invocation != st.Invocation {
			m.Began = m.Taken
		}
	}
	if m.Loaded.Digest != in.Disk.Loaded || m.Loaded.Boot != in.Clock.Boot {
		m.Loaded = Loaded{Digest: in.Disk.Loaded, Boot: in.Clock.Boot, At: in.Clock.Monotonic}
	}
	if ranNow(in) {
		m.Oneshot = Oneshot{Digest: in.Disk.Loaded, Boot: in.Clock.Boot, Result: unit.JobDone}
		if m.Restarted.Generation == in.Generation && m.Restarted.UID == m.UID {
			m.Restarted.Done = true
		}
	}
	return m, news || m.differs(was)
}

func (m Memory) differs(o Memory) bool {
	return m.Taken != o.Taken || m.Began != o.Began || m.Loaded != o.Loaded || m.Oneshot != o.Oneshot || m.Restarted != o.Restarted
}

// taken is the digest of the definition that the present run has taken in.
func taken(in Input) string {
	m, st := in.Memory, in.Status
	switch {
	case onChange(in) == shape.IgnoreChange:
		return in.Disk.Loaded
	case m.Loaded.Digest == in.Disk.Loaded && m.Loaded.Boot == in.Clock.Boot && st.Started >= m.Loaded.At:
		return in.Disk.Loaded // also of a run that a torn look gave the start of the one before
	case m.Taken.Invocation == st.Invocation && m.Taken.Digest != "":
		return m.Taken.Digest
	case m.Taken.Invocation == "":
		return in.Disk.Loaded
	case m.Loaded.Boot == "" && m.Loaded.Digest != "":
		return unknown // it began among bytes that are not known
	case m.Loaded.Boot != in.Clock.Boot:
		return in.Disk.Loaded // a boot reads everything anew
	}
	return m.Taken.Digest
}

// transientRun tells a oneshot that does not remain after its exit: it is
// inactive when all is well, and systemd forgets that it ran.
func transientRun(in Input) bool { return in.Disk.Text.Type == "oneshot" && !in.Disk.Text.RemainAfter }

// ranNow reports whether our own awaited start of a oneshot has just succeeded.
func ranNow(in Input) bool {
	st, t := in.Status, in.Track
	return transientRun(in) && st.Active == unit.Inactive && t.Job.ID == 0 && t.Last == unit.JobDone &&
		(t.Job.Type == unit.StartJob || t.Job.Type == unit.TryRestartJob) && t.Job.Digest == in.Disk.Loaded &&
		len(st.Trouble.Unmet) == 0 && len(t.unmet) == 0 && (st.Trouble.Result == "" || st.Trouble.Result == "success")
}

// oneshotDone reports whether a oneshot counts as running. It is not run again
// by a later pass nor by a reboot; enabling is what a boot runs it by, and then
// a failure at boot counts.
func oneshotDone(in Input) bool {
	return transientRun(in) && in.Status.Active == unit.Inactive &&
		in.Memory.Oneshot.Result == unit.JobDone && in.Memory.Oneshot.Digest == in.Disk.Loaded
}

// Forget drops the memory of paths that are not wanted and stand as they were
// found: there is nothing left to give back.
func Forget(in Input) (Memory, bool) {
	m := in.Memory
	wanted := make(map[string]bool, len(in.Disk.Wants))
	for _, w := range in.wants() {
		wanted[w.Path] = true
	}
	var gone []string
	for p, found := range m.Found {
		if now, looked := in.Disk.At[p]; looked && !wanted[p] && now == found {
			gone = append(gone, p)
		}
	}
	if len(gone) == 0 {
		return m, false
	}
	m.Found, m.Wrote, m.Before = maps.Clone(m.Found), maps.Clone(m.Wrote), maps.Clone(m.Before)
	for _, p := range gone {
		delete(m.Found, p)
		delete(m.Wrote, p)
		delete(m.Before, p)
	}
	return m, true
}
