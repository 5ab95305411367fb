package cases

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F077: a timer is edited, and what it starts runs at once.
// stead: has the manager read the timer anew and does not restart it, so the schedule
// is the new one and nothing runs; a restart that is declared says what it may do.
func TestF077AnEditedTimerRunsNothing(t *testing.T) {
	d := sit(t)
	d.sh("rm -f /run/f077*")
	timer := func(when string) string { return "[Timer]\nOnCalendar=" + when + "\nPersistent=true\n" }
	const job = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >> /run/f077'\n"
	zero := "[Timer]\nOnActiveSec=0\nUnit=f077-zero.service\n"
	const zeroJob = "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'echo ran >> /run/f077-zero'\n"
	d.apply(d.service("job", "unit: f077.service\n", job), d.service("", "unit: f077.timer\nensure: running\nenabled: true\n", timer("2001-01-01 05:35")+"[Install]\nWantedBy=timers.target\n"),
		d.service("zero-job", "unit: f077-zero.service\n", zeroJob), d.service("zero", "unit: f077-zero.timer\nensure: running\n", zero))
	d.converged()
	d.until("the timer of no time has run its job", func() bool { return d.read("/run/f077-zero") == "ran\n" })
	d.sh("rm -f /run/f077")
	run := d.prop("f077.timer", "InvocationID")

	d.apply(d.service("", "unit: f077.timer\nensure: running\nenabled: true\n", timer("2101-02-01 06:35")+"[Install]\nWantedBy=timers.target\n"),
		d.service("zero", "unit: f077-zero.timer\nensure: running\n", zero+"[Unit]\nDescription=edited\n"))
	d.converged()
	require.Contains(t, d.prop("f077.timer", "TimersCalendar"), "2101-02-01 06:35")
	require.Equal(t, "edited", d.prop("f077-zero.timer", "Description"))
	require.Equal(t, run, d.prop("f077.timer", "InvocationID"))
	require.Empty(t, d.read("/run/f077"))
	require.Equal(t, "ran\n", d.read("/run/f077-zero"))

	d.apply(d.service("zero", "unit: f077-zero.timer\nensure: running\non_change: restart\n", zero))
	last := ""
	d.until("it warns of what a restart may start", func() bool {
		r := d.report("f077-zero")
		if r == nil {
			return false
		}
		last = strings.Join(r.Warnings, "\n")
		return strings.Contains(last, "may start what it is for at once")
	}, &last)
}

// F079: two units that exclude each other are both declared running.
// stead: keeps the one that runs, refuses the other, and names both; nothing flaps.
func TestF079TwoUnitsThatExcludeEachOtherDoNotFlap(t *testing.T) {
	d := sit(t)
	d.apply(d.service("a", "ensure: running\n", "[Unit]\nConflicts=f079-b.service\n"+sleeper), d.service("b", "ensure: running\n", sleeper))
	d.says("f079-b", report.Refused, report.OwnedBy, "conflict with f079-a.service", "ensure: stopped")
	d.converged("f079-a")
	run := d.prop("f079-a.service", "InvocationID")
	for range 2 {
		d.run("touch", etc+"/f079-b.service.d", etc+"/f079-b.service")
		d.sh("mkdir -p /run/systemd/system/f079-b.service.d; rmdir /run/systemd/system/f079-b.service.d")
		time.Sleep(500 * time.Millisecond)
	}
	require.Equal(t, run, d.prop("f079-a.service", "InvocationID"))
	d.apply(d.service("a", "ensure: stopped\n", "[Unit]\nConflicts=f079-b.service\n"+sleeper))
	d.converged()
	require.Equal(t, "active", d.prop("f079-b.service", "ActiveState"))
}

