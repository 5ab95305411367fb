package reconcile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

// trigger is the path of a file that units cite.
func (r *rig) trigger(name string) string {
	if r.conf != "" {
		return filepath.Join(r.conf, name)
	}
	return filepath.Join(filepath.Dir(r.etc), "conf", name)
}

// pull changes what units cite; "" takes it away. Who watches is told.
func (r *rig) pull(name, text string) {
	r.t.Helper()
	p := r.trigger(name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(p), 0o755))
	if text == "" {
		require.NoError(r.t, os.Remove(p))
	} else {
		require.NoError(r.t, os.WriteFile(p, []byte(text), 0o644))
	}
	r.watch.saw(p)
}

// cites declares a unit that cites triggers.
func (r *rig) cites(how shape.OnChange, triggers ...string) func(*shape.Service) {
	return func(s *shape.Service) {
		s.OnChange = how
		for _, name := range triggers {
			s.Triggers = append(s.Triggers, r.trigger(name))
		}
	}
}

func reloadable(s *shape.Service) {
	*s.Content = strings.Replace(*s.Content, "[Install]", "ExecReload=/bin/true\n[Install]", 1)
}

// jobs are what was asked of the manager for a unit.
func (r *rig) jobs(n unit.Name) []string {
	var all []string
	for _, l := range r.fake.Log() {
		if what, is := strings.CutSuffix(l, " "+string(n)); is {
			all = append(all, what)
		}
	}
	return all
}

func TestAChangedTriggerIsTakenInAsDeclared(t *testing.T) {
	for name, c := range map[string]struct {
		how  shape.OnChange
		more func(*shape.Service)
		does string
	}{
		"reload":                    {shape.ReloadOnChange, reloadable, "reload"},
		"restart":                   {shape.RestartOnChange, reloadable, "try-restart"},
		"reload or restart, can":    {shape.ReloadOrRestart, reloadable, "reload-or-try-restart"},
		"reload or restart, cannot": {shape.ReloadOrRestart, nil, "reload-or-try-restart"},
		"none":                      {shape.IgnoreChange, reloadable, ""},
		"nothing is declared":       {"", reloadable, "try-restart"},
		"nothing is declared of a timer": {"", func(s *shape.Service) {
			s.Unit, s.Enabled = "web.timer", nil
			*s.Content = "[Timer]\nOnCalendar=daily\n"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.pull("a", "1")
				more := []func(*shape.Service){r.cites(c.how, "a", "b")}
				if c.more != nil {
					more = append(more, c.more)
				}
				web := service("web", "/bin/sleep infinity", more...)
				r.declare(web)
				r.after(3*time.Second).outcome(web.Unit, report.Converged, "")
				want := []string{"start"}
				require.Equal(t, want, r.jobs(web.Unit), "a first start takes them in")
				for i, change := range []func(){
					func() { r.pull("a", "2") },
					func() { r.pull("b", "new") },
					func() { r.pull("a", "") },
					func() { r.pull("a", "2"); r.after(50 * time.Millisecond); r.pull("b", "") },
				} {
					change()
					r.after(3*time.Second).outcome(web.Unit, report.Converged, "")
					if c.does != "" {
						want = append(want, c.does)
					}
					if i == 3 && c.does != "" { // two changes that are seen one after the other
						require.LessOrEqual(t, len(r.jobs(web.Unit)), len(want)+1)
						break
					}
					require.Equal(t, want, r.jobs(web.Unit), "change %d", i)
				}
				before := r.jobs(web.Unit)
				r.pull("a", "2") // the same bytes
				r.after(time.Hour).outcome(web.Unit, report.Converged, "")
				require.Equal(t, before, r.jobs(web.Unit))
				if c.does == "" {
					again := *web
					again.OnChange = shape.RestartOnChange
					r.declare(&again)
					r.after(3 * time.Second)
					require.Equal(t, before, r.jobs(web.Unit), "what was taken in by doing nothing is taken in")
				}
			})
		})
	}
}

func TestAUnitThatIsDownTakesAChangeInWithoutAStart(t *testing.T) {
	for name, ensure := range map[string]shape.Ensure{"nobody says whether it runs": shape.Unmanaged, "it is to be stopped": shape.Stopped} {
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				r.pull("a", "1")
				web := service("web", "/bin/sleep infinity", r.cites("", "a"), func(s *shape.Service) { s.Ensure = ensure })
				r.declare(web)
				r.after(3 * time.Second)
				r.pull("a", "2")
				r.after(3*time.Second).outcome("web.service", report.Converged, "")
				require.Empty(t, r.jobs("web.service"))
				running := *web
				running.Ensure = shape.Running
				r.declare(&running)
				r.after(3*time.Second).outcome("web.service", report.Converged, "")
				require.Equal(t, []string{"start"}, r.jobs("web.service"))
			})
		})
	}
}

