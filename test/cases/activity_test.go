package cases

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F002: the process of a simple service dies right after a start that went well.
// stead: looks again after the unit settled, and reports failed, with systemd's
// result, the exit status and the last lines of the log.
func TestF002ADeathAfterTheStartIsReported(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\n", "[Service]\nExecStart=/bin/sh -c 'echo the last words; exit 7'\n"),
		d.service("file", "ensure: running\n", "[Service]\nExecStart=/nonexistent/f002\n"),
		d.service("user", "ensure: running\n", "[Service]\nUser=f002-nobody\nExecStart=/bin/sleep 1000\n"))
	require.Equal(t, "exit-code", d.says("f002", report.Failed, report.Exited, "status 7").State.Result) // a retry has none while it lasts
	d.quotes("f002", "the last words")
	d.says("f002-file", report.Failed, report.Exited, "status 203 (EXEC: its program cannot be run)")
	d.says("f002-user", report.Failed, report.Exited, "status 217 (USER: its user does not exist)")
}

// F007: a unit that crashes again and again is activating (auto-restart), which is
// neither running nor stopped.
// stead: declared stopped it is stopped from there; declared running it is failed as a
// crash loop, with how it dies and how often it was restarted.
func TestF007ACrashLoopIsNeitherRunningNorStopped(t *testing.T) {
	d := sit(t)
	const crashes = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec="
	d.foreign(map[string]string{"f007-off.service": crashes + "30\n"})
	d.run("systemctl", "start", "f007-off.service")
	d.until("it waits to be restarted", func() bool { return d.prop("f007-off.service", "SubState") == "auto-restart" })
	d.apply(d.service("off", "ensure: stopped\n", ""), d.service("on", "ensure: running\n", crashes+"30\n"), d.service("fast", "ensure: running\n", crashes+"1\n"))
	d.converged("f007-off")
	require.Equal(t, "inactive", d.prop("f007-off.service", "ActiveState"))
	d.says("f007-on", report.Failed, report.CrashLoop, "crash loop: its process exited with status 1", "systemd waits to restart it")
	d.says("f007-fast", report.Failed, report.CrashLoop, "crash loop: its process exited with status 1", "times within 2m")
	require.NotZero(t, d.report("f007-fast").State.Restarts)
}

// F010: a oneshot without RemainAfterExit= is inactive after each good run, and is run
// for ever by who wants it running.
// stead: runs it once for each definition, and takes the good end of that run for
// running; a new definition is another run.
func TestF010AOneshotRunsOncePerDefinition(t *testing.T) {
	d := sit(t)
	once := func(n int) service {
		return d.service("", "ensure: running\n", fmt.Sprintf("[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo %d >> /run/f010'\n", n))
	}
	d.apply(once(1))
	d.converged()
	require.Equal(t, "1\n", d.read("/run/f010"))
	d.unchanged(once(1))
	require.Equal(t, "1\n", d.read("/run/f010"))
	d.apply(once(2))
	d.converged()
	require.Equal(t, "1\n2\n", d.read("/run/f010"))
	require.Equal(t, "inactive", d.prop("f010.service", "ActiveState"))
}

// F019: a unit that failed into its start limit refuses to start after it was mended.
// stead: a new definition of a failed unit resets the failure first, and then starts it.
func TestF019AMendedUnitStartsInSpiteOfItsLimit(t *testing.T) {
	d := sit(t)
	const limited = "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/"
	d.apply(d.service("", "ensure: running\n", limited+"false\n"))
	d.says("f019", report.Failed, report.Exited, "status 1")
	// A daemon-reload takes the count back, so it may take a while.
	d.until("the limit is hit", func() bool {
		d.exec("sh", "-c", "for i in 1 2 3 4; do systemctl start f019; done")
		return strings.Contains(d.run("journalctl", "--output=cat", "--unit=f019.service"), "Start request repeated too quickly")
	})
	d.apply(d.service("", "ensure: running\n", limited+"true\n"))
	d.converged()
	reset := steps(d.report("f019"), "reset-failed", "f019.service")
	require.NotEmpty(t, reset)
	require.Equal(t, "it failed with an older definition", reset[0].Reason)
}

// F034: a start succeeds, and the unit does not run, for a condition of it is not met.
// stead: waits, naming the condition, and starts it once that is met; an Assert that is
// not met is a failure.
func TestF034AnUnmetConditionIsNamed(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\nenabled: true\n", "[Unit]\nConditionPathExists=/run/f034\n"+wanted),
		d.service("assert", "ensure: running\n", "[Unit]\nAssertPathExists=/run/f034-never\n"+sleeper))
	d.says("f034", report.Waiting, report.Condition, "ConditionPathExists=/run/f034 is not met")
	d.says("f034-assert", report.Failed, report.JobEnded, "AssertPathExists=/run/f034-never is not met")
	d.write("/run/f034", "")
	d.converged("f034")
	require.Equal(t, "active", d.prop("f034.service", "ActiveState"))
}

