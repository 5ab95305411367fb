package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"stead/host"
	"stead/host/report"
)

const socket = "/run/stead-bench.sock"

// startHost runs the real host in this node until stop is called, and returns
// when it answers. stop returns what it had to complain of.
func startHost(ctx context.Context) (stop func() error, err error) {
	_, stop, err = launchHost(ctx)
	return stop, err
}

func launchHost(ctx context.Context) (pid int, stop func() error, err error) {
	log, err := os.Create("/var/log/stead-bench.log")
	if err != nil {
		return 0, nil, err
	}
	cmd := exec.Command(steadPath, "host", "run", "--declarations", folder, "--socket", socket)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		err := cmd.Wait()
		log.Close()
		said, readErr := os.ReadFile(log.Name())
		if strings.Contains(string(said), "level=ERROR") {
			err = errors.Join(err, errors.New(string(said)))
		}
		return errors.Join(err, readErr)
	}
	for {
		if st, err := host.ReadStatus(ctx, socket); err == nil && st.Systemd != "" {
			return cmd.Process.Pid, stop, nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return 0, nil, errors.Join(ctx.Err(), stop())
		}
	}
}

// converged waits until the host says of n units that they are as declared.
func converged(ctx context.Context, n int) error {
	for {
		st, err := host.ReadStatus(ctx, socket)
		good := 0
		for _, r := range st.Reports {
			if r.Outcome == report.Converged {
				good++
			}
		}
		if err == nil && good == n {
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d units converged: %w", good, n, errors.Join(ctx.Err(), err))
		}
	}
}
