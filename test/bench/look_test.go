package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"stead/host/disk"
	"stead/host/ledger"
	"stead/host/plan"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/systemd"
	"stead/host/unit"
)

// looked is what one job found of looks.
type looked struct {
	Floor, Ours []time.Duration
	Calls       map[string]int // of one look
	Quiet       time.Duration
	QuietCalls  int
}

// benchLook measures a pass over units that are all right.
func benchLook(b *testing.B, t *table, units, usual int) (float64, string) {
	rounds := turns(usual)
	found := inside[looked](b, boot(b), "look", order{Units: units, Turns: rounds})
	floor, ours := median(found.Floor), median(found.Ours)
	t.times(fmt.Sprintf("a pass that finds %d units right", units), floor, ours, 1.25)
	t.most(fmt.Sprintf("D-Bus calls in %s between passes", found.Quiet), float64(found.QuietCalls), 0, "")
	t.note("pass, median of %d: floor %s; host %s; its calls: %v", rounds, all(found.Floor), all(found.Ours), found.Calls)
	return float64(ours) / float64(floor), "x-floor"
}

// look runs the loop of a host over the real manager, disk and ledger, and has
// the floor and a full look of the loop take turns.
func look(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	l, err := newLoop(ctx, units)
	if err != nil {
		return nil, err
	}
	bare, stop, err := startFloor(ctx, "floor-look", o)
	if err != nil {
		return nil, err
	}
	var found looked
	for range o.Turns {
		took, err := bare()
		if err != nil {
			return nil, err
		}
		found.Floor = append(found.Floor, took)
		l.calls.Store(0)
		from := time.Now()
		if err := l.fullLook(ctx); err != nil {
			return nil, err
		}
		found.Ours = append(found.Ours, time.Since(from))
	}
	if err := stop(); err != nil {
		return nil, err
	}
	found.Calls = map[string]int{"all": int(l.calls.Load())}
	if found.Calls["all"] == 0 {
		return nil, errors.New("a full look made no call: what counts them does not")
	}
	found.Quiet = time.Duration(min(10, 2*o.Turns)) * time.Second
	l.calls.Store(0)
	time.Sleep(found.Quiet)
	found.QuietCalls = int(l.calls.Load())
	return found, nil
}

// floorLooks looks at all units, once for each turn.
func floorLooks(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	c, err := dialLean(ctx)
	if err != nil {
		return nil, err
	}
	return floorTurns(func() error { return floorLook(ctx, c, units) })
}

// floorLook is the floor: the list, and the digest and link of each unit as
// they are on disk.
func floorLook(ctx context.Context, c bus, units []string) error {
	rows, err := c.list(ctx, units)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Active != "active" {
			return fmt.Errorf("%s is %s", r.Name, r.Active)
		}
		data, err := os.ReadFile(filepath.Join(unitDir, r.Name))
		if err != nil {
			return err
		}
		if sha256.Sum256(data) != sha256.Sum256([]byte(content(r.Name))) {
			return fmt.Errorf("%s differs", r.Name)
		}
		if to, err := os.Readlink(filepath.Join(wantsDir, r.Name)); err != nil || to != filepath.Join(unitDir, r.Name) {
			return fmt.Errorf("link of %s leads to %q: %w", r.Name, to, err)
		}
	}
	return nil
}

// loop is a reconcile.Loop that can be told to look at everything.
type loop struct {
	*reconcile.Loop
	calls atomic.Int64
	wake  chan struct{}
}

// fullLook has one full look done and returns when it is over.
func (l *loop) fullLook(ctx context.Context) error {
	l.wake <- struct{}{}
	return l.Alive(ctx)
}

// Set, Wake and Drain make the loop's watcher: it watches nothing, and says that
// anything may have changed when a full look is wanted.
func (l *loop) Set([]string) {}

func (l *loop) Wake() <-chan struct{} { return l.wake }

func (l *loop) Drain() ([]string, bool) { return nil, true }

// newLoop returns a loop that has applied the units and found them right.
func newLoop(ctx context.Context, units []string) (*loop, error) {
	l := &loop{wake: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	m, err := systemd.New(systemd.Options{Logger: log, OnCall: func(string) { l.calls.Add(1) }})
	if err != nil {
		return nil, err
	}
	go m.Run(ctx)
	path, err := m.UnitPath(ctx)
	if err != nil {
		return nil, err
	}
	d, err := disk.New(disk.Options{UnitPath: path})
	if err != nil {
		return nil, err
	}
	book, err := ledger.Open(ledger.Options{Path: "/var/lib/stead-bench/ledger.db"})
	if err != nil {
		return nil, err
	}
	l.Loop = reconcile.New(reconcile.Options{Scope: unit.System, ConfigDir: unitDir, Manager: m, Disk: d, Ledger: book, Watcher: l,
		Adviser: mute{}, Logger: log, Clock: func() plan.Clock { return plan.Clock{Wall: time.Now(), Monotonic: monotonic(), Boot: "this"} }})
	go l.Run(ctx)
	set := reconcile.Set{}
	for _, u := range units {
		s, problems := shape.Parse(u, []byte(declaration(u)))
		if err := problems.Err(); err != nil {
			return nil, err
		}
		set.Declared = append(set.Declared, reconcile.Declared{Service: s[0], UID: u, Generation: 1})
	}
	if err := l.Declare(ctx, set); err != nil {
		return nil, err
	}
	return l, l.settle(ctx, len(units))
}

// settle waits until all units have converged and nothing is left to look at.
func (l *loop) settle(ctx context.Context, n int) error {
	for good := 0; good < n; {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d units converged: %w", good, n, ctx.Err())
		}
		good = 0
		for _, r := range l.Reports() {
			if r.Outcome == report.Converged {
				good++
			}
		}
	}
	time.Sleep(2 * time.Second)
	return nil
}

// mute gives no advice: it is given beside the loop, and is no part of a look.
type mute struct{}

func (mute) Lines(context.Context, []unit.Name) map[unit.Name][]string { return nil }

func (mute) Verify(context.Context, map[unit.Name]string) map[unit.Name][]string { return nil }
