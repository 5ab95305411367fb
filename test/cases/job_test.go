package cases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/seats"
)

// F022: a unit is removed without being disabled first, which leaves its links.
// stead: stops it, removes its links while its file is there, then the file, reloads, and
// resets its failure; links that somebody let dangle by removing the file go too.
func TestF022NothingIsLeftOfAUnitThatIsWithdrawn(t *testing.T) {
	d := sit(t)
	const both = "ensure: running\nenabled: true\n"
	install := "[Install]\nWantedBy=multi-user.target f022-x.target\nAlias=f022-nick-%p.service\n"
	d.apply(d.service("", both, sleeper+install), d.service("fails", both, "[Service]\nExecStart=/bin/false\n"+install), d.service("gone", "enabled: true\n", sleeper+install))
	d.converged("f022", "f022-gone")
	d.says("f022-fails", report.Failed, report.Exited)
	names := d.names()
	d.run("rm", etc+"/f022-gone.service")
	d.withdraw()
	for _, n := range names {
		u := n + ".service"
		require.Equal(t, "not-found inactive", d.prop(u, "LoadState")+" "+d.prop(u, "ActiveState"), u)
	}
	require.Empty(t, d.sh("find /etc/systemd/system -name '*f022*'"))
	require.NotContains(t, d.run("systemctl", "list-units", "--failed", "--no-legend"), "f022")
}

// F027: the result of a job is not looked at, or looked at wrongly.
// stead: waits for the end of its own job and tells each result by name: the verbs with
// exit status and words, the host as outcome; canceled is a reason to look again.
func TestF027EveryResultOfAJobIsTold(t *testing.T) {
	d := sit(t)
	const slow = "[Service]\nType=oneshot\nExecStart=/bin/sleep 100000\n"
	bad := "[Service]\nType=oneshot\nExecStart=/bin/false\n"
	d.foreign(map[string]string{
		"f027-failed.service":     bad,
		"f027-timeout.service":    "[Unit]\nJobRunningTimeoutSec=1\n" + slow,
		"f027-bad.service":        bad,
		"f027-dependency.service": "[Unit]\nRequires=f027-bad.service\nAfter=f027-bad.service\n" + sleeper,
		"f027-assert.service":     "[Unit]\nAssertPathExists=/run/f027-never\n" + sleeper,
		"f027-canceled.service":   slow,
		"f027-skipped.service":    "[Unit]\nConditionPathExists=/run/f027-never\n" + wanted,
		"f027-done.service":       sleeper,
	})
	for _, result := range []string{"failed", "timeout", "dependency", "assert"} {
		out := d.stead("", "start", "f027-"+result, "-n", hostname)
		require.NotZero(t, out.Code, "%s: %s", result, out.Stdout)
		require.Contains(t, strings.ToLower(out.Stderr), result)
	}
	d.run("systemctl", "enable", "f027-skipped")    // what nothing refers to, systemd forgets
	d.until("the condition is named", func() bool { // a reload of somebody else's makes systemd forget it
		skipped := d.stead("", "start", "f027-skipped", "-n", hostname)
		return strings.Contains(skipped.Stdout+skipped.Stderr, "it was not started: ConditionPathExists=/run/f027-never is not met")
	})
	reply := answer[seats.ActReply](d, "start", "f027-done")
	require.Equal(t, "done", reply.Units[0].Result)
	done := make(chan string)
	go func() { done <- d.stead("", "start", "f027-canceled", "-n", hostname).Stderr }()
	d.until("it starts", func() bool { return d.prop("f027-canceled.service", "ActiveState") == "activating" })
	d.run("systemctl", "stop", "f027-canceled")
	require.Contains(t, <-done, "canceled")

	d.apply(d.service("dependency", "ensure: running\n", ""), d.service("assert", "ensure: running\n", ""))
	d.says("f027-dependency", report.Failed, report.JobEnded, "dependency: a unit that it requires did not start")
	d.says("f027-assert", report.Failed, report.JobEnded, "AssertPathExists=/run/f027-never")
}

// F030: who asked for a job goes away, and the jobs of all others are never told to end.
// stead: whoever waits has a place of his own for one answer; a caller that goes leaves
// the job to itself, and others hear of theirs.
func TestF030ACallerThatGoesBlocksNobody(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f030-slow.service": "[Service]\nType=oneshot\nExecStart=/bin/sleep 100000\n", "f030.service": sleeper})
	for range 3 {
		out := d.stead("", "start", "f030-slow", "-n", hostname, "--timeout=1s")
		require.NotZero(t, out.Code, out.Stdout)
		reply := answer[seats.ActReply](d, "restart", "f030")
		require.Equal(t, "done", reply.Units[0].Result)
	}
	require.Equal(t, "activating", d.prop("f030-slow.service", "ActiveState"), "its job was left to itself")
}

// F055: the tool restarts or stops its own unit, or one that it stands on.
// stead: refuses what is its own or what it stands on, by every name, when it is declared
// and when it is asked for by a verb; the mesh cannot saw off its own branch.
func TestF055SteadDoesNotSawOffItsBranch(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f055.service": sleeper})
	for unit, why := range map[string]string{
		"stead-host.service": "it is stead's own", "stead-runtime.service": "it is stead's own", "dbus.service": "stead stands on it", "dbus.socket": "stead stands on it",
		"systemd-journald.service": "stead stands on it", "user@1000.service": "stead stands on it",
	} {
		text := d.refused(d.service("", "unit: "+unit+"\non_change: restart\n"+dropin("a", 1), ""))
		require.Contains(t, text, "\""+unit+"\" is protected: "+why)
		for _, verb := range []string{"stop", "restart"} {
			out := d.stead("", verb, unit, "-n", hostname)
			require.Equal(t, 1, out.Code, "%s %s: %s", verb, unit, out.Stdout)
			require.Contains(t, out.Stderr, "protected: "+why, "%s %s", verb, unit)
		}
	}
	require.Equal(t, "active", d.prop("stead-host.service", "ActiveState"))
}
