package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"stead/host"
	"stead/host/report"
	"stead/test/lab"
)

const (
	program = "/usr/local/bin/stead"
	unitDir = "/usr/local/lib/systemd/system"
	folder  = "/etc/stead/declarations"
	config  = "/etc/systemd/system"
	socket  = "/run/stead/host.sock"
)

// look is how often something is asked that has no other way to say that it changed.
const look = 20 * time.Millisecond

// machine is the lab node, seen from outside.
type machine struct{ *lab.Node }

// tree is the folder of this source tree, found by the go command.
func tree(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if mod := strings.TrimSpace(string(out)); err == nil && filepath.Base(mod) == "go.mod" {
		return filepath.Dir(mod), nil
	}
	return "", fmt.Errorf("find the source tree: run it below the folder of go.mod")
}

// install builds stead and puts it into nodes, with its unit files.
func install(ctx context.Context, tree string, nodes ...machine) error {
	dir, err := os.MkdirTemp("", "stead-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	built := filepath.Join(dir, "stead")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", built, "./cmd/stead")
	cmd.Dir, cmd.Env = tree, append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build stead: %w\n%s", err, bytes.TrimSpace(said))
	}
	for _, m := range nodes {
		if err := m.CopyIn(built, program); err != nil {
			return err
		}
		for _, unit := range []string{"host/stead-host.service", "controller/stead-controller.service", "runtime/server/stead-runtime.service",
			"runtime/escalate/stead-escalate.service", "runtime/escalate/stead-escalate.socket"} {
			if err := m.CopyIn(filepath.Join(tree, unit), filepath.Join(unitDir, filepath.Base(unit))); err != nil {
				return err
			}
		}
	}
	return nil
}

// must runs a command that nobody is shown.
func (m machine) must(ctx context.Context, args ...string) (string, error) {
	out, err := m.Exec(ctx, args...)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("%q: exit status %d: %s", args, out.Code, strings.TrimSpace(out.Stderr))
	}
	return strings.TrimSpace(out.Stdout), err
}

// until waits for what is to become so; what says so in the error when it does not.
func until(ctx context.Context, what string, is func() (bool, error)) error {
	for {
		yes, err := is()
		if yes && err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: it did not come to that: %w", what, errorOr(err, context.Cause(ctx)))
		case <-time.After(look):
		}
	}
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// status asks the host by its socket, from outside.
func (m machine) status(ctx context.Context) (host.Status, error) {
	return host.ReadStatus(ctx, m.Path(socket))
}

// reported waits for a report of the declaration name that is as wanted.
func (m machine) reported(ctx context.Context, name, what string, is func(*report.Report) bool) (*report.Report, error) {
	var found *report.Report
	err := until(ctx, name+" "+what, func() (bool, error) {
		st, err := m.status(ctx)
		for _, r := range st.Reports {
			if r.Name == name && is(r) {
				found = r
			}
		}
		return found != nil, err
	})
	return found, err
}

// stamps are systemd's own, of one unit.
type stamps struct {
	invocation string
	down, up   time.Duration // when it last became inactive, and active
	active     string
}

func (m machine) stamps(ctx context.Context, unit string) (stamps, error) {
	out, err := m.must(ctx, "systemctl", "show", "-p", "InvocationID,InactiveEnterTimestampMonotonic,ActiveEnterTimestampMonotonic,ActiveState", unit)
	var s stamps
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		usec, _ := strconv.ParseInt(value, 10, 64) // of the two stamps
		switch key {
		case "InvocationID":
			s.invocation = value
		case "InactiveEnterTimestampMonotonic":
			s.down = time.Duration(usec) * time.Microsecond
		case "ActiveEnterTimestampMonotonic":
			s.up = time.Duration(usec) * time.Microsecond
		case "ActiveState":
			s.active = value
		}
	}
	return s, err
}

// downFor waits until a unit that ran as invocation runs anew, and returns how long it did not run.
func (m machine) downFor(ctx context.Context, unit, invocation string) (time.Duration, error) {
	var s stamps
	err := until(ctx, unit+" runs again", func() (_ bool, err error) {
		s, err = m.stamps(ctx, unit)
		return s.active == "active" && s.invocation != invocation, err
	})
	return s.up - s.down, err
}
