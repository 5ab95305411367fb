package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// film plays looks at a unit one after the other, as the loop does.
type film struct {
	t  *testing.T
	in Input
	id uint32
}

func (f *film) after(d time.Duration) *film {
	f.in.Clock.Wall, f.in.Clock.Monotonic = f.in.Clock.Wall.Add(d), f.in.Clock.Monotonic+d
	return f
}

func (f *film) state(a unit.ActiveState, sub, result string) *film {
	f.in.Status.Active, f.in.Status.Sub, f.in.Status.Trouble.Result = a, sub, result
	f.in.Status.Changed = f.in.Clock.Monotonic
	return f
}

// look decides, queues the jobs that were asked for, and returns the decision.
func (f *film) look() Decision {
	f.t.Helper()
	f.in.Track = f.in.Track.See(f.in)
	f.in.Memory, _ = Remember(f.in)
	d := Decide(f.in)
	for _, s := range d.Steps {
		if j, ok := s.Job(); ok {
			f.id++
			f.in.Track = f.in.Track.Queued(Job{ID: f.id, Type: j.Type, Digest: f.in.Disk.Loaded, At: f.in.Clock.Wall})
		}
	}
	f.in.Track = f.in.Track.Judged(d.Right, f.in.Clock.Wall)
	return d
}

// stop lets somebody else stop the unit.
func (f *film) stop() {
	f.in.Track = f.in.Track.Ended(unit.JobEnd{ID: 1 << 20, Result: unit.JobDone}, f.in.Clock.Wall)
	f.state(unit.Inactive, "dead", "success")
}

func (f *film) ended(r unit.JobResult) *film {
	f.in.Track = f.in.Track.Ended(unit.JobEnd{ID: f.id, Result: r}, f.in.Clock.Wall)
	return f
}

func (f *film) wants(d Decision, o report.Outcome, r report.Reason, steps ...string) {
	f.t.Helper()
	require.Equal(f.t, o, d.Outcome, d.Text)
	require.Equal(f.t, r, d.Reason, d.Text)
	require.Equal(f.t, steps, actions(d))
}

func TestAFailedStartIsTriedAgainWithGrowingDelay(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.wants(f.look(), report.Waiting, report.Starting, "start web.service")
	wait := 5 * time.Second
	for range 9 {
		f.ended(unit.JobDone).after(300*time.Millisecond).state(unit.FailedState, "failed", "exit-code")
		f.in.Status.Trouble.ExitCode, f.in.Status.Trouble.ExitStatus = 1, 3
		d := f.look()
		f.wants(d, report.Failed, report.Exited)
		require.Contains(t, d.Text, "exited with status 3")
		require.Equal(t, wait, d.Again.Sub(f.in.Clock.Wall))
		f.after(wait - time.Millisecond)
		f.wants(f.look(), report.Failed, report.Exited)
		f.after(time.Millisecond)
		f.wants(f.look(), report.Failed, report.Exited, "start web.service")
		wait = min(2*wait, 5*time.Minute)
	}
}

func TestAMendedDefinitionNeedNotWait(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.look()
	f.ended(unit.JobDone).state(unit.FailedState, "failed", "exit-code")
	f.look()
	f.in.Generation, f.in.Disk.Loaded, f.in.Memory.Loaded.Digest = 2, "L2", "L2"
	f.wants(f.look(), report.Waiting, report.Starting, "reset-failed web.service", "start web.service")
}

func TestAnUnmetConditionWaitsAndSaysWhich(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.look()
	f.in.Status.Trouble.Unmet = []unit.Condition{{Text: "ConditionPathExists=/nope"}}
	f.ended(unit.JobDone)
	d := f.look()
	f.wants(d, report.Waiting, report.Condition)
	require.Equal(t, "ConditionPathExists=/nope is not met", d.Text)

	f.in.Status.Trouble.Unmet = nil // the manager was reloaded
	d = f.after(time.Second).look()
	f.wants(d, report.Waiting, report.Condition)
	require.Equal(t, "ConditionPathExists=/nope is not met", d.Text)
	d = f.after(5 * time.Second).look()
	f.wants(d, report.Waiting, report.Condition, "start web.service")
	f.ended(unit.JobDone).state(unit.FailedState, "failed", "exit-code")
	f.wants(f.look(), report.Failed, report.Exited)
}

// A oneshot that was skipped has not run, also when a reload makes systemd
// forget why.
func TestASkippedOneshotHasNotRun(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""), func(in *Input) { in.Disk.Text.Type = "oneshot" })}
	f.wants(f.look(), report.Waiting, report.Starting, "start web.service")
	f.in.Status.Trouble.Unmet = []unit.Condition{{Text: "ConditionPathExists=/nope"}}
	f.ended(unit.JobDone)
	f.wants(f.look(), report.Waiting, report.Condition)
	f.in.Status.Trouble.Unmet = nil
	f.wants(f.after(time.Second).look(), report.Waiting, report.Condition)
	f.wants(f.after(5*time.Second).look(), report.Waiting, report.Condition, "start web.service")
	f.ended(unit.JobDone)
	f.wants(f.look(), report.Converged, "")
}

