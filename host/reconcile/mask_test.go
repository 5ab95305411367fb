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

// masked declares a unit masked, or not masked, and what it is to be besides.
func masked(name string, on bool, more ...func(*shape.Service)) *shape.Service {
	s := &shape.Service{Name: name, Scope: unit.System, Unit: unit.Name(name + ".service"), Masked: &on, Timeout: time.Minute, OnWithdraw: shape.Restore}
	for _, m := range more {
		m(s)
	}
	return s
}

// target is where a link of the unit folder leads; "" for none.
func (r *rig) target(name string) string {
	to, _ := os.Readlink(filepath.Join(r.etc, name))
	return to
}

const sleeps = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"

// vendor lays a unit file of the vendor's out.
func (r *rig) vendor(name, text string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.lib, name), []byte(text), 0o644))
	_, err := r.fake.Other().Reload(r.t.Context())
	require.NoError(r.t, err)
}

// actions are those of the last steps of a unit.
func (r *rig) actions(n unit.Name) []string {
	var all []string
	for _, s := range r.report(n).Steps {
		all = append(all, s.Action)
	}
	return all
}

func TestAUnitIsStoppedDisabledAndThenMasked(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		off := service("web", "/bin/sleep infinity", func(s *shape.Service) {
			on := true
			s.Masked, s.Enabled, s.Ensure = &on, nil, shape.Stopped
		})
		r.declare(off)
		rep := r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"write", "link", "reload", "start", "stop", "unlink", "link", "reload"}, r.actions("web.service"))
		require.Equal(t, "masked", rep.State.Enabled)
		require.Equal(t, "/dev/null", r.target("web.service"))
		require.Empty(t, r.target(link))
		require.Equal(t, unit.Inactive, r.active("web.service"))
		require.Empty(t, r.kept(), "the file was stead's own")

		reloads := r.fake.Calls()["Reload"]
		r.after(time.Hour)
		require.Equal(t, reloads, r.fake.Calls()["Reload"])
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, *web.Content, r.read("web.service"))
		require.NotEmpty(t, r.target(link))
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

func TestAMaskLiesOverWhatItFindsAndGivesItBack(t *testing.T) {
	for name, c := range map[string]struct {
		vendor, own string // that was there before
		enabled     bool
		runs        bool
		load        unit.LoadState
	}{
		"a missing unit":                  {load: unit.NotFound},
		"a vendor's unit that runs":       {vendor: sleeps, enabled: true, runs: true, load: unit.Loaded},
		"a vendor's unit that is down":    {vendor: sleeps, load: unit.Loaded},
		"somebody's own file that runs":   {own: sleeps, enabled: true, runs: true, load: unit.Loaded},
		"a vendor's unit with an own one": {vendor: sleeps, own: sleeps + "#\n", runs: true, load: unit.Loaded},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				if c.vendor != "" {
					r.vendor("web.service", c.vendor)
				}
				if c.own != "" {
					r.edit("web.service", c.own)
				}
				if c.enabled {
					at := filepath.Join(r.etc, link)
					require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
					require.NoError(t, os.Symlink(filepath.Join(r.etc, "web.service"), at))
				}
				_, err := r.fake.Other().Reload(t.Context())
				require.NoError(t, err)
				if c.runs {
					r.outside("web.service", unit.StartJob)
				}
				r.after(2 * time.Second)
				for range 2 { // applied twice
					r.declare(masked("web", true))
					r.after(5*time.Second).outcome("web.service", report.Converged, "")
				}
				require.Equal(t, "/dev/null", r.target("web.service"))
				require.Equal(t, unit.Inactive, r.active("web.service"))
				require.Empty(t, r.target(link))
				require.Len(t, r.kept(), map[bool]int{true: 2}[c.own != ""], "a copy of what was somebody's, and the index")

				r.declare()
				r.after(10 * time.Second)
				require.Equal(t, c.own, r.read("web.service"))
				require.Equal(t, c.enabled, r.target(link) != "")
				require.Equal(t, map[bool]unit.ActiveState{true: unit.Active, false: unit.Inactive}[c.runs], r.active("web.service"))
				st, err := r.fake.Observe(t.Context(), []unit.Name{"web.service"})
				require.NoError(t, err)
				require.Equal(t, c.load, st[0].Load)
				require.Empty(t, r.book.names(), "nothing is remembered")
			})
		})
	}
}

func TestAMaskThatSomebodyMadeIsLiftedAndGivenBack(t *testing.T) {
	for name, lay := range map[string]func(r *rig){
		"a link":        func(r *rig) { r.link("web.service", "../../../../../../dev/null") },
		"an empty file": func(r *rig) { r.edit("web.service", "") },
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.vendor("web.service", sleeps)
				lay(r)
				if name == "a link" {
					require.NoError(t, os.Remove(filepath.Join(r.etc, "web.service")))
					require.NoError(t, os.Symlink("/dev/null", filepath.Join(r.etc, "web.service")))
				}
				_, err := r.fake.Other().Reload(t.Context())
				require.NoError(t, err)
				on := true
				unmask := masked("web", false, func(s *shape.Service) { s.Ensure, s.Enabled = shape.Running, &on })
				refused := *unmask
				refused.Masked = nil
				r.declare(&refused)
				require.Equal(t, "masked: false", r.after(3*time.Second).outcome("web.service", report.Refused, report.IsMasked).Hint)
				r.declare(unmask)
				r.after(5*time.Second).outcome("web.service", report.Converged, "")
				require.NoFileExists(t, filepath.Join(r.etc, "web.service"))
				require.NotEmpty(t, r.target(link))
				require.Equal(t, unit.Active, r.active("web.service"))

				r.declare()
				r.after(5 * time.Second)
				st, err := r.fake.Observe(t.Context(), []unit.Name{"web.service"})
				require.NoError(t, err)
				require.Equal(t, []any{unit.Masked, unit.Inactive}, []any{st[0].Load, st[0].Active})
				require.Empty(t, r.target(link))
			})
		})
	}
}

