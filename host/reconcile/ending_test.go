package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// What a host that is told to end leaves undone has not failed, and the next one
// does it.
func TestAnEndingHostReportsNoFailure(t *testing.T) {
	inSlowRig(t, 5*time.Second, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(time.Second) // it reloads
		require.Equal(t, *web.Content, r.read("web.service"))
		r.stop()
		for _, rep := range r.loop.Reports() {
			require.NotEqual(t, report.Failed, rep.Outcome, rep.Text)
		}
		r.start()
		r.declare(web)
		r.after(20*time.Second).outcome("web.service", report.Converged, "")
	})
}
