package reconcile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

const link = "multi-user.target.wants/web.service"

func TestADeclaredUnitIsWrittenEnabledAndStarted(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(300*time.Millisecond).outcome("web.service", report.Waiting, report.Settling)
		r.after(time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, *web.Content, r.read("web.service"))
		to, err := os.Readlink(filepath.Join(r.etc, link))
		require.NoError(t, err)
		require.Equal(t, filepath.Join(r.etc, "web.service"), to)
		require.Equal(t, 1, r.fake.Calls()["Reload"])
	})
}

func TestAHundredUnitsTakeOneReload(t *testing.T) {
	inRig(t, func(r *rig) {
		var set []*shape.Service
		for i := range 100 {
			set = append(set, service(fmt.Sprintf("u%03d", i), "/bin/sleep infinity"))
		}
		r.declare(set...)
		r.after(5 * time.Second)
		for _, rep := range r.loop.Reports() {
			require.Equal(t, report.Converged, rep.Outcome, "%s: %s", rep.Unit, rep.Text)
		}
		require.Equal(t, 1, r.fake.Calls()["Reload"])
	})
}

func TestAQuietMinuteAsksTheManagerNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"), service("once", "/bin/true", func(s *shape.Service) {
			*s.Content = "[Service]\nType=oneshot\nExecStart=/bin/true\n"
			s.Enabled = nil
		}))
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		r.outcome("once.service", report.Converged, "")
		before := r.fake.Calls()
		r.after(time.Minute)
		require.Equal(t, before, r.fake.Calls())
		r.after(4 * time.Minute)
		require.NotEqual(t, before, r.fake.Calls(), "the full look")
	})
}

func TestWhatIsStoppedOutsideIsStartedAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(2 * time.Second)
		r.outside("web.service", unit.StopJob)
		r.after(200 * time.Millisecond)
		require.Equal(t, unit.Active, r.active("web.service"))
		require.Equal(t, 1, r.fake.Calls()["Reload"], "a start needs no reload")
	})
}

func TestAnEditedFileIsPutBackAndTheEditKept(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(2 * time.Second)
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
		r.after(2 * time.Second)
		require.Equal(t, *web.Content, r.read("web.service"))
		rep := r.outcome("web.service", report.Converged, "")
		require.Len(t, rep.Warnings, 1)
		require.Contains(t, rep.Warnings[0], "kept as")
	})
}

func TestADeletedUnitFileComesBackAndTheUnitGoesOn(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(2 * time.Second)
		require.NoError(t, os.Remove(filepath.Join(r.etc, "web.service")))
		r.watch.saw(filepath.Join(r.etc, "web.service"))
		r.after(2*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, *web.Content, r.read("web.service"))
	})
}

func TestChangedContentRestartsOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(2 * time.Second)
		r.declare(service("web", "/bin/sleep 100000"))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, 1, count(r.fake.Log(), "try-restart web.service"), r.fake.Log())
		r.after(10 * time.Minute)
		require.Equal(t, 1, count(r.fake.Log(), "try-restart web.service"))
	})
}

func count(log []string, what string) int {
	n := 0
	for _, l := range log {
		if l == what {
			n++
		}
	}
	return n
}

func TestOneBrokenUnitHoldsNobodyUp(t *testing.T) {
	inRig(t, func(r *rig) {
		set := []*shape.Service{
			service("dies", "/bin/false"),
			service("absent", "/nonexistent"),
			{Name: "missing", Scope: unit.System, Unit: "missing.service", Ensure: shape.Running, Timeout: time.Minute},
			service("bad", "", func(s *shape.Service) { *s.Content = "[Servce]\nExecStart=/bin/true\n" }),
			service("never", "/bin/sleep infinity", func(s *shape.Service) {
				*s.Content = "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n"
				s.Enabled, s.Timeout = nil, 10*time.Second
			}),
			service("cond", "/bin/sleep infinity", func(s *shape.Service) {
				*s.Content = "[Unit]\nConditionPathExists=/nope\n" + *s.Content
			}),
		}
		for i := range 20 {
			set = append(set, service(fmt.Sprintf("good%02d", i), "/bin/sleep infinity"))
		}
		r.declare(set...)
		r.after(3 * time.Second)
		for i := range 20 {
			r.outcome(unit.Name(fmt.Sprintf("good%02d.service", i)), report.Converged, "")
		}
		r.outcome("dies.service", report.Failed, report.Exited)
		require.Contains(t, r.outcome("absent.service", report.Failed, report.Exited).Text, "203")
		require.Empty(t, r.outcome("missing.service", report.Failed, report.Missing).State.Enabled, "it has no file to be static")
		r.outcome("bad.service", report.Failed, report.BadUnit)
		r.outcome("never.service", report.Waiting, report.Starting)
		r.outcome("cond.service", report.Waiting, report.Condition)
		r.after(10*time.Second).outcome("never.service", report.Failed, report.BudgetSpent)
	})
}

func TestWithdrawalLeavesNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.DropIns = map[string]string{"10-a.conf": "[Service]\nEnvironment=A=1\n"} }))
		r.after(2*time.Second).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Empty(t, r.loop.Reports())
		left, err := os.ReadDir(r.etc)
		require.NoError(t, err)
		require.Empty(t, left, "folders that were made go too")
		require.Equal(t, unit.Inactive, r.active("web.service"))
		require.Empty(t, r.book.names())
		require.Empty(t, r.book.rest().Made)
		require.False(t, r.book.rest().OwesReload)
	})
}

// The last steps of a withdrawal are in no report: the unit has none any more.
func TestWhatIsGivenBackIsToldWithItsLastSteps(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(5 * time.Second)
		require.Empty(t, r.given)
		r.declare()
		r.after(5 * time.Second)
		require.Len(t, r.given, 1)
		g := r.given[0]
		require.Equal(t, []any{"web", "uid-web", unit.Name("web.service"), unit.System}, []any{g.Name, g.UID, g.Unit, g.Scope})
		require.WithinDuration(t, time.Now(), g.Since, 5*time.Second)
		var actions []string
		for _, s := range g.Steps {
			actions = append(actions, s.Action)
		}
		require.Subset(t, actions, []string{"stop", "remove", "unlink", "reload"})
		r.after(time.Hour)
		require.Len(t, r.given, 1)
	})
}

func TestWithdrawalPutsBackWhatStoodThere(t *testing.T) {
	inRig(t, func(r *rig) {
		old := "[Service]\nExecStart=/bin/sleep 5000\n"
		r.edit("web.service", old)
		_, err := r.fake.Reload(t.Context())
		require.NoError(t, err)
		r.fake.Enqueue(t.Context(), []unit.JobRequest{{Name: "web.service", Type: unit.StartJob}})
		r.after(time.Second)
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, old, r.read("web.service"))
		require.NoFileExists(t, filepath.Join(r.etc, link))
		require.Equal(t, unit.Active, r.active("web.service"), "it ran before")
	})
}

func TestANewLoopGoesOnWithoutAJob(t *testing.T) {
	inRig(t, func(r *rig) {
		set := []*shape.Service{service("web", "/bin/sleep infinity"), service("db", "/bin/sleep infinity")}
		r.declare(set...)
		r.after(3 * time.Second)
		r.stop()
		log := len(r.fake.Log())
		r.start()
		r.declare(set...)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		require.Len(t, r.fake.Log(), log, "a host restart starts no jobs and owes no reload")
	})
}

func TestALostConnectionIsWaitedOut(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.fake.Disconnect()
		r.declare(service("web", "/bin/sleep 9999"))
		r.after(5*time.Second).outcome("web.service", report.Waiting, report.Unreachable)
		r.fake.Reconnect()
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
	})
}

func TestAFullLedgerStopsEveryAct(t *testing.T) {
	inRig(t, func(r *rig) {
		old := "[Service]\nExecStart=/bin/sleep 5000\n"
		r.edit("web.service", old)
		r.book.breaks(errors.New("no space left on device"))
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(5 * time.Second)
		require.Equal(t, old, r.read("web.service"), "what could not be recorded is not done")
		require.Contains(t, r.outcome("web.service", report.Failed, report.DiskError).Text, "no space left")
		r.book.breaks(nil)
		r.after(time.Minute).outcome("web.service", report.Converged, "")
		r.declare()
		r.after(5 * time.Second)
		require.Equal(t, old, r.read("web.service"))
	})
}

func TestAFightIsReportedAndSlowedDown(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(2 * time.Second)
		for range 6 {
			r.outside("web.service", unit.StopJob)
			r.after(4 * time.Second)
		}
		r.outcome("web.service", report.Contested, "")
		require.Less(t, count(r.fake.Log(), "start web.service"), 7)
		r.after(10*time.Minute).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("web.service"))
	})
}

