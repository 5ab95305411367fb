package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// benchRestore measures how long a unit that somebody stops stays down.
func benchRestore(b *testing.B, t *table, units, usual int) (float64, string) {
	gaps := map[string][]time.Duration{}
	rounds := turns(usual)
	for i := range rounds {
		for j := range 2 { // nobody is always the first
			how := []string{"floor", "host"}[(i+j)%2]
			n := boot(b)
			gaps[how] = append(gaps[how], inside[[]time.Duration](b, n, "restore", order{Units: units, How: how})...)
			down(b, n)
		}
	}
	for _, q := range []float64{0.50, 0.95} {
		t.above(fmt.Sprintf("restore after a stop, p%.0f", 100*q), quantile(gaps["floor"], q), quantile(gaps["host"], q), 20*time.Millisecond)
	}
	t.note("restore: %d units, one stop each, %d rounds: InactiveEnter to InactiveExit by the manager's stamps; slowest: floor %s, host %s",
		units, rounds, short(slices.Max(gaps["floor"])), short(slices.Max(gaps["host"])))
	return ms(quantile(gaps["host"], 0.95) - quantile(gaps["floor"], 0.95)), "ms-over-floor-p95"
}

// restore brings units up, lets a probe or the host watch over them, stops one
// after the other, and tells how long each was down.
func restore(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	stop, err := map[string]func(context.Context, []string) (func() error, error){"floor": guardBare, "host": guardHost}[o.How](ctx, units)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := allActive(ctx, c, units); err != nil {
		return nil, err
	}
	for _, u := range units {
		if _, err := c.pipeline(ctx, []request{manager("StopUnit", u, "replace")}); err != nil {
			return nil, err
		}
		time.Sleep(60 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if err := allActive(ctx, c, units); err != nil {
		return nil, err
	}
	from, err := c.stamps(ctx, units, "InactiveEnterTimestampMonotonic")
	if err != nil {
		return nil, err
	}
	to, err := c.stamps(ctx, units, "InactiveExitTimestampMonotonic")
	if err != nil {
		return nil, err
	}
	gaps := make([]time.Duration, len(units))
	for i := range gaps {
		if gaps[i] = to[i] - from[i]; from[i] == 0 || gaps[i] < 0 {
			return nil, fmt.Errorf("%s was not stopped and restored: %s, %s", units[i], from[i], to[i])
		}
	}
	return gaps, stop()
}

// guardBare applies with the floor's means and has the probe watch.
func guardBare(ctx context.Context, units []string) (func() error, error) {
	if _, _, err := applyFloor(ctx, units); err != nil {
		return nil, err
	}
	cmd, err := self(ctx, "probe", order{})
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	return func() error {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return nil
	}, nil
}

// guardHost has the host apply, and waits until it finds everything right.
func guardHost(ctx context.Context, units []string) (func() error, error) {
	if err := declare(folder, units); err != nil {
		return nil, err
	}
	stop, err := startHost(ctx)
	if err != nil {
		return nil, err
	}
	if err := converged(ctx, len(units)); err != nil {
		return nil, err
	}
	time.Sleep(time.Second)
	return stop, nil
}

// probe is the floor: it starts a unit when a signal says that it is inactive.
func probe(ctx context.Context, _ order) (any, error) {
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	signals := make(chan *dbus.Signal, 1024)
	c.Signal(signals)
	done := make(chan *dbus.Call, 1024)
	for {
		select {
		case s := <-signals:
			if len(s.Body) < 2 || s.Body[0] != unitIfc {
				continue
			}
			values, _ := s.Body[1].(map[string]dbus.Variant)
			if values["ActiveState"].Value() != "inactive" {
				continue
			}
			c.Object(busName, managerAt).Go(managerIfc+".StartUnit", 0, done, nameAt(s.Path), "replace")
		case call := <-done:
			if call.Err != nil {
				return nil, call.Err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// nameAt is the unit of this benchmark's at a bus path.
func nameAt(p dbus.ObjectPath) string {
	var n int
	_, _ = fmt.Sscanf(string(p), "/org/freedesktop/systemd1/unit/bench_2d%04d_2eservice", &n) // others are none of its business
	return fmt.Sprintf("bench-%04d.service", n)
}

// pathAt is where such a unit is on the bus.
func pathAt(unit string) dbus.ObjectPath {
	return dbus.ObjectPath("/org/freedesktop/systemd1/unit/" + strings.NewReplacer("-", "_2d", ".", "_2e").Replace(unit))
}
