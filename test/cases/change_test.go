package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// environ is the environment of a unit's main process, a variable a line.
func (d *desk) environ(unit string) string {
	d.Helper()
	return strings.ReplaceAll(d.read("/proc/"+d.prop(unit, "MainPID")+"/environ"), "\x00", "\n")
}

// dropin is the field of a declaration with one drop-in of that number.
func dropin(name string, n int) string {
	return fmt.Sprintf("dropins: {%s.conf: \"[Service]\\nEnvironment=TAKEN=%d\\n\"}\n", name, n)
}

// F003: the first drop-in of a unit, and the manager says that no reload is needed.
// stead: reloads whenever it changed a file, and when it sees that somebody else did;
// what the manager says of it counts only when it is yes.
func TestF003TheFirstDropInIsLoaded(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\n", sleeper), d.service("foreign", "ensure: running\n", sleeper))
	d.converged()
	d.apply(d.service("", "ensure: running\n"+dropin("10-a", 1), sleeper))
	d.converged()
	require.Contains(t, d.environ("f003.service"), "TAKEN=1")
	require.Equal(t, etc+"/f003.service.d/10-a.conf", d.prop("f003.service", "DropInPaths"))
	d.write(etc+"/f003-foreign.service.d/a.conf", "[Service]\nEnvironment=TAKEN=2\n")
	t.Cleanup(func() { require.NoError(t, d.node.Remove(etc+"/f003-foreign.service.d")) })
	d.until("the drop-in of somebody else is taken in", func() bool { return strings.Contains(d.environ("f003-foreign.service"), "TAKEN=2") })
	d.converged()
}

// F026: a new unit file in a directory of higher priority shadows the loaded one, and
// the manager says that no reload is needed.
// stead: reloads, and compares the path of the loaded file with the declared one; where
// somebody else's file is the one that counts, the report names it.
func TestF026AFileThatShadowsTheLoadedOneIsSeen(t *testing.T) {
	d := sit(t)
	const vendor = "/usr/local/lib/systemd/system/"
	d.foreign(map[string]string{vendor + "f026.service": sleeper, vendor + "f026-foreign.service": sleeper})
	d.apply(d.service("", "ensure: running\n", ""), d.service("foreign", "ensure: running\n", ""))
	d.converged()
	marked := strings.Replace(sleeper, "ExecStart", "Environment=TAKEN=1\nExecStart", 1)
	d.apply(d.service("", "ensure: running\n", marked))
	d.write(etc+"/f026-foreign.service", marked)
	t.Cleanup(func() { require.NoError(t, d.node.Remove(etc+"/f026-foreign.service")) })
	d.converged("f026")
	require.Equal(t, etc+"/f026.service", d.prop("f026.service", "FragmentPath"))
	require.Contains(t, d.environ("f026.service"), "TAKEN=1")
	d.until("the file of somebody else is taken in", func() bool { return strings.Contains(d.environ("f026-foreign.service"), "TAKEN=1") })
	require.Equal(t, etc+"/f026-foreign.service", d.prop("f026-foreign.service", "FragmentPath"))
	// What comes before /etc is not overwritten, and named.
	const wins = "/etc/systemd/system.control/f026.service"
	d.foreign(map[string]string{wins: sleeper})
	d.says("f026", report.Failed, report.Shadowed, wins+" wins over the declared "+etc+"/f026.service", "rm "+wins)
}

// F029: only drop-ins of a unit are declared, and one changes.
// stead: writes everything first, reloads once, and refreshes the unit after that.
func TestF029ADropInOfAnotherUnitIsTakenIn(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"/usr/local/lib/systemd/system/f029.service": sleeper})
	d.run("systemctl", "start", "f029")
	for n := 1; n <= 2; n++ {
		d.apply(d.service("", "on_change: restart\n"+dropin("50-a", n), ""))
		d.converged()
		require.Contains(t, d.environ("f029.service"), fmt.Sprintf("TAKEN=%d", n))
	}
	var did []string
	for _, s := range d.report("f029").Steps {
		if s.Action != "reload" { // it may have been somebody else's
			did = append(did, s.Action)
		}
	}
	require.Equal(t, "write restart write restart", strings.Join(did, " "))
}

// F021: a unit that has no way to reload is declared with on_change: reload.
// stead: says so with the declaration's own cure, restarts nothing, and warns of it
// before anything changes; reload_or_restart restarts such a unit.
func TestF021AUnitThatCannotReloadIsNamed(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\non_change: reload\n", sleeper), d.service("or", "ensure: running\non_change: reload_or_restart\n", sleeper))
	d.converged()
	require.Contains(t, strings.Join(d.report("f021").Warnings, "\n"), "f021.service has no way to reload")
	run, or := d.prop("f021.service", "InvocationID"), d.prop("f021-or.service", "InvocationID")
	d.apply(d.service("", "ensure: running\non_change: reload\n"+dropin("a", 1), sleeper), d.service("or", "ensure: running\non_change: reload_or_restart\n"+dropin("a", 1), sleeper))
	d.says("f021", report.Failed, report.CannotReload, "f021.service has no way to reload", "on_change: reload_or_restart")
	d.converged("f021-or")
	require.Equal(t, run, d.prop("f021.service", "InvocationID"))
	require.NotEqual(t, or, d.prop("f021-or.service", "InvocationID"))
}

