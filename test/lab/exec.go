package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Output is what a command inside a node left.
type Output struct {
	Stdout, Stderr string
	// Code is its exit status; 128 and the signal's number when a signal ended it; 127 when there is no such command.
	Code int
}

// join makes the process that it runs in a member of PID 1's own cgroup, as a login by nsenter has none, and becomes the command.
const join = `echo 0 > /sys/fs/cgroup/init.scope/cgroup.procs; exec "$@"`

// Command is a command to be run inside, as root, in "/", with a small environment and nothing of ours (Env may be added to). It is a member
// of init.scope. When ctx ends, it and its process group are killed. On a node that is off it does not start.
func (n *Node) Command(ctx context.Context, args ...string) *exec.Cmd {
	// nsenter waits outside and passes the exit status on; it is the group leader by which both can be killed.
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", strconv.Itoa(n.PID()),
		"--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--", "/bin/sh", "-c", join, "lab"}, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LANG=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	if n.PID() == 0 && cmd.Err == nil {
		cmd.Err = fmt.Errorf("lab node %q is off", n.Name())
	}
	return cmd
}

// Exec runs a command inside and waits for it. A command that ends with another status than 0 is no error.
func (n *Node) Exec(ctx context.Context, args ...string) (Output, error) {
	var stdout, stderr bytes.Buffer
	cmd := n.Command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	out := Output{Stdout: stdout.String(), Stderr: stderr.String()}
	if cmd.ProcessState != nil {
		out.Code = ExitCode(cmd.ProcessState)
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out, fmt.Errorf("run %q in lab node %q: %w", args, n.Name(), context.Cause(ctx))
	case err == nil || errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay): // the last: a child of its own still holds its output
		return out, nil
	}
	return out, fmt.Errorf("run %q in lab node %q: %w", args, n.Name(), err)
}

// ExitCode is how a Command ended, as Output.Code has it.
func ExitCode(p *os.ProcessState) int {
	if ws, ok := p.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ExitCode()
}

// Run runs a command inside that must succeed, and returns its standard output.
func (n *Node) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := n.Exec(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	if out.Code != 0 {
		t.Fatalf("run %q in lab node %q: exit status %d, want 0\n%s%s", args, n.Name(), out.Code, out.Stdout, out.Stderr)
	}
	return out.Stdout
}
