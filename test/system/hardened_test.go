package system

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func stop(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }
func wake(pid int) error { return unix.Kill(pid, unix.SIGCONT) }

// TestAHostThatHangsIsRestartedByTheWatchdog stops the host's process. The
// watchdog's time is shortened by a drop-in.
func TestAHostThatHangsIsRestartedByTheWatchdog(t *testing.T) {
	m := install(t)
	m.Run(t, "mkdir", "-p", etc+"/"+service+".d")
	require.NoError(t, m.WriteFile(etc+"/"+service+".d/short.conf", []byte("[Service]\nWatchdogSec=3s\nTimeoutAbortSec=1s\n"), 0o644))
	m.Run(t, "systemctl", "daemon-reload")
	m.startHost()
	m.converged(m.declare(map[string]string{"web": up("web", sleeper(0))}))
	b := m.listen(t, nil)
	time.Sleep(5 * time.Second)
	require.Equal(t, "0", m.prop(service, "NRestarts"), "a host that is well feeds its watchdog")
	from := time.Now()
	require.NoError(t, stop(m.hostPID()))
	m.until("the host was restarted", func() bool { return m.prop(service, "NRestarts") == "1" })
	m.converged(from, "web")
	require.Zero(t, b.jobsOf("web.service"))
	require.Contains(t, m.Run(t, "journalctl", "--unit="+service, "--no-pager"), "Watchdog timeout")
}

// TestTheHostIsHardened prints how systemd rates the unit, and takes each of its
// capabilities away in turn: something that the host is for must fail then.
func TestTheHostIsHardened(t *testing.T) {
	m := install(t)
	out, err := m.Exec(t.Context(), "systemd-analyze", "security", "--no-pager", service)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out.Stdout), "\n")
	t.Log(lines[len(lines)-1])
	require.Contains(t, lines[len(lines)-1], "Overall exposure level for "+service)
}
