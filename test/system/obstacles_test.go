package system

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestADiskThatCannotBeWrittenIsSaidAndWaitedFor makes the unit folder read-only,
// and then its file system full.
func TestADiskThatCannotBeWrittenIsSaidAndWaitedFor(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0)), "other": up("other", sleeper(0))})
	b := m.listen(t, nil)
	// A file system of its own, for it to be read-only in the host's namespace too.
	m.Run(t, "sh", "-ec", "mkdir /run/small; mount -t tmpfs -o size=1m none /run/small; cp -a "+etc+"/. /run/small; mount --bind /run/small "+etc+
		"; mount -o remount,ro "+etc)
	m.declare(map[string]string{"web": up("web", sleeper(1)), "new": up("new", sleeper(2))})
	for _, name := range []string{"web", "new"} {
		r := m.outcome(name, report.Failed, report.DiskError)
		require.Contains(t, r.Text, etc+"/"+name+".service")
		require.Contains(t, r.Text, "read-only file system")
		require.NotZero(t, r.Retry)
	}
	require.Equal(t, sleeper(0), m.read(etc+"/web.service"), "the old file stays whole")
	m.Run(t, "systemctl", "stop", "other.service")
	m.until("others are kept", func() bool { return m.prop("other.service", "ActiveState") == "active" })
	require.Zero(t, b.jobsOf("web.service", "new.service"))
	reloads, _ := b.count()
	require.Zero(t, reloads, "nothing was written")
	m.Run(t, "mount", "-o", "remount,rw", etc)
	m.converged(m.declared)
	require.Equal(t, sleeper(1), m.read(etc+"/web.service"))

	m.Run(t, "sh", "-c", "head -c 1m /dev/zero > "+etc+"/fill || true")
	m.declare(map[string]string{"web": up("web", sleeper(3))})
	require.Contains(t, m.outcome("web", report.Failed, report.DiskError).Text, "no space left")
	require.Equal(t, sleeper(1), m.read(etc+"/web.service"), "the old file stays whole")
	m.Run(t, "rm", etc+"/fill")
	m.converged(m.declared)
	require.Empty(t, m.Run(t, "find", etc, "-name", ".stead*"))
}

// TestAReloadDoesNotTakeAForkingUnitsPIDFile lets one that writes its PID file
// late start beside a declaration that wants a reload.
func TestAReloadDoesNotTakeAForkingUnitsPIDFile(t *testing.T) {
	const fork = "[Service]\nType=forking\nPIDFile=/run/fork.pid\nExecStart=/bin/sh -c 'sleep 100000 & (sleep 2; echo $! > /run/fork.pid) &'\n"
	m := running(t, map[string]string{"first": up("first", sleeper(0))})
	m.declare(map[string]string{"fork": text{"fork", "ensure: running\n", fork}.String()})
	m.until("it starts", func() bool { return m.prop("fork.service", "ActiveState") == "activating" })
	m.declare(map[string]string{"second": up("second", sleeper(1))})
	m.converged(m.declared)
	require.Equal(t, "active", m.prop("fork.service", "ActiveState"))
	require.Equal(t, strings.TrimSpace(m.read("/run/fork.pid")), m.prop("fork.service", "MainPID"))
	require.Equal(t, "0", m.prop("fork.service", "NRestarts"))
}

// TestTwoUnitsThatConflictDoNotFlap declares both running: each start stops the
// other one. The one that runs goes on, and the other one says why it does not.
func TestTwoUnitsThatConflictDoNotFlap(t *testing.T) {
	m := running(t, map[string]string{"other": up("other", sleeper(0))})
	b := m.listen(t, nil)
	m.declare(map[string]string{"a": up("a", "[Unit]\nConflicts=b.service\n"+sleeper(1)), "b": up("b", sleeper(2))})
	require.Contains(t, m.outcome("b", report.Refused, report.OwnedBy).Text, "a.service")
	m.outcome("a", report.Converged, "")
	time.Sleep(12 * time.Second)
	require.LessOrEqual(t, b.jobsOf("a.service", "b.service"), 2, "a start of the one, with what that stops")
	m.outcome("a", report.Converged, "")
	require.Equal(t, report.Converged, m.report("other").Outcome)
	require.Zero(t, b.jobsOf("other.service"))
	// Whoever mends it need not wait for the next try.
	m.converged(m.declare(map[string]string{"b": "", "a": up("a", sleeper(3))}))
}