func TestAStopFromOutsideIsUndoneAtOnceAndAFightWithDelay(t *testing.T) {
	f := &film{t: t, in: scene()}
	f.wants(f.look(), report.Converged, "")
	back := func() {
		f.ended(unit.JobDone).state(unit.Active, "running", "").after(2 * time.Second)
		f.in.Status.Invocation += "x"
		f.in.Status.Started = f.in.Clock.Monotonic - 2*time.Second
	}
	for range 2 {
		f.after(time.Second).stop()
		f.wants(f.look(), report.Waiting, report.Starting, "start web.service")
		back()
		f.wants(f.look(), report.Converged, "")
	}
	f.stop()
	d := f.look()
	f.wants(d, report.Contested, "")
	require.Equal(t, 5*time.Second, d.Again.Sub(f.in.Clock.Wall))
	f.after(5 * time.Second)
	f.wants(f.look(), report.Contested, "", "start web.service")
	back()
	f.wants(f.look(), report.Contested, "")
	f.after(2 * time.Minute)
	f.wants(f.look(), report.Converged, "")
}

func TestAJobOverItsBudgetIsLeftAndSaidSo(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.look()
	f.in.Status.Job = unit.Job{ID: f.id, Type: unit.StartJob}
	f.state(unit.Activating, "start", "")
	d := f.after(time.Minute).look()
	f.wants(d, report.Waiting, report.Starting)
	require.Equal(t, t0.Add(2*time.Minute), d.Again)
	d = f.after(time.Minute).look()
	f.wants(d, report.Failed, report.BudgetSpent)
	require.Contains(t, d.Text, "left in the queue")
}

func TestTwoRestartsBySystemdWithinTheBudgetAreACrashLoopThoughItRunsNow(t *testing.T) {
	f := &film{t: t, in: scene()}
	f.look()
	for i := range 2 {
		f.after(2*time.Second).state(unit.Active, "running", "")
		f.in.Status.Restarts = uint32(i + 1)
		f.in.Status.Invocation += "r"
		f.in.Status.Started = f.in.Clock.Monotonic
		f.look()
	}
	f.wants(f.after(2*time.Second).look(), report.Failed, report.CrashLoop)
	f.wants(f.after(2*time.Minute).look(), report.Converged, "")
}

func TestARestartByAnybodyAfterTheReloadTakesTheDefinitionIn(t *testing.T) {
	in := scene()
	in.Disk.Loaded, in.Memory.Loaded = "L2", Loaded{Digest: "L2", Boot: "b", At: time.Hour}
	in.Status.Invocation, in.Status.Started = "i2", time.Hour+time.Second
	m, changed := Remember(in)
	require.True(t, changed)
	require.Equal(t, Taken{Digest: "L2", Invocation: "i2"}, m.Taken)

	in.Status.Started = time.Hour - time.Second
	m, _ = Remember(in)
	require.Equal(t, "L1", m.Taken.Digest, "a run that began before the reload has the old one")

	in.Clock.Boot = "other"
	m, _ = Remember(in)
	require.Equal(t, "L2", m.Taken.Digest, "a boot reads everything anew")
}

func TestAtFirstSightEqualBytesCountAsTakenIn(t *testing.T) {
	in := scene(func(in *Input) { in.Memory = Memory{} })
	m, _ := Remember(in)
	require.Equal(t, Taken{Digest: "L1", Invocation: "i1"}, m.Taken)

	in.Status.NeedReload = true
	m, _ = Remember(in)
	require.Equal(t, unknown, m.Taken.Digest, "files newer than the loaded definition are not")
}

func TestOnlyOurOwnAwaitedSuccessMakesAOneshotRun(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, "success"), func(in *Input) { in.Disk.Text.Type = "oneshot" })}
	f.wants(f.look(), report.Waiting, report.Starting, "start web.service")
	f.ended(unit.JobDone)
	f.wants(f.look(), report.Converged, "")
	f.in.Clock.Boot = "next"
	d := f.look()
	f.wants(d, report.Converged, "")
	require.Contains(t, d.Text, "before this boot")
	f.in.Disk.Loaded, f.in.Memory.Loaded.Digest = "L2", "L2"
	f.wants(f.look(), report.Waiting, report.Starting, "start web.service")
}