func TestWhatRunsAlreadyHasTakenItsTriggersInAtFirstSight(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		r.pull("b", "1")
		r.edit("web.service", sleeps)
		_, err := r.fake.Other().Reload(t.Context())
		require.NoError(t, err)
		r.outside("web.service", unit.StartJob)
		r.after(time.Second)
		web := &shape.Service{Name: "web", Scope: unit.System, Unit: "web.service", Ensure: shape.Running, Timeout: time.Minute, Triggers: []string{r.trigger("a")}}
		r.declare(web)
		r.after(3 * time.Second)
		more := *web
		more.Triggers = []string{r.trigger("a"), r.trigger("b")}
		r.declare(&more)
		r.after(3 * time.Second)
		require.Empty(t, r.jobs("web.service"), "citing more is no change")
		r.pull("a", "2")
		r.declare(web)
		r.after(3 * time.Second)
		require.Equal(t, []string{"try-restart"}, r.jobs("web.service"), "a change is not forgotten when others are cited no more")
	})
}

func TestAReloadIsNeverARestart(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		web := service("web", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"))
		r.declare(web)
		rep := r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"on_change: reload is declared, and web.service has no way to reload: on_change: reload_or_restart, or ExecReload= in its unit file"}, rep.Warnings)
		r.pull("a", "2")
		rep = r.after(time.Hour).outcome("web.service", report.Failed, report.CannotReload)
		require.Equal(t, []string{"start"}, r.jobs("web.service"))
		require.Equal(t, "on_change: reload_or_restart, or ExecReload= in its unit file", rep.Hint)
		require.Contains(t, rep.Text, r.trigger("a")+" changed, and on_change: reload is declared")
		require.Equal(t, unit.Active, r.active("web.service"))

		next := service("web", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"), reloadable)
		r.declare(next)
		rep = r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Len(t, rep.Warnings, 1)
		require.Contains(t, rep.Warnings[0], "web.service runs since before its definition changed")
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
	})
}

func TestAReloadThatFailsIsTriedAgainWithGrowingDelay(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		web := service("web", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"), func(s *shape.Service) {
			*s.Content = strings.Replace(*s.Content, "[Install]", "ExecReload=/bin/false\n[Install]", 1)
		})
		r.declare(web)
		r.after(3 * time.Second)
		r.pull("a", "2")
		rep := r.after(2*time.Second).outcome("web.service", report.Failed, report.RefreshFailed)
		require.Contains(t, rep.Text, r.trigger("a")+" changed, and its reload ended: failed")
		require.NotZero(t, rep.Retry)
		r.after(10 * time.Minute)
		tries := len(r.jobs("web.service"))
		require.Greater(t, tries, 4)
		require.Less(t, tries, 12)
		require.Equal(t, unit.Active, r.active("web.service"))
		r.pull("a", "3")
		r.after(time.Second)
		require.Len(t, r.jobs("web.service"), tries+1, "who has mended something need not wait")
		r.pull("a", "1")
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Len(t, r.jobs("web.service"), tries+1, "what the run has taken in is there again")
	})
}

func TestARefreshHasItsOwnBudget(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		web := service("web", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"), func(s *shape.Service) {
			*s.Content = strings.Replace(*s.Content, "[Install]", "ExecReload=/bin/sleep 300\n[Install]", 1)
		})
		r.declare(web)
		r.after(10 * time.Minute)
		r.pull("a", "2")
		r.after(50*time.Second).outcome("web.service", report.Waiting, report.Refreshing)
		rep := r.after(20*time.Second).outcome("web.service", report.Failed, report.BudgetSpent)
		require.Contains(t, rep.Text, "not done within 1m0s: still reloading")
		r.after(5*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
	})
}

func TestUnitsShareATrigger(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		web, db := service("web", "/bin/sleep infinity", r.cites("", "a")), service("db", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"), reloadable)
		r.declare(web, db)
		r.after(3 * time.Second)
		require.Contains(t, r.watch.folders(), filepath.Dir(r.trigger("a")))
		r.pull("a", "2")
		r.after(3 * time.Second)
		require.Equal(t, []string{"start", "try-restart"}, r.jobs("web.service"))
		require.Equal(t, []string{"start", "reload"}, r.jobs("db.service"))
		r.declare(db)
		r.after(3 * time.Second)
		r.pull("a", "3")
		r.after(3 * time.Second)
		require.Equal(t, []string{"start", "reload", "reload"}, r.jobs("db.service"))
		r.declare()
		r.after(3 * time.Second)
		require.NotContains(t, r.watch.folders(), filepath.Dir(r.trigger("a")))
	})
}

func TestFoldersAndLinksAreWatchedAsTriggers(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("app.d/1.conf", "1")
		r.pull("real/x", "1")
		require.NoError(t, os.Symlink("real/x", r.trigger("link")))
		r.declare(service("web", "/bin/sleep infinity", r.cites("", "app.d")), service("db", "/bin/sleep infinity", r.cites("", "link")),
			service("late", "/bin/sleep infinity", r.cites("", "no/such/folder")))
		r.after(3 * time.Second)
		for _, dir := range []string{"app.d", "real", "no/such", "."} {
			require.Contains(t, r.watch.folders(), r.trigger(dir))
		}
		r.pull("app.d/2.conf", "1")
		r.pull("real/x", "2")
		require.NoError(t, os.MkdirAll(r.trigger("no/such"), 0o755))
		require.NoError(t, os.WriteFile(r.trigger("no/such/folder"), []byte("1"), 0o644))
		r.watch.saw(r.trigger("no")) // the first of them that came
		r.after(3 * time.Second)
		for _, n := range []unit.Name{"web.service", "db.service", "late.service"} {
			require.Equal(t, []string{"start", "try-restart"}, r.jobs(n), n)
		}
	})
}

