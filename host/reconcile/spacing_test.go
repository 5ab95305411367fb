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

// Of a link that a killed host made or took away nothing tells but the debt: the
// files of the unit are those that the manager has read.
func TestAReloadForALinkIsOwedWhoeverIsKilled(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Enabled = nil })
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.stop()
		enabled := service("web", "/bin/sleep infinity")
		r.killAt("written")
		r.declare(enabled)
		r.after(3 * time.Second)
		r.stop()
		require.True(t, r.has(link))
		reloads := r.fake.Calls()["Reload"]
		r.start()
		r.declare(enabled)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, reloads+1, r.fake.Calls()["Reload"])
	})
}

// Whatever unit it is of, an old link goes before new content comes: a manager that
// reads in between finds no link of the old to the new.
func TestOldLinksGoBeforeNewContentComes(t *testing.T) {
	inRig(t, func(r *rig) {
		var did []string
		r.stop()
		r.heard = func(m *managed, s report.Step) {
			if s.Action == string(plan.Write) || s.Action == string(plan.Unlink) {
				did = append(did, s.Action+" "+string(m.name))
			}
		}
		r.start()
		a, z := service("a", "/bin/sleep infinity"), service("z", "/bin/sleep infinity")
		r.declare(a, z)
		r.after(3*time.Second).outcome("z.service", report.Converged, "")
		did = nil
		r.declare(service("a", "/bin/sleep 100000"), service("z", "/bin/sleep infinity", func(s *shape.Service) { *s.Enabled = false }))
		r.after(3*time.Second).outcome("z.service", report.Converged, "")
		require.Equal(t, []string{"unlink z.service", "write a.service"}, did)
	})
}
