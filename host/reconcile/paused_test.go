package reconcile

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// resting declares a set of which units are paused.
func (r *rig) resting(pauses []report.Pause, set []Declared) {
	r.t.Helper()
	require.NoError(r.t, r.loop.Declare(r.t.Context(), Set{Declared: set, Pauses: pauses}))
}

// pauseOf is a pause of web.service by the wall clock of this moment.
func pauseOf(length time.Duration) report.Pause {
	now := time.Now().UTC().Truncate(time.Second)
	return report.Pause{Unit: "web.service", Scope: unit.System, Until: now.Add(length), Seconds: int64(length / time.Second), Declaration: "web",
		By: "operator alice", At: now, Reason: "the disk is changed"}
}

// TestNothingIsDoneToAPausedUnit: not what restores it, not a new generation, not
// its withdrawal; all others are kept as ever, and the end of the pause does all.
func TestNothingIsDoneToAPausedUnit(t *testing.T) {
	inRig(t, func(r *rig) {
		web, other := service("web", "/bin/sleep infinity"), service("other", "/bin/sleep infinity")
		r.declare(web, other)
		r.after(11 * time.Minute) // two full looks have found it right
		pauses := []report.Pause{pauseOf(30 * time.Minute)}
		r.resting(pauses, set(web, other))
		rep := r.after(time.Second).outcome("web.service", report.Paused, "")
		require.Equal(t, pauses[0].String()+"; it is as declared", rep.Text)
		require.Equal(t, &pauses[0], rep.Paused)
		before := r.fake.Calls()

		r.outside("web.service", unit.StopJob)
		rep = r.after(10*time.Minute).outcome("web.service", report.Paused, "")
		require.Equal(t, pauses[0].String()+"; not done before: start web.service", rep.Text)
		require.Equal(t, unit.Inactive, r.active("web.service"))
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 7\n")
		require.NoError(t, os.Remove(filepath.Join(r.etc, "multi-user.target.wants/web.service")))
		rep = r.after(time.Minute).outcome("web.service", report.Paused, "")
		require.Contains(t, rep.Text, "not done before: write "+filepath.Join(r.etc, "web.service")+", link ")

		next := service("web", "/bin/sleep 9000")
		r.resting(pauses, set(next, other))
		require.Equal(t, generation(next), r.after(time.Second).outcome("web.service", report.Paused, "").Generation)
		r.resting(pauses, set(other))
		rep = r.after(time.Minute).outcome("web.service", report.Paused, "")
		require.Contains(t, rep.Text, "it is withdrawn, and not given back before: ")
		require.Equal(t, "[Service]\nExecStart=/bin/sleep 7\n", r.read("web.service"))
		require.Equal(t, before["Reload"], r.fake.Calls()["Reload"])
		require.Equal(t, 1, count(r.fake.Log(), "start web.service"))

		r.outside("other.service", unit.StopJob) // whose pause it is not
		r.after(3*time.Second).outcome("other.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("other.service"))

		r.resting(pauses, set(next, other))
		r.after(30*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, *next.Content, r.read("web.service"))
		require.Equal(t, unit.Active, r.active("web.service"))
		require.Nil(t, r.report("web.service").Paused)
	})
}

// TestAPauseOfWhatIsWithdrawnEnds: with the pause, all of it.
func TestAPauseOfWhatIsWithdrawnEnds(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		r.resting([]report.Pause{pauseOf(time.Minute)}, nil)
		r.after(30*time.Second).outcome("web.service", report.Paused, "")
		require.Equal(t, *web.Content, r.read("web.service"))
		r.after(40 * time.Second)
		require.Empty(t, r.loop.Reports())
		require.Empty(t, r.read("web.service"))
	})
}

