package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
)

const (
	seatNode  = "bench"
	seatUnits = 10
	// still is left between two measurements, for what the one before set going: the
	// audit of a call, signals of a job.
	still = 25 * time.Millisecond
)

// versus is what floor and ours took, in turns.
type versus struct {
	Floor, Ours         []time.Duration
	ColdFloor, ColdOurs []time.Duration // the first calls of turns
}

// benchSeat measures verbs of the seat on a kept connection and as a command, and
// then what the runtime holds, in a mesh of one.
func benchSeat(b *testing.B, t *table, usual int) (float64, string) {
	n, rounds := boot(b), turns(usual)
	inside[string](b, n, "raise", order{Units: seatUnits})
	measure := func(how string) versus {
		return inside[versus](b, n, "seat", order{Units: seatUnits, Turns: rounds, How: how})
	}
	status := measure("status")
	t.above("status verb, kept connection, p50", median(status.Floor), median(status.Ours), 500*time.Microsecond)
	restart := measure("restart")
	t.times("restart verb to its job result, p50", median(restart.Floor), median(restart.Ours), 1.15)
	command := measure("command")
	t.times("stead status as a command, p50", median(command.Floor), median(command.Ours), 2)
	for _, what := range []string{"Rss", "Pss"} {
		kib := inside[map[string]int](b, n, "memory-runtime", order{})
		t.most("memory of the runtime behind it, "+strings.ToUpper(what), float64(kib[what])/1024, 30, "MiB")
	}
	t.note("seat, %d rounds of three calls in a row, of which the first, behind %s of silence, is counted apart: p10 to p95, and p50 of the first", rounds, still)
	t.note("  status: %s", status)
	t.note("  restart: %s", restart)
	t.note("  command: %s", command)
	return float64(median(restart.Ours)) / float64(median(restart.Floor)), "x-floor-restart"
}

// String tells what the table does not.
func (v versus) String() string {
	spread := func(warm, cold []time.Duration) string {
		return fmt.Sprintf("%s to %s, %s", short(quantile(warm, 0.1)), short(quantile(warm, 0.95)), short(median(cold)))
	}
	return "floor " + spread(v.Floor, v.ColdFloor) + "; ours " + spread(v.Ours, v.ColdOurs)
}

// seat has the floor and a verb of the seat take turns.
func seat(ctx context.Context, o order) (any, error) {
	units := names(o.Units)
	bare, stop, err := startFloor(ctx, "floor-"+o.How, o)
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	verbs := client.NewVerbs(c)
	ours := map[string]func(ctx context.Context, v *client.Verbs, unit string) error{
		"status": askStatus, "restart": askRestart, "command": steadStatus,
	}[o.How]
	v, err := take(o.Turns, func(int) (time.Duration, error) { return bare() }, func(i int) (time.Duration, error) {
		from := time.Now()
		err := ours(ctx, verbs, units[i%len(units)])
		return time.Since(from), err
	})
	return v, errors.Join(err, stop())
}

// take has floor and ours take turns; nobody is always the first. The first call of
// a turn wakes what has slept, here and in the machine below, and is counted apart.
func take(turns int, floor, ours func(turn int) (time.Duration, error)) (versus, error) {
	var v versus
	for i := range turns {
		for j := range 2 {
			time.Sleep(still)
			cold, warm, measure := &v.ColdFloor, &v.Floor, floor
			if (i+j)%2 == 1 {
				cold, warm, measure = &v.ColdOurs, &v.Ours, ours
			}
			for n, all := range []*[]time.Duration{cold, warm, warm} {
				took, err := measure(3*i + n)
				if err != nil {
					return v, err
				}
				*all = append(*all, took)
			}
		}
	}
	return v, nil
}

// raise makes this node a mesh of one, with units that run and may be restarted
// as often as anybody likes.
func raise(ctx context.Context, o order) (any, error) {
	const anyNumber = unitDir + "/bench-.service.d"
	if err := os.MkdirAll(anyNumber, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(anyNumber+"/often.conf", []byte("[Unit]\nStartLimitIntervalSec=0\n"), 0o644); err != nil {
		return nil, err
	}
	if _, _, err := applyFloor(ctx, names(o.Units)); err != nil {
		return nil, err
	}
	if out, err := command(ctx, steadPath, "up", "--node", seatNode).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("stead up: %w: %s", err, out)
	}
	time.Sleep(time.Second)
	return "up", nil
}

// command is a program of this node's, run by its root.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), "HOME=/root")
	return c
}

// connect is an operator's connection to the mesh.
func connect(ctx context.Context) (*mesh.Conn, error) {
	who, err := identity.ReadCredentials("/root/.config/stead/contexts/" + seatNode + ".json")
	if err != nil {
		return nil, err
	}
	c, err := mesh.Connect(ctx, mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: "bench", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return c, c.Wait(ctx)
}

func askStatus(ctx context.Context, v *client.Verbs, unit string) error {
	none := 0
	var r seats.StatusReply
	err := ask(ctx, v, client.Verb{Class: subject.Read, Name: seats.Status}, seats.StatusArguments{Unit: unit, Lines: &none, Scope: "system"}, &r)
	if err == nil && (len(r.Units) != 1 || r.Units[0].ID != unit || r.Units[0].Active != "active" || r.Units[0].MainPID == nil) {
		err = fmt.Errorf("status of %s: %+v", unit, r)
	}
	return err
}

func askRestart(ctx context.Context, v *client.Verbs, unit string) error {
	var r seats.ActReply
	err := ask(ctx, v, client.Verb{Class: subject.Write, Name: seats.Restart}, seats.ActArguments{Unit: unit}, &r)
	if err == nil && (len(r.Units) != 1 || r.Units[0].Unit != unit || r.Units[0].Result != "done" || r.Units[0].After.Active != "active") {
		err = fmt.Errorf("restart of %s: %+v", unit, r)
	}
	return err
}

// steadStatus asks as people do.
func steadStatus(ctx context.Context, _ *client.Verbs, unit string) error {
	return says(command(ctx, steadPath, "status", unit), unit)
}

// says has a command say that a unit runs.
func says(c *exec.Cmd, unit string) error {
	out, err := c.CombinedOutput()
	if err == nil && (!strings.Contains(string(out), unit) || !strings.Contains(string(out), "active (running)")) {
		err = errors.New("it does not say that the unit runs")
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", c, err, out)
	}
	return nil
}

func ask(ctx context.Context, v *client.Verbs, verb client.Verb, arguments, reply any) error {
	verb.Seat = seats.NodeServiceManager
	a := v.Call(ctx, verb, seatNode, arguments)
	switch {
	case a.Silent != "":
		return errors.New(a.Silent)
	case a.Err != nil:
		return a.Err
	}
	return json.Unmarshal(a.Reply, reply)
}
