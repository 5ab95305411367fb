package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/account"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

func TestAUserUnitIsEnabledAndStartedUnderTheAccount(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	r := w.stands("reload-watcher", report.Converged, "")
	require.Equal(t, unit.User, r.Scope)
	require.Equal(t, unit.Active, opal.active("reload-watcher.service"))
	require.True(t, opal.has("reload-watcher.service"))
	require.True(t, opal.has("default.target.wants/reload-watcher.service"))

	w.declare()
	w.eventually(func() bool { return !opal.has("reload-watcher.service") && len(w.users.Reports()) == 0 }, "not given back")
	require.Contains(t, opal.fake.Log(), "stop reload-watcher.service")
	w.eventually(func() bool {
		state, err := w.book.Load()
		return err == nil && state.Managers[unit.User].Account == nil
	}, "the account is remembered though nothing is left there")
}

func TestUserScopeIsRefusedByNameWhereThereIsNoAccount(t *testing.T) {
	w := newTown(t)
	w.users.settle("", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	r := w.stands("reload-watcher", report.Refused, report.NoAccount)
	require.Equal(t, `node "ws1" has no operator account: scope user is refused`, r.Text)
	require.Nil(t, w.users.account())

	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto) // and it heals
	w.stands("reload-watcher", report.Converged, "")
	require.Equal(t, unit.Active, opal.active("reload-watcher.service"))
	require.Equal(t, "opal", w.users.account().Name)
}

func TestNothingIsDoneBeforeTheAccountIsKnown(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")
	w.stop()

	w.open()
	w.declare(watcherUnit("reload-watcher"))
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, w.users.Reports())
	require.True(t, opal.has("reload-watcher.service"), "an account that is not named yet was taken for one that went")
	w.users.settle("opal", account.Auto)
	w.stands("reload-watcher", report.Converged, "")
}

func TestWhatAnAccountBeforeHasIsGivenBackFirst(t *testing.T) {
	w := newTown(t)
	opal, jade := w.person("opal", 1001), w.person("jade", 1002)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")

	opal.hinder(&report.Obstacle{Outcome: report.Waiting, Reason: report.ManagerHung, Text: "hung"})
	w.users.settle("jade", account.Auto)
	w.stands("reload-watcher", report.Waiting, report.AccountChanged)
	require.True(t, opal.has("reload-watcher.service"))
	require.False(t, jade.has("reload-watcher.service"), "the new one came before the old one went")
	opal.hinder(nil)
	w.stands("reload-watcher", report.Converged, "")
	require.False(t, opal.has("reload-watcher.service"))
	require.Contains(t, opal.fake.Log(), "stop reload-watcher.service")
	require.Equal(t, unit.Active, jade.active("reload-watcher.service"))
	state, err := w.book.Load()
	require.NoError(t, err)
	require.Equal(t, "jade", state.Managers[unit.User].Account.Name)
}

func TestAnAccountThatIsTakenAwayIsGivenBack(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")
	w.users.settle("", account.Auto)
	w.stands("reload-watcher", report.Refused, report.NoAccount)
	w.eventually(func() bool { return !opal.has("reload-watcher.service") }, "the account's file stays")
	require.Contains(t, opal.fake.Log(), "stop reload-watcher.service")
}

func TestAnAccountThatComesBackKeepsWhatItHas(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.person("jade", 1002)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")
	opal.hinder(&report.Obstacle{Outcome: report.Waiting, Reason: report.ManagerHung, Text: "hung"})
	w.users.settle("jade", account.Auto)
	w.stands("reload-watcher", report.Waiting, report.AccountChanged)
	w.users.settle("opal", account.Auto)
	w.stands("reload-watcher", report.Waiting, report.ManagerHung)
	opal.hinder(nil)
	w.stands("reload-watcher", report.Converged, "")
	require.Equal(t, unit.Active, opal.active("reload-watcher.service"))
}

func TestWhatWasWrittenForALoginThatIsGoneIsLeft(t *testing.T) {
	w := newTown(t)
	opal, jade := w.person("opal", 1001), w.person("jade", 1002)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")
	opal.mu.Lock()
	opal.gone = "login opal is gone"
	opal.mu.Unlock()
	w.users.settle("jade", account.Auto)
	w.eventually(func() bool { return jade.active("reload-watcher.service") == unit.Active }, "it does not run for the new account")
	require.True(t, opal.has("reload-watcher.service"))
}

func TestAnObstacleIsReportedAndHeals(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	opal.block = &report.Obstacle{Outcome: report.Waiting, Reason: report.HomeUnmounted, Text: "home is not mounted", Hint: "mount it"}
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	r := w.stands("reload-watcher", report.Waiting, report.HomeUnmounted)
	require.Equal(t, "mount it", r.Hint)
	require.Equal(t, string(report.HomeUnmounted), w.users.account().State)
	require.False(t, opal.has("reload-watcher.service"))
	opal.hinder(nil)
	w.stands("reload-watcher", report.Converged, "")
}

func TestANewLifeOfTheManagerIsMetBeforeItIsUsed(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto)
	w.declare(watcherUnit("reload-watcher"))
	w.stands("reload-watcher", report.Converged, "")
	opal.fake.Break("UnitPath", systemdtest.Break{Err: errors.New("it is only just there"), Times: 1})
	opal.mu.Lock()
	opal.life = "boot/2"
	opal.mu.Unlock()
	opal.fake.Other().Enqueue(t.Context(), []unit.JobRequest{{Name: "reload-watcher.service", Type: unit.StopJob}})
	opal.tell()
	// The report of before says that it runs: the unit itself is looked at first.
	w.eventually(func() bool { return opal.active("reload-watcher.service") == unit.Active }, "active")
	w.stands("reload-watcher", report.Converged, "")
}

// What is wrong with an account's manager is no matter of the system scope.
func TestAHungUserScopeHoldsUpNothing(t *testing.T) {
	w := newTown(t)
	opal := w.person("opal", 1001)
	w.users.settle("opal", account.Auto)
	opal.fake.Break("Observe", systemdtest.Break{Hang: true})
	w.declare(watcherUnit("reload-watcher"))
	system := &quick{}
	s := newScopes(system, w.users)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	user, other := watcherUnit("reload-watcher"), watcherUnit("web")
	other.Scope = unit.System
	for range 20 {
		require.NoError(t, s.Declare(ctx, reconcile.Set{Declared: []reconcile.Declared{{Service: user}, {Service: other}},
			Leave: []reconcile.Left{{Name: "a", Scope: unit.User}, {Name: "b"}}}))
	}
	require.Equal(t, []string{"web"}, system.declared)
	require.Equal(t, []string{"b"}, system.left)
	cancel()
	require.NoError(t, <-done)
	opal.fake.Mend()
}

// quick is a loop that takes everything in at once.
type quick struct{ declared, left []string }

func (q *quick) Declare(_ context.Context, set reconcile.Set) error {
	q.declared, q.left = nil, nil
	for _, d := range set.Declared {
		q.declared = append(q.declared, d.Service.Name)
	}
	for _, l := range set.Leave {
		q.left = append(q.left, l.Name)
	}
	return nil
}

func (q *quick) Plan(context.Context, []reconcile.Declared, []string) ([]plan.Preview, error) {
	return nil, nil
}
func (q *quick) Reports() []*report.Report  { return nil }
func (q *quick) Published() <-chan struct{} { return nil }