// TestAPauseEndsBeforeItsTime: the next set is without it.
func TestAPauseEndsBeforeItsTime(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.resting([]report.Pause{pauseOf(time.Hour)}, set(web))
		r.after(3 * time.Second)
		r.outside("web.service", unit.StopJob)
		r.after(time.Minute)
		require.Equal(t, unit.Inactive, r.active("web.service"))
		r.resting(nil, set(web))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

// TestAPauseIsNoFight: whoever stops a unit again and again while it is paused has
// not fought, and who fought before is met anew.
func TestAPauseIsNoFight(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		for range 8 {
			r.outside("web.service", unit.StopJob)
			r.after(3 * time.Second)
		}
		r.outcome("web.service", report.Contested, "")
		r.resting([]report.Pause{pauseOf(time.Minute)}, set(web))
		for range 20 {
			r.after(time.Second).outcome("web.service", report.Paused, "")
			r.outside("web.service", unit.StartJob)
			r.after(time.Second)
			r.outside("web.service", unit.StopJob)
		}
		r.after(30*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

// TestAPauseIsHeldAcrossARestart: the set that a host begins with has it.
func TestAPauseIsHeldAcrossARestart(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		pauses := []report.Pause{pauseOf(time.Hour)}
		r.stop()
		r.outside("web.service", unit.StopJob)
		r.after(time.Second)
		r.start()
		r.resting(pauses, set(web))
		r.after(50*time.Minute).outcome("web.service", report.Paused, "")
		require.Equal(t, unit.Inactive, r.active("web.service"))
		r.after(11*time.Minute).outcome("web.service", report.Converged, "")
	})
}

// TestAPauseIsNotLongerThanAskedFor: of a clock that is a day behind.
func TestAPauseIsNotLongerThanAskedFor(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		p := pauseOf(10 * time.Minute)
		p.Until = p.Until.Add(24 * time.Hour)
		r.resting([]report.Pause{p}, set(web))
		r.after(9*time.Minute).outcome("web.service", report.Paused, "")
		r.resting([]report.Pause{p}, set(web)) // it is the same one
		r.after(2*time.Minute).outcome("web.service", report.Converged, "")

		over := pauseOf(10 * time.Minute)
		over.Until = time.Now()
		r.resting([]report.Pause{over}, set(web))
		r.after(time.Second).outcome("web.service", report.Converged, "")
	})
}

// TestAPausedUnitBehindAnObstacleIsPaused: and what is in the way is told besides;
// when the pause is over it is told alone.
func TestAPausedUnitBehindAnObstacleIsPaused(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		web := service("web", "/bin/sleep infinity")
		p := pauseOf(time.Minute)
		r.resting([]report.Pause{p}, set(web))
		require.Equal(t, p.String()+"; besides: "+lingerOff.Text, r.after(time.Second).outcome("web.service", report.Paused, "").Text)
		r.after(time.Minute).outcome("web.service", lingerOff.Outcome, lingerOff.Reason)
		b.set(nil)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
	})
}

// TestADryRunTellsWhatComesAfterAPause: the steps, and that they are not taken before.
func TestADryRunTellsWhatComesAfterAPause(t *testing.T) {
	inRig(t, func(r *rig) {
		web, other := service("web", "/bin/sleep infinity"), service("other", "/bin/sleep infinity")
		r.declare(web, other)
		r.after(3 * time.Second)
		p := pauseOf(time.Hour)
		r.resting([]report.Pause{p}, set(web, other))
		r.outside("web.service", unit.StopJob)
		r.after(time.Second)
		previews := r.plan([]*shape.Service{service("web", "/bin/sleep 9")})
		require.Len(t, previews, 1)
		require.Equal(t, []plan.Action{plan.Write, plan.Reload, plan.Start}, actions(previews[0]))
		require.Equal(t, report.Paused, previews[0].Outcome)
		require.Equal(t, p.String(), previews[0].Text)
		require.Len(t, r.plan([]*shape.Service{service("other", "/bin/sleep 9")}), 1, "the paused one is not started by it")
		r.after(time.Second).outcome("web.service", report.Paused, "")
	})
}

func actions(p plan.Preview) []plan.Action {
	var all []plan.Action
	for _, s := range p.Steps {
		all = append(all, s.Action)
	}
	return slices.Clip(all)
}
