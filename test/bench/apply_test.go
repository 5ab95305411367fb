package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// gathering is how long the host waits for a folder to be still before it reads
// it. Like settling it is meant, and left out.
const gathering = 200 * time.Millisecond

// benchApply measures a first apply, from the order to the last unit active, on
// a fresh node each time.
func benchApply(b *testing.B, t *table, units, usual int) (float64, string) {
	times := map[string][]time.Duration{}
	rounds := turns(usual)
	for i := range rounds {
		for j := range 3 { // nobody is always the first
			how := []string{"floor", "host", "systemctl"}[(i+j)%3]
			n := boot(b)
			times[how] = append(times[how], inside[time.Duration](b, n, "apply", order{Units: units, How: how}))
			down(b, n)
		}
	}
	work := fmt.Sprintf("first apply of %d units", units)
	floor := median(times["floor"])
	t.times(work, floor, median(times["host"]), 1.15)
	t.slower(work+", batched systemctl", floor, median(times["systemctl"]))
	t.note("%s, median of %d: floor %s; host %s, without the %s in which it gathers edits; systemctl %s", work, rounds,
		all(times["floor"]), all(times["host"]), gathering, all(times["systemctl"]))
	return float64(median(times["host"])) / float64(floor), "x-floor"
}

// apply has one of the programs apply and tells how long it took until the last
// unit was active, by the manager's own stamps.
func apply(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	begun, wait, err := map[string]func(context.Context, []string) (time.Duration, func() error, error){
		"floor": applyFloor, "host": applyHost, "systemctl": applySystemctl,
	}[o.How](ctx, units)
	if err != nil {
		return nil, err
	}
	for running() < len(units) {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d units run: %w", running(), len(units), ctx.Err())
		}
	}
	time.Sleep(200 * time.Millisecond)
	c, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := allActive(ctx, c, units); err != nil {
		return nil, err
	}
	entered, err := c.stamps(ctx, units, "ActiveEnterTimestampMonotonic")
	if err != nil {
		return nil, err
	}
	return slices.Max(entered) - begun, wait()
}

// allActive sees that the units are all loaded, active and linked.
func allActive(ctx context.Context, c bus, units []string) error {
	rows, err := c.list(ctx, units)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if r.Load != "loaded" || r.Active != "active" {
			return fmt.Errorf("%s is %s, %s", r.Name, r.Load, r.Active)
		}
		if _, err := os.Readlink(wantsDir + "/" + r.Name); err != nil {
			return err
		}
	}
	return nil
}

// applyFloor runs the bare program as a process of its own, as the host is one.
func applyFloor(ctx context.Context, units []string) (time.Duration, func() error, error) {
	cmd, err := self(ctx, "floor-apply", order{Units: len(units)})
	if err != nil {
		return 0, nil, err
	}
	out, err := cmd.Output()
	var begun time.Duration
	if err == nil {
		err = json.Unmarshal(out, &begun)
	}
	return begun, func() error { return nil }, err
}

// floorApply is the floor: files and links, one reload, one look at all units,
// all starts pipelined, and the wait for every job. It tells when it began.
func floorApply(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	c, err := dialLean(ctx)
	if err != nil {
		return nil, err
	}
	signals := make(chan *dbus.Signal, 64*len(units))
	c.Signal(signals)
	begun := monotonic()
	if err := place(units); err != nil {
		return nil, err
	}
	if _, err := c.pipeline(ctx, []request{manager("Reload")}); err != nil {
		return nil, err
	}
	rows, err := c.list(ctx, units)
	if err != nil {
		return nil, err
	}
	var starts []request
	for _, r := range rows {
		starts = append(starts, manager("StartUnit", r.Name, "replace"))
	}
	if _, err := c.pipeline(ctx, starts); err != nil {
		return nil, err
	}
	for ended := 0; ended < len(units); {
		select {
		case s := <-signals:
			if s.Name == managerIfc+".JobRemoved" {
				ended++
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return begun, nil
}

// applySystemctl is what a script can do at best: two calls for all units.
func applySystemctl(ctx context.Context, units []string) (time.Duration, func() error, error) {
	begun := monotonic()
	if err := place(units); err != nil {
		return 0, nil, err
	}
	for _, args := range [][]string{{"daemon-reload"}, append([]string{"start"}, units...)} {
		if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
			return 0, nil, fmt.Errorf("systemctl %s: %w: %s", args[0], err, out)
		}
	}
	return begun, func() error { return nil }, nil
}

// applyHost has a host that serves already find a folder of declarations.
func applyHost(ctx context.Context, units []string) (time.Duration, func() error, error) {
	if err := declare(folder+".new", units); err != nil {
		return 0, nil, err
	}
	stop, err := startHost(ctx)
	if err != nil {
		return 0, nil, err
	}
	time.Sleep(300 * time.Millisecond)
	begun := monotonic() + gathering
	return begun, stop, os.Rename(folder+".new", folder)
}
