package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

func TestADryRunTellsWhatWouldChange(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		p := r.plan([]*shape.Service{service("web", "/bin/sleep 9")})[0]
		file := filepath.Join(r.etc, "web.service")
		require.Equal(t, []plan.Foreseen{
			{Action: plan.Write, Object: file, Reason: "content differs", Diff: []string{"--- " + file, "+++ " + file, "@@ -1,4 +1,4 @@",
				" [Service]", "-ExecStart=/bin/sleep infinity", "+ExecStart=/bin/sleep 9", " [Install]", " WantedBy=multi-user.target"}},
			{Action: plan.Reload, Object: "system manager", Reason: "its files changed"},
			{Action: plan.Restart, Object: "web.service", Reason: "it runs an older definition"},
		}, p.Steps)
		require.Empty(t, p.Outcome)
	})
}

func TestADryRunOfWhatIsInForceTellsNothing(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		require.Equal(t, []plan.Preview{{Name: "web", UID: "uid-web", Generation: generation(web), Scope: unit.System, Unit: "web.service"}},
			r.plan([]*shape.Service{web}))
	})
}

func TestADryRunOfAWithdrawalTellsWhatIsPutBack(t *testing.T) {
	inRig(t, func(r *rig) {
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 5\n")
		r.declare(service("web", "/bin/sleep infinity"), service("kept", "/bin/sleep infinity", func(s *shape.Service) { s.OnWithdraw = shape.Release }))
		r.after(3 * time.Second)
		all := r.plan(nil, "web", "kept", "nobody")
		require.Len(t, all, 3)
		require.True(t, all[0].Withdrawn)
		var did []plan.Action
		for _, s := range all[0].Steps {
			did = append(did, s.Action)
		}
		require.Equal(t, []plan.Action{plan.Stop, plan.Unlink, plan.Write, plan.Reload}, did)
		require.Contains(t, all[0].Steps[2].Diff, "+ExecStart=/bin/sleep 5", "from what the ledger keeps")
		require.Empty(t, all[1].Steps, "it is released")
		require.Equal(t, "nothing of it is on this node", all[2].Text)
		r.after(time.Minute).outcome("web.service", report.Converged, "")
	})
}

func TestADryRunTellsWhatIsRefusedOrWouldWait(t *testing.T) {
	inRig(t, func(r *rig) {
		r.link("masked.service", "/dev/null")
		require.NoError(t, os.Remove(filepath.Join(r.etc, "masked.service")))
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(r.etc, "masked.service")))
		require.NoError(t, os.Mkdir(filepath.Join(r.etc, "folder.service"), 0o755))
		slow := "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n"
		r.edit("slow.service", slow)
		_, err := r.fake.Reload(r.t.Context())
		require.NoError(t, err)
		r.declare(service("taken", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.fake.Other().Enqueue(r.t.Context(), []unit.JobRequest{{Name: "slow.service", Type: unit.StartJob}})
		r.after(time.Second)
		bare := func(name string) *shape.Service {
			return &shape.Service{Name: name, Scope: unit.System, Unit: unit.Name(name + ".service"), Ensure: shape.Running, Timeout: time.Minute}
		}
		for _, c := range []struct {
			declared *shape.Service
			outcome  report.Outcome
			reason   report.Reason
			text     string
		}{
			{service("masked", "/bin/a"), report.Refused, report.IsMasked, "is masked by"},
			{service("other", "/bin/a", func(s *shape.Service) { s.Unit = "taken.service" }), report.Refused, report.OwnedBy, "conflict with taken: taken.service is declared by it already"},
			{alias("nick", "taken"), report.Refused, report.OwnedBy, "conflict with taken: taken.service is declared by it already"},
			{bare("absent"), report.Failed, report.Missing, "no unit absent.service on this node"},
			{service("folder", "/bin/a"), report.Failed, report.DiskError, "a folder stands there"},
			{bare("slow"), report.Waiting, report.Busy, "somebody's job is in the queue"},
			{service("dbus", "/bin/a"), report.Refused, report.Protected, "is protected"},
		} {
			p := r.plan([]*shape.Service{c.declared})[0]
			require.Equal(t, c.declared.Name, p.Name)
			require.Equal(t, c.outcome, p.Outcome, "%+v", p)
			require.Equal(t, c.reason, p.Reason, "%+v", p)
			require.Contains(t, p.Text, c.text)
			for _, s := range p.Steps {
				require.NotEqual(t, plan.Start, s.Action, "%+v", p)
			}
		}
		require.Len(t, r.loop.Reports(), 1, "nothing of it is taken over")
	})
}

