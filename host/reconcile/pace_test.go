package reconcile

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// One who tells of changes without end has a loop look often, and not all the time.
func TestChangesWithoutEndDoNotKeepALoopBusy(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		looks := func(during time.Duration) int {
			before := r.fake.Calls()["Observe"]
			for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Millisecond) {
				r.watch.saw(filepath.Join(r.etc, "web.service.d/x.conf"))
				synctest.Wait()
			}
			return r.fake.Calls()["Observe"] - before
		}
		require.Greater(t, looks(50*time.Millisecond), 40, "what is seldom is followed at once")
		looks(5 * time.Second)
		some := looks(10 * time.Second)
		require.InDelta(t, 100, some, 10)
		time.Sleep(20 * time.Second)
		require.Greater(t, looks(50*time.Millisecond), 40, "and is so again")

		time.Sleep(20 * time.Second)
		r.outside("web.service", unit.StopJob)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
	})
}
