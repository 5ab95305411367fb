package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

func TestDropInFolders(t *testing.T) {
	for n, want := range map[unit.Name][]string{
		"web.service":        {"service.d", "web.service.d"},
		"a-b-c.service":      {"service.d", "a-b-c.service.d", "a-.service.d", "a-b-.service.d"},
		"a-b@x-y.service":    {"service.d", "a-b@x-y.service.d", "a-b@.service.d", "a-@x-y.service.d", "a-@.service.d"},
		"-.mount":            {"mount.d", "-.mount.d"},
		"dash-.service":      {"service.d", "dash-.service.d"},
		"tidy@.timer":        {"timer.d", "tidy@.timer.d"},
		"var-lib\\x2d.mount": {"mount.d", "var-lib\\x2d.mount.d", "var-.mount.d"},
	} {
		require.Equal(t, want, dropInFolders(n), "%s", n)
	}
}

// Somebody makes the folder first, and writes the file into it later.
func TestADropInOfAnyFolderIsNoticed(t *testing.T) {
	for _, folder := range []string{"web-a.service.d", "web-.service.d", "service.d"} {
		t.Run(folder, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Unit = "web-a.service" }))
				r.after(3*time.Second).outcome("web-a.service", report.Converged, "")
				at := filepath.Join(r.etc, folder)
				require.Contains(t, r.watch.dirs, at)
				require.NoError(t, os.Mkdir(at, 0o755))
				r.watch.saw(at)
				r.after(3 * time.Second)
				require.Contains(t, r.watch.dirs, at)
				looked := r.report("web-a.service").Looked
				r.edit(folder+"/10-x.conf", "[Service]\nNice=1\n")
				require.True(t, r.after(3*time.Second).report("web-a.service").Looked.After(looked))
			})
		})
	}
}

// The folder of units, or one above it, may be taken away and another put in its
// place.
func TestAnotherFolderOfUnitsIsLookedAt(t *testing.T) {
	for _, up := range []string{".", ".."} {
		inRig(t, func(r *rig) {
			r.declare(service("web", "/bin/sleep infinity"))
			r.after(3*time.Second).outcome("web.service", report.Converged, "")
			require.NoError(t, os.Rename(r.etc, r.etc+".old"))
			require.NoError(t, os.Mkdir(r.etc, 0o755))
			require.Empty(t, r.after(10*time.Second).read("web.service"), "nobody has told of it")
			r.watch.saw(filepath.Join(r.etc, up))
			require.NotEmpty(t, r.after(10*time.Second).read("web.service"))
		})
	}
}