func TestADryRunTellsWhatElseIsTouched(t *testing.T) {
	inRig(t, func(r *rig) {
		template := service("t", "/bin/sleep 7", func(s *shape.Service) {
			s.Unit, s.Ensure, s.Enabled = "t@.service", shape.Unmanaged, nil
		})
		one := &shape.Service{Name: "one", Scope: unit.System, Unit: "t@1.service", Ensure: shape.Running, Timeout: time.Minute}
		*template.Content = "[Service]\nExecStart=/bin/sleep infinity\n"
		r.declare(template, one)
		r.after(3*time.Second).outcome("t@1.service", report.Converged, "")
		next := *template
		text := "[Service]\nExecStart=/bin/sleep 70\n"
		next.Content = &text
		all := r.plan([]*shape.Service{&next})
		require.Len(t, all, 2)
		require.Equal(t, "one", all[1].Name)
		require.True(t, all[1].Besides)
		require.Equal(t, plan.Restart, all[1].Steps[len(all[1].Steps)-1].Action)
	})
}

func TestADryRunOfADeclarationThatCannotBeReadGivesItsUnitBack(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		r.declare(web)
		r.after(3 * time.Second)
		r.leave(Left{Name: "web", Why: "x"})
		require.Empty(t, r.plan([]*shape.Service{service("db", "/bin/sleep infinity")})[0].Outcome)
		require.Len(t, r.plan([]*shape.Service{service("db", "/bin/sleep infinity")}), 1, "what is left is left")
		p := r.plan(nil, "web")[0]
		require.Equal(t, plan.Stop, p.Steps[0].Action)
		require.Empty(t, r.plan([]*shape.Service{web})[0].Steps)
		require.Equal(t, report.Unsupported, r.after(time.Second).report("web.service").Reason)
	})
}

func TestADryRunNeedsASetAndAManager(t *testing.T) {
	inRig(t, func(r *rig) {
		_, err := r.loop.Plan(r.t.Context(), nil, nil)
		require.True(t, fault.Is(err, fault.Unavailable), err)
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.fake.Break("Observe", systemdtest.Break{Err: fault.New(fault.Unavailable, "observe", "", errors.New("it is away"))})
		_, err = r.loop.Plan(r.t.Context(), set(service("db", "/bin/sleep infinity")), nil)
		require.ErrorContains(t, err, "it is away")
		r.outcome("web.service", report.Converged, "")
		r.fake.Mend()

		ctx, cancel := context.WithCancel(r.t.Context())
		cancel()
		_, err = r.loop.Plan(ctx, set(service("db", "/bin/sleep infinity")), nil)
		require.True(t, fault.Is(err, fault.Canceled), err)
	})
}

func TestADryRunHoldsNoRepairUp(t *testing.T) {
	inRig(t, func(r *rig) {
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.fake.Break("Observe", systemdtest.Break{Delay: time.Minute, Times: 1})
		said := make(chan []plan.Preview, 1)
		go func() {
			all, err := r.loop.Plan(r.t.Context(), set(service("db", "/bin/sleep infinity")), nil)
			if err == nil {
				said <- all
			}
		}()
		synctest.Wait()
		r.outside("web.service", unit.StopJob)
		r.after(time.Second)
		require.Equal(t, unit.Active, r.active("web.service"))
		require.Empty(t, said, "the manager lets it wait")
		r.after(2 * time.Minute)
		require.Len(t, <-said, 1)
	})
}

func TestManyDryRunsAtOnceWithALoopAtWork(t *testing.T) {
	inRig(t, func(r *rig) {
		var all []*shape.Service
		for i := range 20 {
			all = append(all, service(fmt.Sprintf("u%02d", i), "/bin/sleep infinity"))
		}
		r.declare(all...)
		said := make(chan int, 8)
		for range cap(said) {
			go func() {
				p, err := r.loop.Plan(r.t.Context(), set(service("u03", "/bin/sleep 9"), service("x", "/bin/sleep infinity")), []string{"u07"})
				if err != nil {
					p = nil
				}
				said <- len(p)
			}()
		}
		for range cap(said) {
			require.GreaterOrEqual(t, <-said, 3)
		}
		r.after(5*time.Second).outcome("u07.service", report.Converged, "")
	})
}

// Of two declarations of one unit the one that has it keeps it, also when both
// are in the set.
func TestOfTwoDeclarationsOfOneUnitTheOneThatHasItKeepsIt(t *testing.T) {
	inRig(t, func(r *rig) {
		web := service("web", "/bin/sleep infinity")
		other := service("a", "/bin/sleep 9", func(s *shape.Service) { s.Unit = "web.service" })
		r.declare(web)
		r.after(3 * time.Second)
		r.declare(other, web)
		r.after(3 * time.Second)
		require.Len(t, r.loop.Reports(), 2)
		require.Equal(t, *web.Content, r.read("web.service"))
		rep := r.loop.Reports()[0]
		require.Equal(t, []any{"a", report.Refused, report.OwnedBy, "conflict with web: web.service is declared by it already"},
			[]any{rep.Name, rep.Outcome, rep.Reason, rep.Text})
		r.declare(other)
		r.after(5*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, *other.Content, r.read("web.service"))
	})
}
