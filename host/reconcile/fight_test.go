package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// Whoever rewrites a file faster than a unit settles is answered ever more slowly
// too.
func TestAFightOverAFileThatNeverSettlesGrowsSlower(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		ours := 0
		for range 1000 {
			if r.read("web.service") == *web.Content {
				ours++
			}
			r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
			r.after(300 * time.Millisecond)
		}
		require.Contains(t, r.outcome("web.service", report.Contested, "").Text, "web.service changed from outside")
		require.Less(t, ours, 16, "writes in five minutes")
		require.Greater(t, ours, 4, "it is put right all the same")
		r.after(20*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, *web.Content, r.read("web.service"))
	})
}

// What was kept is told once, and not for ever.
func TestOfWhatWasKeptTheLastIsTold(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		for i := range 40 {
			r.edit("web.service", fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n", min(i, 20)))
			r.after(20 * time.Minute)
		}
		require.Len(t, r.report("web.service").Warnings, 10)
	})
}

// Two declarations that write into one folder by a link undo each other.
func TestTwoThatShareADropInFolderByALinkAreContested(t *testing.T) {
	inRig(t, func(r *rig) {
		var set []*shape.Service
		require.NoError(t, os.Mkdir(filepath.Join(r.lib, "shared"), 0o755))
		for _, n := range []string{"a", "b"} {
			require.NoError(t, os.Symlink(filepath.Join(r.lib, "shared"), filepath.Join(r.etc, n+".service.d")))
			set = append(set, service(n, "/bin/sleep infinity", func(s *shape.Service) { s.DropIns = map[string]string{"10-x.conf": "# " + n + "\n"} }))
		}
		r.declare(set...)
		r.after(time.Minute)
		for _, s := range set {
			r.outcome(s.Unit, report.Contested, "")
		}
		require.Less(t, r.fake.Calls()["Reload"], 20)
	})
}

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