// A change is not lost with a host, and not taken in twice.
func TestAChangeIsTakenInOnceWhoeverIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		how  shape.OnChange
		does string
	}{
		"reload": {shape.ReloadOnChange, "reload"}, "restart": {shape.RestartOnChange, "try-restart"}, "reload or restart": {shape.ReloadOrRestart, "reload-or-try-restart"},
	} {
		for _, at := range []string{"", "remembered", "queued"} {
			for _, took := range []string{"/bin/true", "/bin/sleep 20"} {
				t.Run(strings.Join([]string{name, at, took}, " "), func(t *testing.T) {
					inRig(t, func(r *rig) {
						r.pull("a", "1")
						web := service("web", "/bin/sleep infinity", r.cites(c.how, "a"), func(s *shape.Service) {
							*s.Content = strings.Replace(*s.Content, "[Install]", "ExecReload="+took+"\n[Install]", 1)
						})
						r.declare(web)
						r.after(3 * time.Second)
						r.stop()
						r.pull("a", "2") // while the host is down
						if at != "" {
							r.killAt(at)
							r.declare(web)
							r.after(10 * time.Second)
							r.stop()
						}
						r.start()
						r.declare(web)
						r.after(40*time.Second).outcome("web.service", report.Converged, "")
						r.after(time.Hour)
						require.Equal(t, []string{"start", c.does}, r.jobs("web.service"))
						require.Equal(t, unit.Active, r.active("web.service"))
					})
				})
			}
		}
	}
}

// A host that cannot learn what became of a reload asks for it again.
func TestAReloadOfWhichNothingIsKnownIsAskedForAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		web := service("web", "/bin/sleep infinity", r.cites(shape.ReloadOnChange, "a"), reloadable)
		r.declare(web)
		r.after(3 * time.Second)
		r.stop()
		r.pull("a", "2")
		r.killAt("queued")
		r.declare(web)
		r.after(3 * time.Second)
		r.stop()
		r.fake.Break("Reloads", systemdtest.Break{Err: fault.New(fault.Timeout, "last reloads", "", errors.New("no answer")), Times: 1})
		r.start()
		r.declare(web)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "reload", "reload"}, r.jobs("web.service"))
	})
}

// The last run has failed with what its triggers were then.
func TestAFailedUnitIsTriedAtOnceWhenATriggerChanges(t *testing.T) {
	inRig(t, func(r *rig) {
		r.pull("a", "1")
		r.declare(service("web", "/bin/false", r.cites("", "a")))
		r.after(20 * time.Minute)
		starts := func() int {
			return len(slices.DeleteFunc(r.jobs("web.service"), func(job string) bool { return job != "start" }))
		}
		tries := starts()
		r.pull("a", "2")
		r.after(time.Second)
		require.Equal(t, tries+1, starts())
	})
}

// Content changes are taken in as declared too.
func TestChangedContentIsReloaded(t *testing.T) {
	inRig(t, func(r *rig) {
		how := func(s *shape.Service) { s.OnChange = shape.ReloadOnChange }
		r.declare(service("web", "/bin/sleep infinity", how, reloadable))
		r.after(3 * time.Second)
		r.declare(service("web", "/bin/sleep 100000", how, reloadable))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
		r.stop()
		r.start()
		r.declare(service("web", "/bin/sleep 100000", how, reloadable))
		r.after(time.Hour).outcome("web.service", report.Converged, "")
		require.Equal(t, []string{"start", "reload"}, r.jobs("web.service"))
	})
}

// F049: neither active nor enabled, and its new definition counts at once.
func TestContentOfATimersServiceIsLoadedWhenItChanges(t *testing.T) {
	inRig(t, func(r *rig) {
		timer := &shape.Service{Name: "timer", Scope: unit.System, Unit: "job.timer", Ensure: shape.Running, Timeout: time.Minute}
		text := "[Timer]\nOnCalendar=daily\n"
		timer.Content = &text
		job := func(cmd string) *shape.Service {
			return service("job", cmd, func(s *shape.Service) { s.Ensure, s.Enabled = shape.Unmanaged, nil })
		}
		r.declare(timer, job("/bin/true"))
		r.after(3 * time.Second)
		reloads := r.fake.Calls()["Reload"]
		r.declare(timer, job("/bin/sleep 1"))
		r.after(3*time.Second).outcome("job.service", report.Converged, "")
		require.Equal(t, reloads+1, r.fake.Calls()["Reload"])
		require.Empty(t, r.jobs("job.service"))
	})
}
