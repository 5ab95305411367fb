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

const socketLink = "sockets.target.wants/web.socket"

func withSocket(name string) *shape.Service {
	return service(name, "/bin/sleep infinity", func(s *shape.Service) {
		*s.Content = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nAlso=web.socket\n"
	})
}

func socket(enabled bool) *shape.Service {
	return service("websock", "", func(s *shape.Service) {
		s.Unit, *s.Enabled = "web.socket", enabled
		*s.Content = "[Socket]\nListenStream=/run/web.sock\n[Install]\nWantedBy=sockets.target\n"
		s.Ensure = shape.Unmanaged
	})
}

func (r *rig) has(name string) bool {
	_, err := os.Lstat(filepath.Join(r.etc, name))
	return err == nil
}

// A service that enables its socket along, and the socket, are declared both:
// the usual pair. In whatever order they come and go, both stand as declared and
// nothing is left at the end.
func TestAPartnerThatIsDeclaredToo(t *testing.T) {
	web, sock := withSocket("web"), socket(true)
	for name, sets := range map[string][][]*shape.Service{
		"at once":           {{web, sock}, {}},
		"the service first": {{web}, {web, sock}, {web}, {}},
		"the socket first":  {{sock}, {web, sock}, {sock}, {}},
		"crosswise":         {{web}, {web, sock}, {sock}, {}},
		"the other way":     {{sock}, {web, sock}, {web}, {}},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				require.NoError(t, os.WriteFile(filepath.Join(r.lib, "web.socket"), []byte(*sock.Content), 0o644))
				for _, set := range sets {
					r.declare(set...)
					r.after(6 * time.Minute) // a full look, where nothing wakes the loop
					for _, s := range set {
						r.outcome(s.Unit, report.Converged, "")
					}
					require.Equal(t, len(set) > 0, r.has(socketLink))
				}
				require.Empty(t, r.loop.Reports())
				require.False(t, r.has("web.socket"))
			})
		})
	}
}

func TestADisabledPartnerIsNotEnabledAlong(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(withSocket("web"), socket(false))
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		r.outcome("web.socket", report.Converged, "")
		require.False(t, r.has(socketLink))
	})
}

func TestTwoThatEnableOnePartnerShareItsLink(t *testing.T) {
	inRig(t, func(r *rig) {
		require.NoError(t, os.WriteFile(filepath.Join(r.lib, "web.socket"), []byte(*socket(true).Content), 0o644))
		r.declare(withSocket("a"), withSocket("b"))
		r.after(3 * time.Second)
		for _, n := range []unit.Name{"a.service", "b.service"} {
			require.Empty(t, r.outcome(n, report.Converged, "").Steps[0].Error)
		}
		r.declare(withSocket("b"))
		r.after(6*time.Minute).outcome("b.service", report.Converged, "")
		require.True(t, r.has(socketLink))
		r.declare()
		r.after(10 * time.Second)
		require.False(t, r.has(socketLink))
	})
}
