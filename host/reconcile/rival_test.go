package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// exclusive is a unit whose start stops others.
func exclusive(name, others string, more ...func(*shape.Service)) *shape.Service {
	s := service(name, "/bin/sleep infinity", more...)
	*s.Content = "[Unit]\nConflicts=" + others + "\n" + *s.Content
	return s
}

// Two declared units that stop each other would do so for ever: the one that
// runs goes on, whichever of them names the other.
func TestUnitsThatExcludeEachOtherDoNotTakeTurns(t *testing.T) {
	stopped := func(s *shape.Service) { s.Ensure = shape.Stopped }
	for name, pair := range map[string]func(...func(*shape.Service)) (a, b *shape.Service){
		"the first names the second": func(f ...func(*shape.Service)) (a, b *shape.Service) {
			return exclusive("a", "x.service b.service", f...), service("b", "/bin/sleep infinity")
		},
		"the second names the first": func(f ...func(*shape.Service)) (a, b *shape.Service) {
			return service("a", "/bin/sleep infinity", f...), exclusive("b", "a.service")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				a, b := pair()
				r.declare(a, b)
				r.after(10*time.Second).outcome("a.service", report.Converged, "")
				require.Contains(t, r.outcome("b.service", report.Refused, report.OwnedBy).Text, "a.service")
				require.Equal(t, unit.Inactive, r.active("b.service"))

				off, _ := pair(stopped)
				r.declare(off, b)
				r.after(time.Minute).outcome("b.service", report.Converged, "")
				r.declare(a, b)
				r.after(10*time.Minute).outcome("a.service", report.Refused, report.OwnedBy)
				r.outcome("b.service", report.Converged, "")
				require.Equal(t, 1, count(r.fake.Log(), "start b.service"))
			})
		})
	}
}

// The end of a start is heard before its unit is looked at: in between, another one
// that excludes it is not started.
func TestAStartThatEndedAMomentAgoStands(t *testing.T) {
	m := &managed{status: unit.Status{Active: unit.Inactive}}
	require.False(t, m.stands())
	now := time.Now()
	for result, stands := range map[unit.JobResult]bool{unit.JobDone: true, unit.JobFailed: false} {
		m.dirty, m.track = false, plan.Track{}.Queued(plan.Job{ID: 1, Type: unit.StartJob, At: now})
		require.True(t, m.stands(), "it is being started")
		m.dirty, m.track = true, m.track.Ended(unit.JobEnd{ID: 1, Unit: "a.service", Result: result}, now)
		require.Equal(t, stands, m.stands(), result)
		m.dirty = false
		require.False(t, m.stands(), "it was looked at, and is down")
	}
	m.dirty, m.track = false, plan.Track{}.Queued(plan.Job{ID: 1, Type: unit.StopJob, At: now})
	require.False(t, m.stands())
}