// F090: a generator does not make its unit, because what it reads has an error.
// stead: says that there is no such unit, and quotes what generators said of it; when
// the unit is there it is started.
func TestF090WhatAGeneratorSaidOfAMissingUnitIsQuoted(t *testing.T) {
	d := sit(t)
	const generator = "/etc/systemd/system-generators/f090-generator"
	d.write("/srv/f090.conf", "exec /bin/sleep 100000\n")
	require.NoError(t, d.node.WriteFile(generator, []byte(`#!/bin/sh
case $(cat /srv/f090.conf) in
exec=*) printf '[Service]\nExecStart=%s\n' "$(sed s/exec=// /srv/f090.conf)" > "$1/f090.service" ;;
*) logger -t f090-generator "/srv/f090.conf:1: no equals sign" ;;
esac
`), 0o755))
	d.Cleanup(func() { _, _ = d.node.Exec(context.Background(), "rm", generator) })
	d.run("systemctl", "daemon-reload")
	d.apply(d.service("", "ensure: running\n", ""))
	d.says("f090", report.Failed, report.Missing)
	d.quotes("f090", "/srv/f090.conf:1: no equals sign")
	d.write("/srv/f090.conf", "exec=/bin/sleep 100000\n")
	d.run("systemctl", "daemon-reload")
	d.converged()
	require.Equal(t, "generated", d.prop("f090.service", "UnitFileState"))
	d.withdraw()
}

// F091: a unit refuses to be started or stopped by hand.
// stead: reads that in its files, refuses what cannot be, and never tries it; a change
// that cannot be taken in is a warning.
func TestF091UnitsThatRefuseToBeActedOnAreNamed(t *testing.T) {
	d := sit(t)
	d.apply(d.service("start", "ensure: running\n", "[Unit]\nRefuseManualStart=yes\n"+sleeper))
	d.says("f091-start", report.Refused, report.ManualOnly, "RefuseManualStart=")

	stop := "[Unit]\nRefuseManualStop=yes\n" + sleeper
	d.apply(d.service("stop", "ensure: running\n", stop))
	d.converged("f091-stop")
	d.apply(d.service("stop", "ensure: running\n", stop+"Environment=A=1\n"))
	d.converged("f091-stop")
	last := ""
	d.until("it warns that the change is not taken in", func() bool {
		last = strings.Join(d.report("f091-stop").Warnings, "\n")
		return strings.Contains(last, "RefuseManualStop=")
	}, &last)
	d.apply(d.service("stop", "ensure: stopped\n", stop))
	d.says("f091-stop", report.Refused, report.ManualOnly, "RefuseManualStop=")
	require.Equal(t, "active", d.prop("f091-stop.service", "ActiveState"))
	require.Empty(t, d.exec("journalctl", "--unit=f091-*", "--grep=manual", "--quiet", "--output=cat", "-n1").Stdout, "nothing was tried")
	d.apply(d.service("stop", "ensure: running\n", sleeper)) // so that it can be given back
	d.converged("f091-stop")
}

// F120: a service says that it reloads, and never that it is ready again.
// stead: counts it as running, waits within the budget and then says how long it has
// been reloading; it is not restarted.
func TestF120AReloadThatDoesNotEndHasADeadline(t *testing.T) {
	d := sit(t)
	const script = `[Service]
Type=notify
NotifyAccess=all
ExecStart=/bin/sh -c 'trap "systemd-notify RELOADING=1" HUP; systemd-notify --ready; while :; do sleep 0.2; done'
ExecReload=/bin/kill -HUP $MAINPID
`
	d.apply(d.service("", "ensure: running\non_change: reload\ntimeout: 20s\n", script))
	d.converged()
	pid := d.prop("f120.service", "MainPID")
	d.run("systemctl", "reload", "--no-block", "f120.service")
	d.says("f120", report.Waiting, report.Settling, "reloading")
	d.says("f120", report.Failed, report.BudgetSpent, "reloading", "20s")
	require.Equal(t, pid, d.prop("f120.service", "MainPID"))
	require.Equal(t, "reloading", d.status("f120.service").Active)
	d.run("systemctl", "kill", "--signal=KILL", "f120.service")
	d.converged()
}
