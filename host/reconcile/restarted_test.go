package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

func restarted(s *shape.Service) { s.Ensure = shape.Restarted }

// generations declares what changes nothing but the generation.
func generations(n time.Duration) func(*shape.Service) {
	return func(s *shape.Service) { s.Timeout = time.Minute + n }
}

func TestAGenerationIsRestartedOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		r.edit("web.service", sleeps)
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		r.outside("web.service", unit.StartJob)
		r.after(time.Second)
		web := func(n time.Duration) *shape.Service {
			return &shape.Service{Name: "web", Scope: unit.System, Unit: "web.service", Ensure: shape.Restarted, Timeout: time.Minute + n}
		}
		var want []string
		for n := range time.Duration(3) {
			r.declare(web(n))
			r.after(time.Hour).outcome("web.service", report.Converged, "")
			want = append(want, "try-restart")
			require.Equal(t, want, r.jobs("web.service"))
			r.stop()
			r.start()
			r.declare(web(n))
			r.after(time.Minute).outcome("web.service", report.Converged, "")
			require.Equal(t, want, r.jobs("web.service"), "another host does not do it again")
		}
		r.outside("web.service", unit.StopJob)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, append(want, "start"), r.jobs("web.service"), "it is to run besides")
		r.declare()
		r.after(3 * time.Second)
		r.declare(web(2))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, append(want, "start", "try-restart"), r.jobs("web.service"), "declared anew it is another declaration")
	})
}

func TestAStartCountsAsRestart(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity", restarted))
		r.after(time.Hour).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start"}, r.jobs("web.service"))
		r.declare(service("web", "/bin/sleep 100000", restarted))
		r.after(time.Hour).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "try-restart"}, r.jobs("web.service"), "one restart takes the content in too")
	})
}

func TestAOneshotThatIsRestartedRunsOnceForEachGeneration(t *testing.T) {
	inRig(t, func(r *rig) {
		once := func(n time.Duration) *shape.Service {
			return service("once", "/bin/true", restarted, generations(n), func(s *shape.Service) {
				*s.Content, s.Enabled = "[Service]\nType=oneshot\nExecStart=/bin/true\n", nil
			})
		}
		for n := range time.Duration(3) {
			r.declare(once(n))
			r.after(time.Hour).outcome("once.service", report.Converged, "")
			require.Len(t, r.jobs("once.service"), int(n)+1)
			r.stop()
			r.start()
		}
	})
}

func TestARestartIsDoneOnceWhoeverIsKilled(t *testing.T) {
	for _, up := range []bool{true, false} {
		for _, at := range []string{"remembered", "queued"} {
			t.Run(at, func(t *testing.T) {
				inRig(t, func(r *rig) {
					r.declare(service("web", "/bin/sleep infinity"))
					r.after(3 * time.Second)
					want := []string{"start", "try-restart"}
					if !up {
						r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Ensure = shape.Stopped }))
						r.after(3 * time.Second)
						want = []string{"start", "stop", "start"}
					}
					r.stop()
					next := service("web", "/bin/sleep infinity", restarted)
					r.killAt(at)
					r.declare(next)
					r.after(3 * time.Second)
					r.stop()
					r.start()
					r.declare(next)
					r.after(time.Hour).outcome("web.service", report.Converged, "")
					require.Equal(t, want, r.jobs("web.service"))
				})
			})
		}
	}
}

func TestARestartThatFailsIsTriedAgainAsAStart(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.declare(service("web", "/bin/false", restarted))
		r.after(10*time.Minute).outcome("web.service", report.Failed, report.Exited)
		jobs := r.jobs("web.service")
		require.Equal(t, 1, count(jobs, "try-restart"))
		require.Less(t, len(jobs), 16)
	})
}
