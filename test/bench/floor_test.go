package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/godbus/dbus/v5"
)

// startFloor starts a floor in a process of its own, where nothing of ours is in
// its way, and returns what gives it a turn.
func startFloor(ctx context.Context, job string, o order) (once func() (time.Duration, error), stop func() error, err error) {
	cmd, err := self(ctx, job, o)
	if err != nil {
		return nil, nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	answers := json.NewDecoder(out)
	once = func() (took time.Duration, err error) {
		if _, err = in.Write([]byte("\n")); err == nil {
			err = answers.Decode(&took)
		}
		return took, err
	}
	return once, func() error { return errors.Join(in.Close(), cmd.Wait()) }, nil
}

// floorTurns takes a turn for each line that it reads, and says how long that took.
func floorTurns(turn func() error) (any, error) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		from := time.Now()
		if err := turn(); err != nil {
			return nil, err
		}
		if err := json.NewEncoder(os.Stdout).Encode(time.Since(from)); err != nil {
			return nil, err
		}
	}
	return "done", nil
}

// floorStatus asks for all properties of a unit, over the system bus as a program
// without rights has to.
func floorStatus(ctx context.Context, o order) (any, error) {
	c, err := dbus.Dial("unix:path=/run/dbus/system_bus_socket", dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	if err := errors.Join(c.Auth(nil), c.Hello()); err != nil {
		return nil, err
	}
	units, turn := names(o.Units), 0
	return floorTurns(func() error {
		var all map[string]dbus.Variant
		unit := units[turn%len(units)]
		turn++
		err := c.Object(busName, pathAt(unit)).CallWithContext(ctx, "org.freedesktop.DBus.Properties.GetAll", 0, "").Store(&all)
		if err == nil && all["ActiveState"].Value() != "active" {
			err = fmt.Errorf("%s is %s", unit, all["ActiveState"])
		}
		return err
	})
}

// floorCommand has systemctl say how a unit stands.
func floorCommand(ctx context.Context, o order) (any, error) {
	units, turn := names(o.Units), 0
	return floorTurns(func() error {
		unit := units[turn%len(units)]
		turn++
		return says(command(ctx, "systemctl", "status", "--no-pager", unit), unit)
	})
}

// floorRestart restarts a unit and waits for the end of the job.
func floorRestart(ctx context.Context, o order) (any, error) {
	c, err := dialLean(ctx)
	if err != nil {
		return nil, err
	}
	signals := make(chan *dbus.Signal, 64)
	c.Signal(signals)
	units, turn := names(o.Units), 0
	return floorTurns(func() error {
		unit := units[turn%len(units)]
		turn++
		for len(signals) > 0 {
			<-signals
		}
		answers, err := c.pipeline(ctx, []request{manager("RestartUnit", unit, "replace")})
		if err != nil {
			return err
		}
		var job dbus.ObjectPath
		if err := answers[0].Store(&job); err != nil {
			return err
		}
		for {
			select {
			case s := <-signals:
				if len(s.Body) < 4 || s.Body[1] != job {
					continue
				}
				if s.Body[3] != "done" {
					return fmt.Errorf("restart of %s: %v", unit, s.Body[3])
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}
