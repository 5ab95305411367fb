package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// F039, F078: a unit that is enabled for what nobody starts is not started by it.
func TestAUnitThatIsEnabledForWhatIsNotThereSaysSo(t *testing.T) {
	inRig(t, func(r *rig) {
		r.vendor("graphical-session.target", "[Unit]\n")
		r.vendor("shutdown.target", "[Unit]\n")
		pulled := func(name, by string) *shape.Service {
			return service(name, "/bin/sleep infinity", func(s *shape.Service) {
				*s.Content, s.Ensure = strings.Replace(*s.Content, "multi-user.target", by, 1), shape.Unmanaged
			})
		}
		all := []*shape.Service{pulled("a", "lost.target"), pulled("b", "graphical-session.target"), pulled("c", "multi-user.target"), pulled("d", "shutdown.target")}
		r.declare(all...)
		r.after(3 * time.Second)
		for _, c := range []struct {
			unit unit.Name
			says []string
		}{
			{"a.service", []string{"it is enabled for lost.target, which the system manager does not know: nothing starts it"}},
			{"b.service", []string{"it is enabled for graphical-session.target, which is not active: it is started when that is"}},
			{"c.service", nil},
			{"d.service", nil},
		} {
			require.Equal(t, c.says, r.outcome(c.unit, report.Converged, "").Warnings, c.unit)
			require.Equal(t, unit.Inactive, r.active(c.unit), "it is no drift")
		}
		r.outside("graphical-session.target", unit.StartJob)
		r.after(10 * time.Minute)
		require.Empty(t, r.report("b.service").Warnings)
		before := r.fake.Calls()["Observe"]
		r.after(10 * time.Minute)
		require.LessOrEqual(t, r.fake.Calls()["Observe"]-before, 4, "two full looks")
	})
}
