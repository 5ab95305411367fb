package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// A reload while a forking service starts makes systemd lose its PID file, so it
// waits, and not for ever.
func TestAForkingStartHoldsTheReloadUp(t *testing.T) {
	inRig(t, func(r *rig) {
		forks := service("forks", "/bin/sleep 3600")
		text := "[Service]\nType=forking\nPIDFile=/run/forks.pid\nExecStart=/bin/sleep 3600\n"
		forks.Content = &text
		forks.Enabled = nil
		r.declare(forks)
		r.after(2 * time.Second)
		require.Equal(t, unit.Activating, r.active("forks.service"))
		reloads := r.fake.Calls()["Reload"]
		web := service("web", "/bin/sleep infinity")
		r.declare(forks, web)
		r.after(time.Second).outcome("web.service", report.Waiting, report.OwedReload)
		require.Equal(t, *web.Content, r.read("web.service"), "what belongs on the disk is there")
		require.Equal(t, reloads, r.fake.Calls()["Reload"])
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Activating, r.active("forks.service"), "it starts for long")
	})
}

// While a manager reloads it does nothing else, so a reload keeps the next one away
// for ten times as long.
func TestReloadsAreKeptApart(t *testing.T) {
	const took = 2 * time.Second
	inSlowRig(t, took, func(r *rig) {
		web, db := service("web", "/bin/sleep infinity"), service("db", "/bin/sleep infinity")
		until := func(reloads int) time.Time {
			for r.fake.Calls()["Reload"] < reloads {
				r.after(time.Millisecond)
			}
			return time.Now()
		}
		r.declare(web)
		first := until(1)
		r.declare(web, db)
		require.GreaterOrEqual(t, until(2).Sub(first), reloadShare*took)
	})
}
