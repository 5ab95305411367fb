package reconcile

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// leave declares nothing but that these cannot be read.
func (r *rig) leave(all ...Left) {
	r.t.Helper()
	require.NoError(r.t, r.loop.Declare(r.t.Context(), Set{Leave: all}))
}

func TestADeclarationThatCannotBeReadIsRefusedAndItsUnitLetBe(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.leave(Left{Name: "web", UID: "u2", Generation: 7, Why: `field "sandbox" is not known to this version`})
		rep := r.after(time.Second).outcome("web.service", report.Refused, report.Unsupported)
		require.Equal(t, `field "sandbox" is not known to this version`, rep.Text)
		require.EqualValues(t, 7, rep.Generation)
		require.Equal(t, "u2", rep.UID)
		require.NotEmpty(t, rep.Steps, "what was done before is not forgotten")
		require.Len(t, r.loop.Reports(), 1)

		r.outside("web.service", unit.StopJob)
		r.after(10 * time.Minute)
		require.Equal(t, unit.Inactive, r.active("web.service"), "neither kept")
		require.Equal(t, *web.Content, r.read("web.service"), "nor given back")
		same := r.report("web.service")
		r.leave(Left{Name: "web", UID: "u2", Generation: 7, Why: `field "sandbox" is not known to this version`})
		require.Same(t, same, r.after(time.Second).report("web.service"), "nothing new is told of it")

		r.declare(web)
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		require.Len(t, r.loop.Reports(), 1)
	})
}

func TestADeclarationThatNeverCouldBeReadIsReportedWithoutAUnit(t *testing.T) {
	inRig(t, func(r *rig) {
		r.leave(Left{Name: "a", Generation: 1, Why: "x"}, Left{Name: "b", Generation: 2, Why: "y"}, Left{Name: "c"})
		r.after(time.Second)
		require.Len(t, r.loop.Reports(), 2, "without a reason there is nothing to report")
		require.Equal(t, "a", r.loop.Reports()[0].Name)
		require.Equal(t, report.Unsupported, r.loop.Reports()[1].Reason)
		r.declare()
		require.Empty(t, r.after(time.Second).loop.Reports())
	})
}

func TestAWithdrawalGoesOnAlthoughTheNameCannotBeRead(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.stop()
		r.killAt("recorded") // of the loop that gives back
		r.declare()
		r.after(time.Second)
		r.stop()
		r.start()
		r.leave(Left{Name: "web", Why: "x"})
		r.after(5 * time.Second)
		require.Empty(t, r.read("web.service"))
	})
}

func TestEachPublishLeavesOneToken(t *testing.T) {
	inRig(t, func(r *rig) {
		token := func() bool {
			select {
			case <-r.loop.Published():
				return true
			default:
				return false
			}
		}
		require.False(t, token(), "nothing was published yet")
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		require.True(t, token())
		require.False(t, token(), "many make one")
		r.outside("web.service", unit.StopJob)
		r.after(time.Second)
		require.True(t, token())
	})
}
