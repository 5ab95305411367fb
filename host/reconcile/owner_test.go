package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
)

func alias(name, other string) *shape.Service {
	return service(name, "/bin/sleep infinity", func(s *shape.Service) { *s.Content += "Alias=" + other + ".service\n" })
}

// An alias that is known only on the machine would take the name, and the file,
// of a unit that another declaration has.
func TestAnAliasDoesNotTakeTheUnitOfAnother(t *testing.T) {
	for _, name := range []string{"a", "z"} { // the order of names decides nothing
		t.Run(name, func(t *testing.T) {
			inRig(t, func(r *rig) {
				nick := service("nick", "/bin/sleep 100000")
				r.declare(nick, service(name, "/bin/sleep infinity"))
				r.after(3 * time.Second)
				r.declare(nick, alias(name, "nick"))
				rep := r.after(3*time.Second).outcome(unit.Name(name+".service"), report.Refused, report.OwnedBy)
				require.Contains(t, rep.Text, "conflict with nick: nick.service")
				r.outcome("nick.service", report.Converged, "")
				require.Equal(t, *nick.Content, r.read("nick.service"))
				require.NotContains(t, r.read(name+".service"), "Alias", "what was applied before stays")
				require.Equal(t, unit.Active, r.active(unit.Name(name+".service")))

				r.declare(alias(name, "nick"))
				r.after(5*time.Second).outcome(unit.Name(name+".service"), report.Converged, "")
				require.Contains(t, r.read("nick.service"), "Alias", "when one goes the other has its way")
			})
		})
	}
}

func TestTwoUnitsDoNotTakeOneAlias(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(alias("z", "nick"))
		r.after(3 * time.Second)
		r.declare(alias("z", "nick"), alias("a", "nick"))
		r.after(3*time.Second).outcome("a.service", report.Refused, report.OwnedBy)
		r.outcome("z.service", report.Converged, "")
	})
}

// A link that somebody makes joins two declared units into one: the one whose
// name it has keeps it.
func TestALinkFromOutsideDoesNotTakeAUnit(t *testing.T) {
	inRig(t, func(r *rig) {
		nick := &shape.Service{Name: "nick", Scope: unit.System, Unit: "nick.service", Ensure: shape.Running, Timeout: time.Minute}
		r.declare(nick, service("web", "/bin/sleep infinity"))
		r.after(3*time.Second).outcome("nick.service", report.Failed, report.Missing)
		r.link("nick.service", "web.service")
		rep := r.after(5*time.Second).outcome("nick.service", report.Refused, report.OwnedBy)
		require.Contains(t, rep.Text, "conflict with web: web.service")
		r.outcome("web.service", report.Converged, "")
	})
}

// What is written for a template is the definition of its instances too: they
// share its reload.
func TestAnInstanceTakesItsTemplatesChangeInByOneReload(t *testing.T) {
	inRig(t, func(r *rig) {
		template := func(cmd string) *shape.Service {
			return service("t", cmd, func(s *shape.Service) { s.Unit, s.Ensure, s.Enabled = "t@.service", shape.Unmanaged, nil })
		}
		one := &shape.Service{Name: "one", Scope: unit.System, Unit: "t@one.service", Ensure: shape.Running, Timeout: time.Minute}
		r.declare(template("/bin/sleep infinity"), one)
		r.after(3*time.Second).outcome("t@one.service", report.Converged, "")
		reloads := r.fake.Calls()["Reload"]
		next := template("/bin/sleep 100000")
		next.DropIns = map[string]string{"10-a.conf": "[Service]\nEnvironment=A=1\n"}
		r.declare(next, one)
		r.after(3*time.Second).outcome("t@one.service", report.Converged, "")
		require.Equal(t, 1, count(r.fake.Log(), "try-restart t@one.service"), r.fake.Log())
		require.Equal(t, reloads+1, r.fake.Calls()["Reload"])
	})
}

func TestOfTwoThatAskForOneNameTheFirstHasIt(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(alias("b", "nick"), alias("a", "nick"))
		r.after(3*time.Second).outcome("a.service", report.Converged, "")
		rep := r.outcome("b.service", report.Refused, report.OwnedBy)
		require.Equal(t, "conflict with a: nick.service is declared by it already", rep.Text)
		require.Equal(t, 1, r.fake.Calls()["Reload"], "they do not take it from each other")

		r.declare(alias("b", "nick"), service("a", "/bin/sleep infinity"))
		r.after(5*time.Second).outcome("b.service", report.Converged, "")
	})
}

func TestAUnitsOwnNameComesBeforeAnAlias(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(alias("a", "nick"), service("nick", "/bin/sleep infinity"))
		r.after(3*time.Second).outcome("nick.service", report.Converged, "")
		require.Equal(t, "conflict with nick: nick.service is declared by it already", r.outcome("a.service", report.Refused, report.OwnedBy).Text)
		require.Equal(t, 1, r.fake.Calls()["Reload"])
	})
}

func TestALinkThatTwoTakeAwayGoesOnce(t *testing.T) {
	inRig(t, func(r *rig) {
		also := service("web", "/bin/sleep infinity", func(s *shape.Service) {
			*s.Content += "Also=job.service\n"
			s.Ensure = shape.Unmanaged
		})
		require.NoError(t, os.WriteFile(filepath.Join(r.lib, "job.service"), []byte("[Service]\nExecStart=/bin/sleep 9\n[Install]\nWantedBy=x.target\n"), 0o644))
		r.declare(also)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		failed := 0
		r.stop()
		r.heard = func(_ *managed, s report.Step) {
			if s.Error != "" {
				failed++
			}
		}
		r.start()
		no := false
		r.declare(&shape.Service{Name: "job", Scope: unit.System, Unit: "job.service", Enabled: &no, Timeout: time.Minute, OnWithdraw: shape.Restore})
		r.after(5*time.Second).outcome("job.service", report.Converged, "")
		require.NoFileExists(t, filepath.Join(r.etc, "x.target.wants/job.service"))
		require.Zero(t, failed)
	})
}

// The name that one gives back may be what another declares: from then on it is
// the other's, however long the rest of the withdrawal takes.
func TestWhatWasGivenBackIsNotTakenAwayAgain(t *testing.T) {
	inRig(t, func(r *rig) {
		require.NoError(t, os.WriteFile(filepath.Join(r.lib, "real.service"), []byte("[Service]\nExecStart=/bin/sleep 9000\n"), 0o644))
		r.fake.Other().Enqueue(t.Context(), []unit.JobRequest{{Name: "real.service", Type: unit.StartJob}})
		r.after(time.Second).declare(alias("real", "nick"))
		r.after(3*time.Second).outcome("real.service", report.Converged, "")
		nick := service("nick", "/bin/sleep infinity")
		r.declare(nick)
		r.after(10*time.Second).outcome("nick.service", report.Converged, "")
		require.Equal(t, *nick.Content, r.read("nick.service"))
		require.Len(t, r.loop.Reports(), 1)
		wrote := 0
		for _, s := range r.report("nick.service").Steps {
			if s.Action == string(plan.Write) {
				wrote++
			}
		}
		require.Equal(t, 1, wrote)
	})
}
