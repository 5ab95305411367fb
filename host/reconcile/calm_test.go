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

// TestAFullLookSeesWhatNobodyTold holds a look that finds nothing new, after
// which nothing is decided, against one that finds something.
func TestAFullLookSeesWhatNobodyTold(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web, service("db", "/bin/sleep infinity"))
		first := r.after(5*time.Second).outcome("web.service", report.Converged, "")
		calls := r.fake.Calls()
		later := r.after(10 * time.Minute).report("web.service")
		require.Greater(t, r.fake.Calls()["Observe"], calls["Observe"], "there was a full look")
		require.True(t, later.Looked.After(first.Looked.Add(5*time.Minute)), "its report says when it was looked at")
		again := *later
		again.Looked = first.Looked
		require.Equal(t, first, &again, "and is the same otherwise")

		require.NoError(t, os.WriteFile(filepath.Join(r.etc, "web.service"), []byte("[Service]\nExecStart=/bin/sleep 1\n"), 0o644))
		r.after(10 * time.Minute)
		require.Equal(t, *web.Content, r.read("web.service"))
	})
}

// Where a declaration stands is not part of what it declares: a report follows
// it without a look at the unit.
func TestAReportFollowsItsDeclarationToAnotherPlace(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		require.Empty(t, r.after(5*time.Second).outcome("web.service", report.Converged, "").Origin)
		looks := r.fake.Calls()["Observe"]
		r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Origin = shape.Origin{File: "mesh/web.yaml", Line: 7} }))
		require.Equal(t, "mesh/web.yaml:7", r.after(5*time.Second).report("web.service").Origin)
		require.Equal(t, looks, r.fake.Calls()["Observe"])
	})
}
