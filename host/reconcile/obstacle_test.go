package reconcile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
)

// A folder is never taken away: what cannot be put right is said, and tried again
// until it can be.
func TestAFolderInThePlaceOfAUnitFileIsAFailureUntilItGoes(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		file := filepath.Join(r.etc, "web.service")
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Mkdir(file, 0o755))
		r.watch.saw(file)
		for range 3 {
			rep := r.after(20*time.Second).outcome("web.service", report.Failed, report.DiskError)
			require.Contains(t, rep.Text, file)
			require.NotZero(t, rep.Retry)
			require.Equal(t, "rmdir "+file, rep.Hint)
		}
		reloads := r.fake.Calls()["Reload"]
		require.Less(t, reloads, 8, "tries have growing delay")
		require.NoError(t, os.Remove(file))
		require.Empty(t, r.after(5*time.Minute).outcome("web.service", report.Converged, "").Hint)
		require.Equal(t, *web.Content, r.read("web.service"))
	})
}

// A ledger that cannot be written is tried with growing delay.
func TestABrokenLedgerIsTriedWithGrowingDelay(t *testing.T) {
	inRig(t, func(r *rig) {
		r.book.breaks(errors.New("no space left on device"))
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(10*time.Minute).outcome("web.service", report.Failed, report.DiskError)
		_, failed := r.book.counts()
		require.Less(t, failed, 40)
		r.book.breaks(nil)
		r.after(time.Minute).outcome("web.service", report.Converged, "")
	})
}

// A loop with long pauses is up for a moment now and then; that is no news.
func TestASlowCrashLoopStandsStill(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/false", func(s *shape.Service) {
			*s.Content = "[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=90\n"
			s.Enabled = nil
		}))
		since := r.after(5*time.Second).outcome("web.service", report.Failed, report.CrashLoop).Since
		for range 100 {
			rep := r.after(3*time.Second).outcome("web.service", report.Failed, report.CrashLoop)
			require.Equal(t, since, rep.Since)
		}
		require.Contains(t, r.report("web.service").Text, "restarted by systemd 3 times")
	})
}

// What could not be written was not changed by anybody.
func TestAFailedWriteIsNobodysChange(t *testing.T) {
	inRig(t, func(r *rig) {
		file := filepath.Join(r.etc, "web.service.d")
		require.NoError(t, os.WriteFile(file, nil, 0o644))
		r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.DropIns = map[string]string{"10-a.conf": "[Unit]\n"} }))
		rep := r.after(time.Minute).outcome("web.service", report.Failed, report.DiskError)
		for _, s := range rep.Steps {
			require.NotContains(t, s.Reason, "outside")
		}
	})
}

// What could not be put right, and somebody else has, is no failure of later.
func TestWhatSomebodyElsePutRightIsOver(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		file := filepath.Join(r.etc, "web.service")
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.NoError(t, os.Remove(file))
		require.NoError(t, os.Mkdir(file, 0o755))
		r.watch.saw(file)
		r.after(20*time.Second).outcome("web.service", report.Failed, report.DiskError)
		require.NoError(t, os.Remove(file))
		r.edit("web.service", *web.Content)
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		for range 6 {
			r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
			r.after(2 * time.Second)
		}
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
		rep := r.after(time.Second).outcome("web.service", report.Contested, "")
		require.NotContains(t, rep.Text, "folder")
	})
}

// While a manager is long over a reload no old report stands.
func TestALongReloadIsSaid(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.fake.Break("Reload", systemdtest.Break{Delay: 20 * time.Second, Times: 1})
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
		r.after(8*time.Second).outcome("web.service", report.Waiting, report.OwedReload)
		r.after(time.Minute).outcome("web.service", report.Converged, "")
	})
}
