package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// Whoever asks right after a declaration was taken over is not told how things
// stood before it, however long the pass takes.
func TestWhatWasDeclaredAnewIsNotReportedAsItWas(t *testing.T) {
	inSlowRig(t, 5*time.Second, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"), service("gone", "/bin/sleep infinity"), service("calm", "/bin/sleep infinity"))
		r.after(20*time.Second).outcome("web.service", report.Converged, "")
		first := r.report("web.service")
		next := service("web", "/bin/sleep 1000")
		r.after(time.Minute).declare(next, service("calm", "/bin/sleep infinity"), service("new", "/bin/sleep infinity"))
		r.after(time.Second) // it reloads
		require.Equal(t, *next.Content, r.read("web.service"))
		web := r.outcome("web.service", report.Waiting, report.Pending)
		require.NotEqual(t, first.Generation, web.Generation)
		require.Equal(t, first.State, web.State, "what was seen last is told all the same")
		r.outcome("new.service", report.Waiting, report.Pending)
		r.outcome("gone.service", report.Waiting, report.Withdrawing)
		r.outcome("calm.service", report.Converged, "")
		for _, n := range []string{"web", "new", "calm"} {
			r.after(30*time.Second).outcome(unit.Name(n+".service"), report.Converged, "")
		}
	})
}

// A unit that was right before the host began has been so for as long as systemd
// says.
func TestAUnitThatWasRightIsSoSinceThen(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		from := time.Now().Add(-4 * time.Second)
		r.after(time.Hour).stop()
		r.start()
		r.declare(web)
		require.True(t, r.after(5*time.Second).outcome("web.service", report.Converged, "").Since.Before(from))
	})
}
