package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// Whoever stops a unit again and again for ten minutes is answered ever more
// slowly, and is called by that name all the time.
func TestAFightThatGoesOnGrowsSlower(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		for range 200 {
			r.outside("web.service", unit.StopJob)
			r.after(3 * time.Second)
		}
		rep := r.outcome("web.service", report.Contested, "")
		require.Contains(t, rep.Text, "stopped from outside")
		starts := count(r.fake.Log(), "start web.service")
		require.Less(t, starts, 16, "starts in ten minutes")
		require.Greater(t, starts, 6, "it is restored all the same")
		r.after(20*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}