func TestAFailedReloadIsOwed(t *testing.T) {
	inRig(t, func(r *rig) {
		r.fake.Break("Reload", systemdtest.Break{Err: errors.New("it is busy")})
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		require.NotEqual(t, report.Converged, r.report("web.service").Outcome)
		require.True(t, r.book.rest().OwesReload)
		r.fake.Mend()
		r.after(time.Minute).outcome("web.service", report.Converged, "")
		require.False(t, r.book.rest().OwesReload)
	})
}

func TestStepsTellWhatWasDoneAndWhy(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		var did []string
		for _, s := range r.report("web.service").Steps {
			require.NotEmpty(t, s.Reason)
			did = append(did, s.Action)
		}
		require.Equal(t, []string{"write", "link", "reload", "start"}, slices.Clip(did))
	})
}

func TestOneReloadServesAllThatWaitForIt(t *testing.T) {
	inRig(t, func(r *rig) {
		var set []*shape.Service
		for i := range 5 {
			set = append(set, service(fmt.Sprintf("u%d", i), "/bin/sleep infinity"))
		}
		set[4].Ensure = shape.Unmanaged
		r.declare(set...)
		r.after(3 * time.Second)
		before := r.fake.Calls()["Reload"]
		r.declare()
		r.after(3 * time.Second)
		require.Empty(t, r.loop.Reports())
		require.Equal(t, before+1, r.fake.Calls()["Reload"], "units that stop first and units that do not share one reload")
	})
}

func TestTwoDeclarationsThatMeetByAnAlias(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("real", "/bin/sleep infinity", func(s *shape.Service) {
			*s.Content += "Alias=nick.service\n"
		}))
		r.after(3*time.Second).outcome("real.service", report.Converged, "")
		nick := &shape.Service{Name: "nick", Scope: unit.System, Unit: "nick.service", Ensure: shape.Stopped, Timeout: time.Minute}
		r.declare(service("real", "/bin/sleep infinity", func(s *shape.Service) { *s.Content += "Alias=nick.service\n" }), nick)
		rep := r.after(3*time.Second).outcome("nick.service", report.Refused, report.OwnedBy)
		require.Contains(t, rep.Text, "conflict with real")
		r.outcome("real.service", report.Converged, "")
		require.Equal(t, unit.Active, r.active("real.service"), "the one already applied keeps it")

		r.declare(nick)
		r.after(10*time.Second).outcome("nick.service", report.Failed, report.Missing)
	})
}

func TestADeclarationThatChangesItsUnitGivesTheOldOneBack(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.declare(service("web", "/bin/sleep infinity", func(s *shape.Service) { s.Unit = "www.service" }))
		r.after(5*time.Second).outcome("www.service", report.Converged, "")
		require.Empty(t, r.read("web.service"))
		require.Equal(t, unit.Inactive, r.active("web.service"))
		require.Len(t, r.loop.Reports(), 1)
	})
}

func TestAUnitThatIsDeclaredAgainWhileItIsGivenBackStays(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		r.declare()
		r.declare(web)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, *web.Content, r.read("web.service"))
		require.Equal(t, unit.Active, r.active("web.service"))
		require.False(t, r.book.unit("web.service").Withdrawn)
	})
}

func TestAKillAtEveryBoundaryEndsAsAnUndisturbedRun(t *testing.T) {
	for _, at := range []string{"recorded", "written", "reloaded", "remembered", "queued"} {
		t.Run(at, func(t *testing.T) {
			inRig(t, func(r *rig) {
				set := []*shape.Service{service("a", "/bin/sleep infinity"), service("b", "/bin/sleep infinity", func(s *shape.Service) {
					s.DropIns = map[string]string{"10-x.conf": "[Service]\nEnvironment=A=1\n"}
				})}
				r.stop()
				r.killAt(at)
				r.declare(set...)
				r.after(3 * time.Second)
				r.stop()
				r.start()
				r.declare(set...)
				r.after(5 * time.Second)
				for _, n := range []unit.Name{"a.service", "b.service"} {
					r.outcome(n, report.Converged, "")
					require.Equal(t, 1, count(r.fake.Log(), "start "+string(n)), r.fake.Log())
				}
				require.NotContains(t, r.fake.Log(), "try-restart a.service")
				r.declare()
				r.after(5 * time.Second)
				left, err := os.ReadDir(r.etc)
				require.NoError(t, err)
				require.Empty(t, left)
			})
		})
	}
}
