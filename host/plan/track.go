package plan

import (
	"slices"
	"time"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// Retry delays: after a failure, and after something was undone from outside
// too often.
const (
	firstDelay = 5 * time.Second
	lastDelay  = 5 * time.Minute
	// fights is how many times in fightWindow a thing may be undone from outside
	// before it counts as fought over.
	fights      = 3
	fightWindow = time.Minute
)

// Track is what the loop has seen of a unit lately. It lives in memory only: a
// host that starts anew looks with fresh eyes. Its methods return the changed
// value and touch nothing else.
type Track struct {
	key  string    // generation and definition that the effort is for
	seen tuple     // the state at the last look
	at   time.Time // since when it is so

	Begun   time.Time // when the present effort began; zero when there is none
	Settled bool      // converged at the last look
	Job     Job       // ours, in flight
	Last    unit.JobResult
	ended   uint32 // the last job of ours that is known to have ended
	Tries   int    // jobs of ours since it was last settled
	judged  int    // the try whose end NotBefore accounts for

	NotBefore time.Time   // no job and no repair before
	Undone    []time.Time // when it was undone from outside, within the window
	UndoneHow string
	put       bool  // its files were put right since one was last found changed
	blocked   int   // how often in a row the disk could not be put right
	blockedBy error // the last reason
	Fought    int   // how often the delay of a fight has grown
	foreign   time.Time

	other      uint32 // somebody else's job in the queue, and since when it was seen there
	otherSince time.Time

	rises       []rise // deaths that were made good by systemd or by stead
	restarts    uint32
	restartsSet bool
	ending      string           // how its last run that went wrong ended
	triggers    []unit.Name      // what could start it when it was last seen down
	unmet       []unit.Condition // what skipped its last start; systemd forgets it with a reload

	reloaded bool      // a reload of ours has succeeded, and that was not remembered yet
	stale    time.Time // since when the run has a change to take in; zero when it has none

	ReloadedFor string // the Definition that was on disk at the last reload
}

// Job is a job of ours in the manager's queue.
type Job struct {
	ID     uint32
	Type   unit.JobType
	Digest string    // the definition that was loaded when it was queued
	At     time.Time // when it was queued
}

type tuple struct {
	load       unit.LoadState
	active     unit.ActiveState
	sub        string
	invocation string
}

type rise struct {
	at time.Time
	by uint32
}

func (t Track) free(now time.Time) bool { return !now.Before(t.NotBefore) }

// held reports whether the disk is not to be tried again yet, and says why.
func (t Track) held(d *Decision, now time.Time) bool {
	if t.blocked == 0 || t.free(now) {
		return false
	}
	d.failBy(report.DiskError, t.blockedBy)
	d.by(t.NotBefore)
	return true
}

// Since is when the state of the last look began.
func (t Track) Since() time.Time { return t.at }

// quietAt is when a fight counts as over if nothing more happens.
func (t Track) quietAt() time.Time {
	if len(t.Undone) == 0 {
		return time.Time{}
	}
	return t.Undone[len(t.Undone)-1].Add(fightWindow + delay(t.Fought))
}

func delay(n int) time.Duration {
	d := firstDelay
	for ; n > 1 && d < lastDelay; n-- {
		d *= 2
	}
	return min(d, lastDelay)
}

// Queued notes a job that was put in the manager's queue.
func (t Track) Queued(j Job) Track {
	t.Job, t.Last, t.unmet, t.reloaded = j, "", nil, false
	t.Settled = false // what comes of it is our own doing
	t.Tries++
	return t
}

// Rejected notes that the manager would not queue a job.
func (t Track) Rejected(now time.Time) Track {
	t.Job = Job{}
	t.Tries++
	t.judged = t.Tries
	t.NotBefore = now.Add(delay(t.Tries))
	return t
}

// Blocked notes that what stands on the disk could not be put right, and why.
func (t Track) Blocked(why error, now time.Time) Track {
	t.blocked++
	t.blockedBy = why
	t.NotBefore = now.Add(delay(t.blocked))
	return t
}

// Unblocked notes that it could.
func (t Track) Unblocked() Track {
	if t.blocked > 0 && t.Fought == 0 {
		t.NotBefore = time.Time{}
	}
	t.blocked, t.blockedBy, t.put = 0, nil, true
	return t
}

// Ended notes a job that left the queue: ours by its ID, or a foreign one.
func (t Track) Ended(e unit.JobEnd, now time.Time) Track {
	if e.ID == t.Job.ID && e.ID != 0 {
		t.Last, t.Job.ID, t.ended = e.Result, 0, e.ID
		t.reloaded = reloads(t.Job.Type) && e.Result == unit.JobDone
		return t
	}
	t.foreign = now
	return t
}

// See takes a fresh look in: it must be called once for each look, before
// Decide.
func (t Track) See(in Input) Track {
	now := in.Clock.Wall
	t = t.takeUp(in)
	t = t.restart(in)
	if t.Job.ID != 0 && in.Status.Job.ID != t.Job.ID {
		t.Job.ID, t.Last = 0, "" // it is gone, and how it ended was lost with a reload
	}
	if j := in.Status.Job.ID; j != t.Job.ID && j != t.other {
		t.other, t.otherSince = j, now
	}
	s := tuple{in.Status.Load, in.Status.Active, in.Status.Sub, in.Status.Invocation}
	if s != t.seen {
		t.seen, t.at = s, changedAt(in)
	}
	if u := in.Status.Trouble.Unmet; len(u) > 0 {
		t.unmet = u
	} else if in.Status.Active != unit.Inactive {
		t.unmet = nil
	}
	if by := in.Status.Trouble.Triggers; by != nil {
		t.triggers = by // systemd is not asked for them while it runs, nor at the first look
	}
	if r := in.Status.Trouble.Result; r != "" && r != "success" {
		t.ending = ending(in.Status)
	}
	switch {
	case !pending(in) && t.Job.ID == 0:
		t.stale = time.Time{}
	case t.stale.IsZero() && pending(in):
		t.stale = now
	}
	t = t.count(in.Status, now)
	t = t.drift(in)
	t = t.judge(in)
	if t.Fought > 0 && t.free(now) && !now.Before(t.quietAt()) {
		t.Fought, t.Undone = 0, nil
	}
	return t
}

// pathTriggered reports whether a .path unit may start the unit. A start that such
// a unit queued must not be put out of the queue: systemd before 254 then queues
// the next one while it forgets the first, and dies of that at its next reload
// (github.com/systemd/systemd/issues/24577).
func (t Track) pathTriggered() bool {
	return slices.ContainsFunc(t.triggers, func(n unit.Name) bool { return n.Type() == "path" })
}

// restart begins a new effort when the declaration or the definition is another
// than before: whoever mended something need not wait for an old delay.
func (t Track) restart(in Input) Track {
	key := in.key()
	if t.key == key {
		return t
	}
	fresh := Track{key: key, seen: t.seen, at: t.at, Begun: in.Clock.Wall, Job: t.Job, Undone: t.Undone,
		UndoneHow: t.UndoneHow, Fought: t.Fought, restarts: t.restarts, restartsSet: t.restartsSet,
		reloaded: t.reloaded, triggers: t.triggers,
		ReloadedFor: t.ReloadedFor, Settled: t.Settled, put: t.put, other: t.other, otherSince: t.otherSince}
	if t.Fought > 0 {
		fresh.NotBefore = t.NotBefore
	}
	if t.generation() != fresh.generation() {
		fresh.Settled = false
	} else if fresh.stale = t.stale; t.blocked > 0 {
		fresh.blocked, fresh.blockedBy, fresh.NotBefore = t.blocked, t.blockedBy, t.NotBefore
	}
	return fresh
}

func (t Track) generation() string {
	for i := range len(t.key) {
		if t.key[i] == ' ' {
			return t.key[:i]
		}
	}
	return t.key
}

// changedAt translates systemd's own stamp of the last change, so that a host
// that starts anew need not wait for what settled long ago.
func changedAt(in Input) time.Time {
	if c := in.Status.Changed; c > 0 && c <= in.Clock.Monotonic {
		return in.Clock.Wall.Add(c - in.Clock.Monotonic)
	}
	return in.Clock.Wall
}

func (t Track) count(st unit.Status, now time.Time) Track {
	if t.restartsSet && st.Restarts > t.restarts {
		t = t.died(st.Restarts-t.restarts, now)
	}
	t.restarts, t.restartsSet = st.Restarts, true
	return t
}

// died counts deaths of a run that somebody, systemd or stead, made good again.
func (t Track) died(times uint32, now time.Time) Track {
	const most = 64 // what is older is counted with the oldest that is kept
	t.rises = append(slices.Clone(t.rises), rise{now, times})
	if len(t.rises) > most {
		t.rises[1].by += t.rises[0].by
		t.rises = t.rises[1:]
	}
	return t
}

// risen counts automatic restarts within the window.
func (t Track) risen(now time.Time, window time.Duration) (n uint32, last time.Time) {
	for _, r := range t.rises {
		if now.Sub(r.at) < window {
			n, last = n+r.by, r.at
		}
	}
	return n, last
}

// drift notes that something which had settled is so no longer.
func (t Track) drift(in Input) Track {
	if in.Service == nil {
		return t
	}
	if !t.Settled {
		return t.rewritten(in)
	}
	how := ""
	st, now := in.Status, in.Clock.Wall
	switch e := ensure(in); {
	case e == shape.Running && st.Active.Down() && !oneshotDone(in):
		how = t.downBy(in)
	case e == shape.Stopped && (st.Active.Up() || st.Active == unit.Activating):
		how = startedOutside
	}
	if how == "" {
		how = fileDrift(in)
	}
	if how == "" {
		return t
	}
	t.Settled, t.Begun, t.Tries, t.judged, t.put = false, now, 0, 0, false
	switch {
	case st.Active == unit.FailedState && ensure(in) == shape.Running:
		t.Tries, t.judged = 1, 1
		t.NotBefore = now.Add(delay(1))
		return t.died(1, now)
	case how == endedAlone:
		t.UndoneHow = how
		return t.died(1, now)
	}
	return t.undone(how, now)
}

// rewritten notes that files were put right and are not so, although the unit
// had no time to settle in between.
func (t Track) rewritten(in Input) Track {
	how := fileDrift(in)
	if how == "" || !t.put {
		return t
	}
	t.put = false
	return t.undone(how, in.Clock.Wall)
}

const (
	endedAlone     = "its process ended by itself"
	startedOutside = "started from outside"
)

func (t Track) downBy(in Input) string {
	if in.Clock.Wall.Sub(t.foreign) < fightWindow && !t.foreign.IsZero() {
		return "stopped from outside"
	}
	return endedAlone
}

func (t Track) undone(how string, now time.Time) Track {
	kept := make([]time.Time, 0, len(t.Undone)+1)
	for _, u := range t.Undone {
		if now.Sub(u) < fightWindow || t.Fought > 0 {
			kept = append(kept, u)
		}
	}
	if len(kept) > 20 {
		kept = kept[len(kept)-20:]
	}
	t.Undone, t.UndoneHow = append(kept, now), how
	if len(t.Undone) >= fights {
		t.Fought++
		t.NotBefore = now.Add(delay(t.Fought))
	}
	return t
}

// fileDrift says how a file or link of ours was changed from outside.
func fileDrift(in Input) string {
	for _, w := range in.wants() {
		if wrote, ok := in.Memory.Wrote[w.Path]; ok && wrote == w.Entry && in.Disk.At[w.Path] != w.Entry {
			return w.Path + " changed from outside"
		}
	}
	for _, s := range in.unmasks(nil) {
		if wrote, ok := in.Memory.Wrote[s.Path]; ok && wrote.Kind == Absent {
			return "masked from outside by " + s.Path
		}
	}
	return ""
}

// judge sets the delay when a try of ours has come to nothing.
func (t Track) judge(in Input) Track {
	if t.Tries == t.judged || t.Job.ID != 0 {
		return t
	}
	st := in.Status
	failed := false
	switch e := ensure(in); {
	case in.Service == nil:
		failed = wasDown(in.Memory) != st.Active.Down()
	case e == shape.Running:
		failed = st.Active.Down() && !oneshotDone(in)
	case e == shape.Stopped: // a job against it is the beginning of the next run
		failed = st.Active.Up() || st.Active == unit.Activating || st.Job.ID != 0 && st.Job.Type != unit.StopJob
	default:
		failed = st.Active == unit.FailedState
	}
	if !failed && in.Service != nil && st.Active.Up() && !t.reloaded && t.Last != "" && (pending(in) || restartOwed(in)) {
		failed = true // a restart of ours that restarted nothing, a reload that failed
	}
	if failed {
		t.judged = t.Tries
		again := in.Clock.Wall.Add(delay(t.Tries))
		if ensure(in) == shape.Stopped && t.Last == unit.JobDone {
			t = t.undone(startedOutside, in.Clock.Wall) // it was down, if only for a moment
		}
		if t.NotBefore.Before(again) {
			t.NotBefore = again
		}
	}
	return t
}

// Judged takes in how the decision came out. A unit that is fought over and is
// right for the moment is settled too, or its next undoing would not count.
func (t Track) Judged(right bool, now time.Time) Track {
	switch {
	case right:
		t.Settled, t.Begun, t.Tries, t.judged, t.Last = true, time.Time{}, 0, 0, ""
		t.blocked, t.blockedBy = 0, nil // somebody else has put the disk right
		if t.Fought == 0 {
			t.NotBefore = time.Time{}
		}
	case t.Begun.IsZero():
		t.Begun = now
	}
	return t
}

// takeUp takes over, at a first look, the reload in the queue that a host before
// this one has asked for.
func (t Track) takeUp(in Input) Track {
	r, j := in.Memory.Refresh, in.Status.Job
	if t.key == "" && j.Type == unit.ReloadJob && r.Invocation != "" && r.Invocation == in.Status.Invocation && r.Boot == in.Clock.Boot && pending(in) {
		t.Job = Job{ID: j.ID, Type: j.Type, Digest: r.Digest, At: in.Clock.Wall}
	}
	return t
}

// Remembered notes that what came of a reload is in the memory.
func (t Track) Remembered() Track {
	t.reloaded = false
	return t
}

// Reloaded notes that the manager has read the disk as k shows it.
func (t Track) Reloaded(k Disk) Track {
	t.ReloadedFor = Definition(k)
	return t
}