// F023: a change starts a unit that is stopped.
// stead: refreshes only what runs; a unit that is declared stopped, or of which no
// activity is declared, is not started by a change.
func TestF023AChangeStartsNothing(t *testing.T) {
	d := sit(t)
	say := func(n int) []service {
		return []service{d.service("stopped", "ensure: stopped\non_change: restart\n"+dropin("a", n), sleeper), d.service("free", "on_change: reload_or_restart\n"+dropin("a", n), sleeper)}
	}
	d.apply(say(1)...)
	d.converged()
	d.apply(say(2)...)
	d.converged()
	for _, name := range d.names() {
		require.Contains(t, d.prop(name+".service", "Environment"), "TAKEN=2")
		require.Empty(t, d.prop(name+".service", "InvocationID"), "it was never started")
		for _, s := range d.report(name).Steps {
			require.Contains(t, []string{"write", "reload"}, s.Action)
		}
	}
}

// F053: a reload of a unit that does not run is an error.
// stead: a unit that does not run takes a change in by nothing, and is converged.
func TestF053AStoppedUnitIsNotReloaded(t *testing.T) {
	d := sit(t)
	const reloads = "[Service]\nExecStart=/bin/sleep 100000\nExecReload=/bin/true\n"
	d.apply(d.service("", "on_change: reload\n"+dropin("a", 1), reloads))
	d.converged()
	d.apply(d.service("", "on_change: reload\n"+dropin("a", 2), reloads))
	d.converged()
	r := d.report("f053")
	require.Empty(t, r.Warnings)
	for _, s := range r.Steps {
		require.Empty(t, s.Error)
		require.Contains(t, []string{"write", "reload"}, s.Action)
	}
}

// F054: two drop-ins set the same option, and the last by name wins in silence.
// stead: warns of each drop-in of others that is read after the declared ones, by its
// path, and status lists all in their order.
func TestF054ADropInThatIsReadLaterIsNamed(t *testing.T) {
	d := sit(t)
	const (
		early = etc + "/f054.service.d/10-b.conf"
		late  = etc + "/f054.service.d/90-x.conf"
	)
	d.foreign(map[string]string{early: "[Service]\nNice=1\n", late: "[Service]\nNice=3\n"})
	d.apply(d.service("", "ensure: running\ndropins: {50-a.conf: \"[Service]\\nNice=2\\n\"}\n", sleeper))
	d.converged()
	require.Contains(t, d.report("f054").Warnings, "drop-ins of others are read after what is declared: "+early+", "+late)
	require.Equal(t, []string{early, etc + "/f054.service.d/50-a.conf", late}, d.status("f054.service").DropIns)
	require.Equal(t, "3", d.prop("f054.service", "Nice"))
}

// F048: a reload of the unit does not take in a new ExecStart= or Environment=.
// stead: reloads, as is declared, and warns that what the unit's files say since the
// process began wants a restart.
func TestF048ADefinitionIsNotTakenInByAReload(t *testing.T) {
	d := sit(t)
	const reloads = "[Service]\nExecStart=/bin/sleep 100000\nExecReload=/bin/true\n"
	d.apply(d.service("", "ensure: running\non_change: reload\n"+dropin("a", 1), reloads))
	d.converged()
	d.apply(d.service("", "ensure: running\non_change: reload\n"+dropin("a", 2), reloads))
	d.converged()
	r := d.report("f048")
	require.Len(t, steps(r, "reload-unit", "f048.service"), 1)
	require.Contains(t, d.environ("f048.service"), "TAKEN=1")
	require.Contains(t, strings.Join(r.Warnings, "\n"), "restart")
	d.run("systemctl", "restart", "f048")
	d.until("the warning is gone", func() bool { r := d.report("f048"); return r != nil && len(r.Warnings) == 0 })
	require.Contains(t, d.environ("f048.service"), "TAKEN=2")
}

// F046: a socket and its service change together, and are restarted in the wrong order
// while clients connect.
// stead: stops the service, restarts the socket, and then starts the service if it ran.
func TestF046ASocketIsRestartedBeforeItsService(t *testing.T) {
	d := sit(t)
	say := func(n int) []service {
		return []service{
			d.service("socket", "unit: f046.socket\nensure: running\non_change: restart\n", fmt.Sprintf("[Socket]\nListenStream=127.0.0.1:%d\n", 4600+n)),
			d.service("", "ensure: running\n"+dropin("a", n), sleeper),
			d.service("idle-socket", "unit: f046-idle.socket\nensure: running\non_change: restart\n", fmt.Sprintf("[Socket]\nListenStream=127.0.0.1:%d\n", 4610+n)),
			d.service("idle", "unit: f046-idle.service\n"+dropin("a", n), sleeper),
		}
	}
	d.apply(say(1)...)
	d.converged()
	d.apply(say(2)...)
	d.converged()
	require.Contains(t, d.environ("f046.service"), "TAKEN=2")
	require.Contains(t, d.prop("f046.socket", "Listen"), "127.0.0.1:4602")
	require.Equal(t, "active", d.prop("f046.socket", "ActiveState"))
	require.Contains(t, d.prop("f046-idle.socket", "Listen"), "127.0.0.1:4612")
	require.Equal(t, "inactive", d.prop("f046-idle.service", "ActiveState"), "it did not run before")
	d.run("bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/4602 4<>/dev/tcp/127.0.0.1/4612")
	d.until("the client starts the idle one", func() bool { return strings.Contains(d.environ("f046-idle.service"), "TAKEN=2") })
}