func TestContentTakesThePlaceOfAMaskThatIsLifted(t *testing.T) {
	inRig(t, func(r *rig) {
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(r.etc, "web.service")))
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		off := false
		web := service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Masked = &off })
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"write", "link", "reload", "start"}, r.actions("web.service"))
		bare := masked("web", false)
		r.declare(bare)
		r.after(3 * time.Second)
		require.NoFileExists(t, filepath.Join(r.etc, "web.service"), "it is not masked again while that is declared")
		r.declare()
		r.after(3 * time.Second)
		require.Equal(t, "/dev/null", r.target("web.service"))
	})
}

func TestAVendorsMaskIsNotLifted(t *testing.T) {
	inRig(t, func(r *rig) {
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(r.lib, "web.service")))
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		r.declare(masked("web", false, func(s *shape.Service) { s.Ensure = shape.Running }))
		rep := r.after(3*time.Second).outcome("web.service", report.Refused, report.IsMasked)
		require.Contains(t, rep.Hint, "declare its content")
		off := false
		r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Masked = &off }))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
	})
}

// Whatever starts it between the stop and the mask: in the end it is masked, and
// down.
func TestAUnitThatIsStartedAllTheTimeIsMasked(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		stop := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					r.fake.Other().Enqueue(r.t.Context(), []unit.JobRequest{{Name: "web.service", Type: unit.StartJob}})
				}
			}
		}()
		r.declare(masked("web", true))
		r.after(20*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Inactive, r.active("web.service"))
		close(stop)
		<-done
	})
}

func TestAMaskThatIsTakenAwayComesBackEverMoreSlowly(t *testing.T) {
	inRig(t, func(r *rig) {
		r.vendor("web.service", sleeps)
		r.declare(masked("web", true))
		r.after(3 * time.Second)
		for range 30 {
			_ = os.Remove(filepath.Join(r.etc, "web.service"))
			r.watch.saw(filepath.Join(r.etc, "web.service"))
			r.after(3 * time.Second)
		}
		r.outcome("web.service", report.Contested, "")
		require.Less(t, r.fake.Calls()["Reload"], 16)
		r.after(20*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, "/dev/null", r.target("web.service"))
	})
}

func TestAnAliasIsNotMasked(t *testing.T) {
	inRig(t, func(r *rig) {
		r.edit("web.service", sleeps)
		r.link("nick.service", "web.service")
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		r.declare(masked("nick", true))
		require.Equal(t, "unit: web.service", r.after(3*time.Second).outcome("nick.service", report.Refused, report.IsAlias).Hint)
	})
}

func TestATemplateIsMasked(t *testing.T) {
	inRig(t, func(r *rig) {
		r.vendor("t@.service", sleeps)
		r.outside("t@1.service", unit.StartJob)
		r.declare(masked("t", true, func(s *shape.Service) { s.Unit = "t@.service" }))
		r.after(3*time.Second).outcome("t@.service", report.Converged, "")
		require.Equal(t, "/dev/null", r.target("t@.service"))
		require.Equal(t, unit.Active, r.active("t@1.service"), "an instance is another unit")
	})
}

// A killed host finds what it did, and goes on.
func TestAKilledMaskGoesOn(t *testing.T) {
	for _, at := range []string{"remembered", "queued", "recorded", "written", "reloaded"} {
		t.Run(at, func(t *testing.T) {
			inRig(t, func(r *rig) {
				web := service("web", "/bin/sleep infinity")
				r.declare(web)
				r.after(3 * time.Second)
				r.stop()
				off := masked("web", true, func(s *shape.Service) { s.Content = web.Content })
				for range 2 {
					r.killAt(at)
					r.declare(off)
					r.after(3 * time.Second)
					r.stop()
				}
				r.start()
				r.declare(off)
				r.after(10*time.Second).outcome("web.service", report.Converged, "")
				require.Equal(t, []any{"/dev/null", "", unit.Inactive}, []any{r.target("web.service"), r.target(link), r.active("web.service")})
				require.Empty(t, r.kept())
				r.stop()
				for range 2 {
					r.killAt(at)
					r.declare(web)
					r.after(3 * time.Second)
					r.stop()
				}
				r.start()
				r.declare(web)
				r.after(10*time.Second).outcome("web.service", report.Converged, "")
				require.Equal(t, []any{*web.Content, unit.Active}, []any{r.read("web.service"), r.active("web.service")})
				require.Empty(t, r.kept())
			})
		})
	}
}
