package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

// socketOf declares a socket for web.service.
func socketOf(listens string, more ...func(*shape.Service)) *shape.Service {
	return service("web-socket", "/bin/true", append([]func(*shape.Service){func(s *shape.Service) {
		s.Unit, s.Enabled = "web.socket", nil
		*s.Content = "[Socket]\nListenStream=" + listens + "\n"
	}}, more...)...)
}

// queued are the jobs that were asked of the manager from some entry of its log on.
func (r *rig) queued(from int) []string {
	return slices.DeleteFunc(slices.Clone(r.fake.Log()[from:]), func(l string) bool { return l == "reload" })
}

func TestWhatStartsOthersIsQueuedFirst(t *testing.T) {
	inRig(t, func(r *rig) {
		timer := service("a-timer", "x", func(s *shape.Service) {
			s.Unit, s.Enabled = "z.timer", nil
			*s.Content = "[Timer]\nOnCalendar=daily\n"
		})
		r.declare(service("web", "/bin/sleep 9000"), service("z", "/bin/sleep 9000"), socketOf("/run/web"), timer)
		r.after(5 * time.Second)
		require.Equal(t, []string{"start web.socket", "start z.timer", "start web.service", "start z.service"}, r.queued(0))
	})
}

// F046: the service goes first in the queue, and systemd restarts the socket between
// its stop and its start.
func TestASocketIsRestartedBetweenStopAndStartOfItsService(t *testing.T) {
	for name, c := range map[string]struct {
		cmd  string
		more func(*shape.Service)
	}{
		"both changed":                  {"/bin/sleep 8000", nil},
		"the socket alone":              {"/bin/sleep 9000", nil},
		"the service would only reload": {"/bin/sleep 8000", func(s *shape.Service) { s.OnChange = shape.ReloadOnChange }},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				more := []func(*shape.Service){reloadable}
				if c.more != nil {
					more = append(more, c.more)
				}
				r.declare(service("web", "/bin/sleep 9000", more...), socketOf("/run/one"))
				r.after(5 * time.Second)
				from := len(r.fake.Log())
				r.declare(service("web", c.cmd, more...), socketOf("/run/two"))
				r.after(10 * time.Second)
				require.Equal(t, []string{"try-restart web.service", "try-restart web.socket"}, r.queued(from))
				r.outcome("web.service", report.Converged, "")
				r.outcome("web.socket", report.Converged, "")
				if name == "the socket alone" {
					require.Contains(t, last(r.report("web.service")).Reason, "web.socket is started anew")
				}
			})
		})
	}
}

func TestAServiceThatDoesNotRunIsNotStartedWithItsSocket(t *testing.T) {
	inRig(t, func(r *rig) {
		idle := func(s *shape.Service) { s.Ensure = shape.Unmanaged }
		r.declare(service("web", "/bin/sleep 9000", idle), socketOf("/run/one"))
		r.after(5 * time.Second)
		r.declare(service("web", "/bin/sleep 8000", idle), socketOf("/run/two"))
		r.after(5 * time.Second)
		require.Empty(t, r.jobs("web.service"))
		require.Equal(t, unit.Inactive, r.active("web.service"))
	})
}

func TestAServiceOfNobodyIsRestartedWithItsSocket(t *testing.T) {
	inRig(t, func(r *rig) {
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 9000\n")
		r.outside("web.service", unit.StartJob)
		r.declare(socketOf("/run/one"))
		r.after(10 * time.Second)
		require.Equal(t, []string{"try-restart"}, slices.DeleteFunc(r.jobs("web.service"), func(j string) bool { return j == "start" }))
		r.outcome("web.socket", report.Converged, "")
		accepts := func(s *shape.Service) {
			*s.Content = strings.Replace(*s.Content, "[Socket]", "[Socket]\nAccept=yes", 1)
		}
		r.declare(socketOf("/run/two", accepts))
		r.after(10 * time.Second)
		require.Len(t, slices.DeleteFunc(r.jobs("web.service"), func(j string) bool { return j == "start" }), 1, "one with an instance for each connection has none to wait for")
	})
}
