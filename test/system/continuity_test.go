package system

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestARestartOfTheHostStartsNoJob restarts it while all is right.
func TestARestartOfTheHostStartsNoJob(t *testing.T) {
	once := text{"once", "ensure: running\n", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >> /var/once'\n"}
	m := running(t, map[string]string{"a": up("a", sleeper(0)), "once": once.String(), "off": text{"off", "ensure: stopped\nenabled: false\n", sleeper(1)}.String()})
	b := m.listen(t, nil)
	for range 2 {
		from := time.Now()
		m.Run(t, "systemctl", "restart", service)
		m.converged(from, "a", "once", "off")
	}
	reloads, jobs := b.count()
	delete(jobs, service)
	require.Empty(t, jobs)
	require.Zero(t, reloads)
	require.Equal(t, "ran\n", m.read("/var/once"))
}

// TestAfterARebootEverythingIsAsDeclared reboots in good order and by a power
// cut, with the host enabled. Oneshots are run by a boot only where they are
// enabled.
func TestAfterARebootEverythingIsAsDeclared(t *testing.T) {
	once := func(name, install string, enabled string) string {
		return text{name, "ensure: running\nenabled: " + enabled + "\n", "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >> /var/" + name + "'\n" + install}.String()
	}
	const install = "[Install]\nWantedBy=multi-user.target\n"
	m := running(t, map[string]string{
		"a":        up("a", sleeper(0)),
		"disabled": text{"disabled", "ensure: running\nenabled: false\n", sleeper(1)}.String(),
		"off":      text{"off", "ensure: stopped\nenabled: true\n", sleeper(2)}.String(),
		"once":     once("once", install, "false"),
		"boot":     once("boot", install, "true"),
	})
	m.Run(t, "systemctl", "enable", service)
	for i, power := range []func(context.Context) error{m.Reboot, func(ctx context.Context) error {
		if err := m.PowerCut(ctx); err != nil {
			return err
		}
		return m.PowerOn(ctx)
	}} {
		from := time.Now()
		require.NoError(t, power(t.Context()))
		m.converged(from, "a", "disabled", "off", "once", "boot")
		require.Equal(t, []string{"active", "active", "inactive"}, m.props("ActiveState", []string{"a.service", "disabled.service", "off.service"}))
		require.Equal(t, "ran\n", m.read("/var/once"), "a boot does not run it again")
		require.Equal(t, strings.Repeat("ran\n", i+2), m.read("/var/boot"), "a boot runs it")
		require.Empty(t, m.link(path.Join(etc, "multi-user.target.wants/once.service")))
		require.Empty(t, m.Run(t, "find", "/etc/systemd", "-name", ".stead*"), "temporary files stay")
	}
	require.Contains(t, m.report("once").Text, "before this boot")
}

// TestTheManagerIsExecutedAnewUnderTheHost reexecutes PID 1, also while the host
// has something to do.
func TestTheManagerIsExecutedAnewUnderTheHost(t *testing.T) {
	m := running(t, map[string]string{"a": up("a", sleeper(0)), "b": up("b", sleeper(1))})
	invocation, host := m.prop("a.service", "InvocationID"), m.prop(service, "MainPID")
	m.Run(t, "systemctl", "daemon-reexec")
	m.Run(t, "systemctl", "stop", "b.service")
	m.until("drift is undone after it", func() bool { return m.prop("b.service", "ActiveState") == "active" })
	files := map[string]string{}
	for _, name := range []string{"a", "c", "d", "e"} {
		files[name] = up(name, sleeper(9))
	}
	m.declare(files)
	for range 3 {
		m.Run(t, "systemctl", "daemon-reexec")
		time.Sleep(200 * time.Millisecond)
	}
	m.converged(m.declared)
	require.NotEqual(t, invocation, m.prop("a.service", "InvocationID"))
	require.Equal(t, host, m.prop(service, "MainPID"), "the host is the same process")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		require.Equal(t, "active", m.prop(name+".service", "ActiveState"), name)
	}
}

// TestABusyManagerIsWaitedFor stops PID 1 for a while: the host says so, stays
// alive, and goes on when it answers.
func TestABusyManagerIsWaitedFor(t *testing.T) {
	m := running(t, map[string]string{"a": up("a", sleeper(0)), "b": up("b", sleeper(1))})
	b := m.listen(t, nil)
	host := m.prop(service, "MainPID")
	require.NoError(t, stop(m.PID()))
	asleep := true
	t.Cleanup(func() {
		if asleep {
			_ = wake(m.PID())
		}
	})
	require.NoError(t, m.Remove(etc+"/a.service"))
	require.NoError(t, m.WriteFile(folder+"/c.yaml", []byte(up("c", sleeper(2))), 0o644))
	m.until("the host says that the manager does not answer", func() bool {
		r := m.report("a")
		return r != nil && r.Outcome == report.Waiting && r.Reason == report.Unreachable
	})
	// It is waited for with the others when the connection is given up meanwhile.
	require.Contains(t, []report.Outcome{report.Converged, report.Waiting}, m.report("b").Outcome)
	require.NoError(t, wake(m.PID()))
	asleep = false
	m.expect(map[string]string{"c": up("c", sleeper(2))})
	m.declared = time.Time{}
	m.converged(m.declared)
	require.Equal(t, sleeper(0), m.read(etc+"/a.service"))
	require.Zero(t, b.jobsOf("a.service", "b.service"), "a manager that was busy costs no restart")
	require.Equal(t, host, m.prop(service, "MainPID"), "the host is the same process")
}
