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

// foreign puts a unit on the machine that is none of stead's.
func (r *rig) foreign(name, content string) {
	r.t.Helper()
	r.edit(name, content)
	_, err := r.fake.Other().Reload(r.t.Context())
	require.NoError(r.t, err)
}

const theirs = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

// How a unit was is noted when stead first looks at it, not at its first job,
// which may come after somebody's stop.
func TestAUnitThatRanBeforeRunsAfterItIsGivenBack(t *testing.T) {
	inRig(t, func(r *rig) {
		r.foreign("web.service", theirs)
		r.outside("web.service", unit.StartJob)
		r.after(time.Second)
		r.declare(service("web", "", func(s *shape.Service) { s.Content, s.Enabled = nil, nil }))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.outside("web.service", unit.StopJob)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

// What ran before and was stopped as declared runs again when it is given back.
func TestAUnitThatWasStoppedAsDeclaredRunsAfterItIsGivenBack(t *testing.T) {
	inRig(t, func(r *rig) {
		r.foreign("web.service", theirs)
		r.outside("web.service", unit.StartJob)
		r.after(time.Second)
		r.declare(service("web", "", func(s *shape.Service) { s.Content, s.Enabled, s.Ensure = nil, nil, shape.Stopped }))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Inactive, r.active("web.service"))
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

// What is on the disk of a host that died a boot acts upon; how the unit was
// before that is known.
func TestAUnitThatABootStartedAfterAHalfDonePassIsGivenBackAtRest(t *testing.T) {
	inRig(t, func(r *rig) {
		r.stop()
		r.killAt("written")
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		r.stop()
		_, err := r.fake.Other().Reload(r.t.Context())
		require.NoError(t, err)
		r.outside("web.service", unit.StartJob)
		r.after(time.Second)
		r.start()
		r.declare(web)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, unit.Inactive, r.active("web.service"))
	})
}

// What stood there as declared was found as well: an edit of it is kept, and it
// is the found one that stays.
func TestWhatStoodThereAsDeclaredIsFoundNotTheLaterEdit(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.foreign("web.service", *web.Content)
		at := filepath.Join(r.etc, link)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.Symlink(filepath.Join(r.etc, "web.service"), at))
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Contains(t, r.watch.dirs, filepath.Dir(at), "its link is watched")
		r.edit("web.service", *web.Content+"# a note\n")
		rep := r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Len(t, rep.Warnings, 1)
		require.Contains(t, rep.Warnings[0], "kept as")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, *web.Content, r.read("web.service"))
		require.FileExists(t, at)
	})
}

// A released unit is not given back, and what stood there before is not lost.
func TestWhatIsOverwrittenIsKeptThoughTheUnitIsReleased(t *testing.T) {
	inRig(t, func(r *rig) {
		r.foreign("web.service", theirs+"# mine\n")
		web := service("web", "/bin/sleep 100", func(s *shape.Service) { s.OnWithdraw = shape.Release })
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, *web.Content, r.read("web.service"))
		found := ""
		for _, k := range r.kept() {
			data, err := os.ReadFile(k)
			require.NoError(t, err)
			found += string(data)
		}
		require.Contains(t, found, "# mine")
	})
}

// What cannot be put back was not found, and is not waited for when the unit is
// given back.
func TestAFolderThatStoodInTheWayIsNotGivenBack(t *testing.T) {
	inRig(t, func(r *rig) {
		file := filepath.Join(r.etc, "web.service")
		require.NoError(t, os.Mkdir(file, 0o755))
		r.declare(service("web", "/bin/sleep infinity"))
		rep := r.after(20*time.Second).outcome("web.service", report.Failed, report.DiskError)
		require.Contains(t, rep.Text, "a folder stands there")
		require.NoError(t, os.Remove(file))
		r.watch.saw(file)
		r.after(time.Minute).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(time.Minute)
		require.Empty(t, r.loop.Reports())
		require.NoFileExists(t, file)
	})
}