// F038: a unit that is declared stopped is started again and again by its socket, timer
// or path.
// stead: names what will start it again, stops it with growing delay, and calls it
// contested; the other unit is stopped only where it is declared so.
func TestF038WhatStartsAStoppedUnitIsNamed(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f038.path": "[Path]\nPathExists=/run/f038\n", "f038.service": sleeper})
	d.run("systemctl", "start", "f038.path")
	d.apply(d.service("", "ensure: stopped\n", ""))
	d.converged()
	d.until("what may start it is named", func() bool { return slices.Contains(d.report("f038").Warnings, "f038.path may start it again") })
	require.Equal(t, []string{"f038.path"}, d.status("f038.service").TriggeredBy)
	d.write("/run/f038", "")
	d.says("f038", report.Contested, "", "started from outside", "growing delay")
	require.Equal(t, "active", d.prop("f038.path", "ActiveState"))
	require.LessOrEqual(t, len(steps(d.report("f038"), "stop", "f038.service")), 4)
	d.until("what may start it is named", func() bool { return slices.Contains(d.report("f038").Warnings, "f038.path may start it again") })
	d.apply(d.service("", "ensure: stopped\n", ""), d.service("path", "unit: f038.path\nensure: stopped\n", ""))
	d.converged("f038-path")
	d.until("it stays stopped", func() bool { return d.prop("f038.service", "ActiveState") == "inactive" })
}

// F040: a start that never ends is waited for without end.
// stead: waits for no job: the unit is waiting, with the number of its job, and failed
// when its timeout is over; the job is left in the queue, and others go on.
func TestF040AStartWithoutEndHoldsUpNothing(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\ntimeout: 3s\n", "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep 100000\n"),
		d.service("oneshot", "ensure: running\n", "[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sleep 100000\n"),
		d.service("other", "ensure: running\n", sleeper))
	d.says("f040-oneshot", report.Waiting, report.Starting, "starting (job ")
	d.converged("f040-other")
	d.says("f040", report.Failed, report.BudgetSpent, "not done within 3s: still starting (job ", "left in the queue")
	require.Contains(t, d.run("systemctl", "list-jobs", "--no-legend"), "f040.service")
	require.Equal(t, "activating", d.prop("f040.service", "ActiveState"))
}

// F041: enabling and starting a masked unit is said to have gone well.
// stead: refuses, naming the mask by its path and the cure; masked: false takes it away.
func TestF041AMaskIsNamed(t *testing.T) {
	d := sit(t)
	const vendor = "/usr/local/lib/systemd/system/f041.service"
	d.foreign(map[string]string{vendor: wanted})
	d.run("systemctl", "mask", "f041.service")
	d.apply(d.service("", "ensure: running\nenabled: true\n", ""))
	r := d.says("f041", report.Refused, report.IsMasked, "f041.service is masked by "+etc+"/f041.service")
	require.Equal(t, "masked: false", r.Hint)
	out := d.stead("", "start", "f041", "-n", hostname)
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "masked")
	require.Equal(t, "inactive", d.prop("f041.service", "ActiveState"))
	require.Empty(t, d.link(wants+"f041.service"))
	d.apply(d.service("", "ensure: running\nenabled: true\nmasked: false\n", ""))
	d.converged()
	require.Equal(t, "active", d.prop("f041.service", "ActiveState"))
	require.Equal(t, vendor, d.link(wants+"f041.service"))
	require.Empty(t, d.link(etc+"/f041.service"))
}

// F009: a unit whose file lies in /etc/systemd/system cannot be masked there.
// stead: stops it, keeps the declared content aside, and puts the mask over the file;
// with masked: false the content is back.
func TestF009AMaskGoesOverOurOwnFile(t *testing.T) {
	d := sit(t)
	file := etc + "/f009.service"
	d.apply(d.service("", "ensure: running\nenabled: true\n", wanted))
	d.converged()
	d.apply(d.service("", "masked: true\n", wanted))
	d.converged()
	require.Equal(t, "/dev/null", d.link(file))
	require.Equal(t, "masked inactive", d.prop("f009.service", "LoadState")+" "+d.prop("f009.service", "ActiveState"))
	require.Empty(t, d.link(wants+"f009.service"))
	require.NotZero(t, d.exec("systemctl", "start", "f009").Code)
	d.apply(d.service("", "masked: false\nensure: running\nenabled: true\n", wanted))
	d.converged()
	require.Equal(t, wanted, d.read(file))
	require.Equal(t, file, d.link(wants+"f009.service"))
	require.Equal(t, "active", d.prop("f009.service", "ActiveState"))
}

// F060: an operator stops a unit by hand, and the tool starts it, or does not.
// stead: starts it again where ensure: running is declared, and the step says that it
// was stopped from outside; without ensure it starts and stops nothing.
func TestF060AStopByHandIsUndoneWhereDeclared(t *testing.T) {
	d := sit(t)
	d.apply(d.service("kept", "ensure: running\n", sleeper), d.service("free", "", sleeper))
	d.converged()
	require.Equal(t, "inactive", d.prop("f060-free.service", "ActiveState"), "nothing was said of its activity")
	d.run("systemctl", "start", "f060-free")
	run := d.prop("f060-kept.service", "InvocationID")
	d.run("systemctl", "stop", "f060-free", "f060-kept")
	d.until("it runs again", func() bool {
		return d.prop("f060-kept.service", "ActiveState") == "active" && d.prop("f060-kept.service", "InvocationID") != run
	})
	d.converged()
	starts := steps(d.report("f060-kept"), "start", "f060-kept.service")
	require.Len(t, starts, 2)
	require.Equal(t, "stopped from outside; ensure: running", starts[1].Reason)
	require.Equal(t, "inactive", d.prop("f060-free.service", "ActiveState"))
}
