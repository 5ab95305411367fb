package reconcile

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd/systemdtest"
	"stead/host/unit"
)

// barrier is a gate that tests close and open.
type barrier struct {
	mu      sync.Mutex
	now     *report.Obstacle
	changed chan struct{}
}

func newBarrier() *barrier { return &barrier{changed: make(chan struct{}, 1)} }

func (b *barrier) Obstacle() *report.Obstacle {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *barrier) Changed() <-chan struct{} { return b.changed }

// quietly changes what is in the way, and tells nobody.
func (b *barrier) quietly(o *report.Obstacle) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = o
}

func (b *barrier) set(o *report.Obstacle) {
	b.quietly(o)
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

var (
	lingerOff = &report.Obstacle{Outcome: report.Failed, Reason: report.LingerOff, Text: "lingering is off", Hint: "stead node linger web1 auto"}
	hung      = &report.Obstacle{Outcome: report.Waiting, Reason: report.ManagerHung, Text: "it does not answer"}
)

// inGatedRig is inRig with a gate that something stands in from the start on.
func inGatedRig(t *testing.T, f func(*rig, *barrier)) {
	inRig(t, func(r *rig) {
		b := newBarrier()
		b.set(lingerOff)
		r.stop()
		r.gate = b
		r.start()
		f(r, b)
	})
}

func TestWhileAnObstacleStandsItIsReportedAndNothingIsDone(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		r.declare(service("web", "/bin/sleep infinity"))
		since := r.after(time.Second).outcome("web.service", report.Failed, report.LingerOff).Since
		rep := r.after(time.Hour).outcome("web.service", report.Failed, report.LingerOff)
		require.Equal(t, []any{"lingering is off", "stead node linger web1 auto", since}, []any{rep.Text, rep.Hint, rep.Since})
		r.declare(service("web", "/bin/sleep infinity"), service("db", "/bin/sleep infinity"))
		r.after(time.Second).outcome("db.service", report.Failed, report.LingerOff)
		require.Zero(t, r.fake.Calls()["Observe"])
		require.Empty(t, r.read("web.service"))

		b.set(hung)
		r.after(0).outcome("web.service", report.Waiting, report.ManagerHung)
		b.set(nil)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		r.outcome("db.service", report.Converged, "")
	})
}

func TestAnObstacleOnTheWayHoldsRepairsUpUntilItGoes(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		b.set(nil)
		r.declare(service("web", "/bin/sleep infinity"), service("old", "/bin/sleep infinity"))
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
		b.set(lingerOff)
		r.outside("web.service", unit.StopJob)
		r.edit("web.service", "[Service]\nExecStart=/bin/sleep 1\n")
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(10*time.Minute).outcome("web.service", report.Failed, report.LingerOff)
		r.outcome("old.service", report.Failed, report.LingerOff)
		require.Equal(t, unit.Inactive, r.active("web.service"))
		require.Equal(t, unit.Active, r.active("old.service"), "it is given back when that can be done")
		b.set(nil)
		r.after(10*time.Second).outcome("web.service", report.Converged, "")
		require.Equal(t, unit.Inactive, r.active("old.service"))
		require.Empty(t, r.report("old.service").Name)
	})
}

// Who learns first that the manager is away is mostly the loop.
func TestAPassThatFailsForAnObstacleIsReportedWithIt(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		b.set(nil)
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		r.fake.Break("Observe", systemdtest.Break{Err: fault.New(fault.Unavailable, "observe", "", errors.New("it is away"))})
		b.quietly(hung)
		r.outside("web.service", unit.StopJob)
		r.after(time.Second).outcome("web.service", report.Waiting, report.ManagerHung)
		asked := r.fake.Calls()["Observe"]
		r.after(time.Hour)
		require.Equal(t, asked, r.fake.Calls()["Observe"], "nothing is tried")
		r.fake.Mend()
		b.set(nil)
		r.after(3*time.Second).outcome("web.service", report.Converged, "")
	})
}

// A new manager owes nothing of what was owed to the one before, and what it does
// not run nobody has stopped.
func TestANewManagerBeginsAnew(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		b.set(nil)
		r.declare(service("web", "/bin/sleep infinity"))
		r.after(3 * time.Second)
		for _, life := range []string{"2", "3", "4", "5"} {
			b.set(hung)
			r.after(time.Second)
			r.outside("web.service", unit.StopJob)
			r.lives(life)
			b.set(nil)
			r.after(3*time.Second).outcome("web.service", report.Converged, "")
		}
		require.Equal(t, 1, r.fake.Calls()["Reload"])
	})
}

func TestADryRunTellsTheObstacle(t *testing.T) {
	inGatedRig(t, func(r *rig, b *barrier) {
		r.declare(service("old", "/bin/sleep infinity"))
		r.after(time.Second)
		all := r.plan([]*shape.Service{service("web", "/bin/sleep infinity")}, "old")
		require.Len(t, all, 2)
		for _, p := range all {
			require.Equal(t, []any{report.Failed, report.LingerOff, "lingering is off"}, []any{p.Outcome, p.Reason, p.Text}, p.Name)
			require.Empty(t, p.Steps)
		}
		require.Zero(t, r.fake.Calls()["Observe"])
	})
}
