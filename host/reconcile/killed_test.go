package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
)

// What a killed host was about to overwrite was its own, and is not taken for
// somebody else's by the next one.
func TestAKilledWriteIsNobodysChange(t *testing.T) {
	for _, at := range []string{"recorded", "written"} {
		t.Run(at, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.declare(service("web", "/bin/sleep infinity"), service("gone", "/bin/sleep infinity"))
				r.after(3*time.Second).outcome("web.service", report.Converged, "")
				r.stop()
				next := service("web", "/bin/sleep 100000")
				for range 2 { // the second host is killed at the same boundary as the first
					r.killAt(at)
					r.declare(next)
					r.after(3 * time.Second)
					r.stop()
				}
				r.start()
				r.declare(next)
				rep := r.after(5*time.Second).outcome("web.service", report.Converged, "")
				require.Equal(t, *next.Content, r.read("web.service"))
				require.Empty(t, rep.Warnings)
				require.Empty(t, r.kept(), "copies of what was stead's own")
				r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
				require.Len(t, r.after(5*time.Second).outcome("web.service", report.Converged, "").Warnings, 1)
				require.Empty(t, r.book.unit("web.service").Before, "the change is not under way any more")
			})
		})
	}
}

// A reload that must wait leaves a pass with an older look at what it has just
// changed, from which nothing is concluded.
func TestWhatWasTakenAwayIsRememberedWhileAReloadIsOwed(t *testing.T) {
	inSlowRig(t, 300*time.Millisecond, func(r *rig) {
		there := "[Service]\nExecStart=/bin/sleep 5\n[Install]\nWantedBy=multi-user.target\n"
		r.edit("web.service", there)
		at := filepath.Join(r.etc, link)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(r.etc, "web.service"), at))
		other := service("other", "/bin/sleep infinity")
		r.declare(other)
		r.after(2 * time.Second) // the next reload may not begin yet
		r.declare(other, service("web", "/bin/sleep infinity", func(s *shape.Service) { *s.Enabled = false }))
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		require.NoFileExists(t, at)
		r.declare(other)
		r.after(10 * time.Second)
		to, err := os.Readlink(at)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(r.etc, "web.service"), to)
		require.Equal(t, there, r.read("web.service"))
	})
}