func TestAForeignStartOfWhatIsDeclaredStoppedIsUndone(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, "success"), func(in *Input) { in.Service.Ensure = shape.Stopped })}
	f.in.Status.Changed = 0
	f.in.Track.at = t0.Add(-time.Hour)
	f.wants(f.look(), report.Converged, "")
	f.state(unit.Activating, "start", "")
	f.in.Status.Job = unit.Job{ID: 99, Type: unit.StartJob}
	f.wants(f.look(), report.Waiting, report.Stopping, "stop web.service")
}

func TestAProcessThatDiesAgainAndAgainAfterItSettledIsACrashLoop(t *testing.T) {
	f := &film{t: t, in: scene()}
	f.wants(f.look(), report.Converged, "")
	die := func() Decision {
		f.after(10*time.Second).state(unit.FailedState, "failed", "exit-code")
		f.in.Status.Trouble.ExitCode, f.in.Status.Trouble.ExitStatus = 1, 9
		f.look()
		f.after(5*time.Minute - 20*time.Second) // whatever the delay is
		f.look()
		f.ended(unit.JobDone).state(unit.Active, "running", "")
		f.in.Status.Invocation += "x"
		f.in.Status.Started = f.in.Clock.Monotonic
		return f.after(2 * time.Second).look()
	}
	f.in.Service.Timeout = time.Hour
	f.wants(die(), report.Converged, "")
	d := die()
	f.wants(d, report.Failed, report.CrashLoop)
	require.Contains(t, d.Text, "status 9; 2 times within 1h")
	require.Equal(t, 2, f.in.Track.Tries, "it counts as one effort, so the delays grow")
}

func TestDeathsAreCountedInBoundedMemory(t *testing.T) {
	f := &film{t: t, in: scene()}
	f.look()
	for i := range 10_000 {
		f.in.Status.Restarts = uint32(i + 1)
		f.after(time.Millisecond).look()
	}
	require.LessOrEqual(t, len(f.in.Track.rises), 64)
	n, _ := f.in.Track.risen(f.in.Clock.Wall, time.Hour)
	require.EqualValues(t, 10_000, n)
}

func TestALookThatIsBehindTheEndOfOurJobDoesNotCallItSomebodyElses(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.look()
	f.in.Status.Job = unit.Job{ID: f.id, Type: unit.StartJob}
	f.ended(unit.JobDone).state(unit.Activating, "start", "")
	f.wants(f.look(), report.Waiting, report.Starting)
	f.in.Status.Job.ID = f.id + 1
	f.wants(f.look(), report.Waiting, report.Busy)
}

// What may start a unit again is left out by the first look at one that is down: it is
// looked at once more.
func TestWhatMayStartAStoppedUnitIsLookedFor(t *testing.T) {
	f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
	f.in.Service.Ensure, f.in.Service.Enabled = shape.Stopped, nil
	d := f.after(time.Minute).look()
	f.wants(d, report.Converged, "")
	require.Equal(t, Settle, d.Again.Sub(f.in.Clock.Wall))
	f.in.Status.Trouble.Triggers = []unit.Name{"web.path"}
	d = f.after(Settle).look()
	f.wants(d, report.Converged, "")
	require.Equal(t, []string{"web.path may start it again"}, d.Warnings)
	require.Zero(t, d.Again)
	f.in.Status.Trouble.Triggers = []unit.Name{}
	require.Empty(t, f.look().Warnings)
}

// A start that a .path unit queued is left in the queue, which a systemd before 254 dies of
// losing; one of anybody else gives way.
func TestAStopYieldsToAStartOfAPathUnit(t *testing.T) {
	for by, yields := range map[unit.Name]bool{"web.path": true, "web.timer": false} {
		stopped := func() *film {
			f := &film{t: t, in: scene(resting(unit.Inactive, ""))}
			f.in.Service.Ensure, f.in.Service.Enabled = shape.Stopped, nil
			f.in.Status.Trouble.Triggers = []unit.Name{by}
			f.wants(f.after(time.Minute).look(), report.Converged, "")
			f.in.Status.Trouble.Triggers = nil
			return f
		}
		f := stopped()
		f.in.Status.Job = unit.Job{ID: 77, Type: unit.StartJob}
		d := f.after(time.Second).look()
		if yields {
			f.wants(d, report.Waiting, report.Busy)
			require.Empty(t, d.Steps)
		} else {
			require.Equal(t, Stop, d.Steps[0].Action)
		}

		d = stopped().state(unit.Activating, "start", "").after(time.Minute).look()
		require.Equal(t, Stop, d.Steps[0].Action)
		require.False(t, d.Steps[0].Yield, "a start that does not end is stopped")

		d = stopped().state(unit.Active, "running", "").after(time.Minute).look()
		require.Len(t, d.Steps, 1)
		require.Equal(t, yields, d.Steps[0].Yield)
		require.Equal(t, []string{string(by) + " may start it again"}, d.Warnings, "also while it runs, where systemd is not asked")
	}
}
