package cases

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F067: a link below /usr, or one that somebody made by hand, pulls a unit in.
// stead: enabled: false removes the links that the unit's own [Install] section asks
// for and no other; what pulls the unit in all the same is named, with the cure.
func TestF067WhatPullsAUnitInAllTheSameIsNamed(t *testing.T) {
	d := sit(t)
	const vendor = "/usr/lib/systemd/system/"
	d.foreign(map[string]string{vendor + "f067.service": sleeper, vendor + "f067.target": "[Unit]\nDescription=pulls\n"})
	d.sh("mkdir -p " + vendor + "f067.target.wants; ln -s ../f067.service " + vendor + "f067.target.wants/")
	d.Cleanup(func() { os.RemoveAll(d.node.Path(vendor + "f067.target.wants")) })
	hand := etc + "/f067-hand.target.wants/f067.service"
	d.sh("mkdir -p " + etc + "/f067-hand.target.wants; ln -s " + vendor + "f067.service " + hand)
	d.apply(d.service("", "enabled: false\n", ""))
	d.converged()
	warned := func(word string) {
		d.Helper()
		last := ""
		d.until("it warns of "+word, func() bool {
			r := d.report("f067")
			last = strings.Join(r.Warnings, "\n")
			return strings.Contains(last, word) && strings.Contains(last, "masked: true")
		}, &last)
	}
	warned("lib/systemd/system/f067.target.wants/f067.service")
	warned(hand)
	require.NotEmpty(t, d.link(hand), "it is not ours")
	d.apply(d.service("", "masked: true\n", ""))
	d.converged()
	d.run("systemctl", "start", "f067.target")
	require.Equal(t, "inactive", d.prop("f067.service", "ActiveState"))
	d.sh("systemctl stop f067.target; rm -r " + etc + "/f067-hand.target.wants")
}

// F072: a vendor's unit is enabled by its preset, declared disabled, and then
// declared no more.
// stead: puts back what stood there before it came: the links, and the activity.
func TestF072WithdrawalBringsTheVendorsEnablementBack(t *testing.T) {
	d := sit(t)
	const vendor = "/usr/lib/systemd/system/f072.service"
	d.foreign(map[string]string{vendor: sleeper + "[Install]\nWantedBy=multi-user.target f072.target\n"})
	d.run("systemctl", "preset", "f072.service") // Debian's presets enable everything
	d.run("systemctl", "start", "f072.service")
	links := func() []string {
		return []string{d.link(wants + "f072.service"), d.link(etc + "/f072.target.wants/f072.service")}
	}
	before := links()
	require.NotContains(t, before, "")
	d.apply(d.service("", "enabled: false\nensure: stopped\n", ""))
	d.converged()
	require.Equal(t, []string{"", ""}, links())
	d.withdraw()
	require.Equal(t, before, links())
	require.Equal(t, "active", d.prop("f072.service", "ActiveState"))
	require.FileExists(t, d.node.Path(vendor))
}

// F076: a unit that is not installed is masked, and masked again.
// stead: masks it, takes no step the second time, and takes the mask away when it is
// declared no more.
func TestF076AUnitThatIsNotThereIsMasked(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "masked: true\n", ""))
	d.converged()
	require.Equal(t, "/dev/null", d.link(etc+"/f076.service"))
	require.Equal(t, "masked", d.prop("f076.service", "LoadState"))
	before := len(d.report("f076").Steps)
	d.applyText("{shape: service, name: f076, all: true, masked: true, timeout: 3m}")
	d.converged()
	require.Len(t, d.report("f076").Steps, before)
	d.foreign(map[string]string{"/usr/lib/systemd/system/f076.service": sleeper})
	require.NotZero(t, d.exec("systemctl", "start", "f076.service").Code, "installed later, it is masked still")
	d.converged()
	d.withdraw()
	require.Empty(t, d.link(etc+"/f076.service"))
	d.run("systemctl", "start", "f076.service")
}

// F084: a unit of this name comes from another folder too.
// stead: holds what systemd reads against what it wrote, and says which file wins.
func TestF084TheFileThatWinsIsNamed(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"/usr/lib/systemd/system/f084.service": "[Service]\nExecStart=/bin/sleep 2000\n"})
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	require.Equal(t, etc+"/f084.service", d.prop("f084.service", "FragmentPath"), "ours comes before a vendor's")

	const higher = "/etc/systemd/system.control/"
	d.foreign(map[string]string{higher + "f084-over.service": "[Service]\nExecStart=/bin/sleep 2000\n"})
	d.apply(d.service("over", "ensure: running\n", sleeper))
	r := d.says("f084-over", report.Failed, report.Shadowed, higher+"f084-over.service wins over the declared "+etc+"/f084-over.service")
	require.Equal(t, "rm "+higher+"f084-over.service", r.Hint)
	d.run("rm", higher+"f084-over.service")
	d.converged()
	require.Contains(t, d.prop("f084-over.service", "ExecStart"), "100000")
	d.withdraw("f084")
	require.Contains(t, d.prop("f084.service", "FragmentPath"), "/lib/systemd/system/f084.service")
}

// F085: the manager says for ever that it needs a reload, as of a masked unit with
// drop-ins.
// stead: reloads once for a reason, and not again for the same flag.
func TestF085AFlagThatStaysCostsOneReload(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{etc + "/f085.service.d/a.conf": "[Service]\nNice=1\n"})
	d.apply(d.service("", "masked: true\n", ""), d.service("more", "ensure: running\ndropins: {a.conf: \"[Service]\\nNice=1\\n\"}\n", sleeper))
	d.converged()
	t.Logf("the manager says of the masked unit that it needs a reload: %s", d.prop("f085.service", "NeedDaemonReload"))
	before := len(steps(d.report("f085"), "reload", ""))
	for range 3 {
		d.write(etc+"/f085.service.d/.wake", "") // has the host look
		d.run("touch", etc+"/f085-more.service.d")
		d.again("f085")
	}
	require.Len(t, steps(d.report("f085"), "reload", ""), before)
	require.Equal(t, report.Converged, d.report("f085").Outcome)
	d.run("rm", "-r", etc+"/f085.service.d")
}

// F086: a unit file may be executed, or written by everybody.
// stead: writes them for root alone to change, whatever the umask; mode and owner
// count as drift.
func TestF086ModeAndOwnerOfAUnitFileAreDrift(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\ndropins: {a.conf: \"[Service]\\nNice=1\\n\"}\n", sleeper),
		d.service("user", "scope: user\n", sleeper))
	d.converged()
	const unit, dropin, user = etc + "/f086.service", etc + "/f086.service.d/a.conf", "/srv/" + account + "/.config/systemd/user/f086-user.service"
	stat := func() []string { return strings.Fields(d.run("stat", "--format=%a:%U:%G", unit, dropin, user)) }
	want := []string{"644:root:root", "644:root:root", "644:" + account + ":" + account}
	require.Equal(t, want, stat())
	pid := d.prop("f086.service", "MainPID")
	for _, spoil := range []string{"chmod 0755 " + unit, "chown " + account + " " + dropin + "; chmod 0666 " + dropin, "chmod 0777 " + user} {
		d.sh(spoil)
		last := ""
		d.until(spoil+" is undone", func() bool { last = strings.Join(stat(), " "); return last == strings.Join(want, " ") }, &last)
		d.converged()
	}
	require.Equal(t, pid, d.prop("f086.service", "MainPID"), "nothing that counts for the run has changed")
}

// F105: a unit file changes and its time does not, or goes back.
// stead: holds the bytes against those that the run has taken in, not times; what it
// writes has the time at which it was written.
func TestF105AChangeThatKeepsTheTimeOfAFileIsSeen(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f105.service": sleeper})
	d.apply(d.service("", "ensure: running\n", ""))
	d.converged()
	pid := d.prop("f105.service", "MainPID")
	for i, script := range []string{
		"cp -p f105.service /tmp/f105; echo '#1' >> f105.service; touch -r /tmp/f105 f105.service",
		"echo Environment=A=1 >> f105.service; touch -d 2001-01-01 f105.service",
	} {
		d.sh("cd " + etc + "; " + script)
		d.until("the run has taken it in", func() bool {
			return d.prop("f105.service", "MainPID") != pid && d.prop("f105.service", "ActiveState") == "active"
		})
		pid = d.prop("f105.service", "MainPID")
		d.converged()
		if i == 1 {
			require.Equal(t, "A=1", d.prop("f105.service", "Environment"))
		}
	}
	d.apply(d.service("own", "ensure: running\n", sleeper))
	d.converged()
	d.apply(d.service("own", "ensure: running\n", sleeper+"Environment=B=2\n"))
	d.converged()
	require.Equal(t, "B=2", d.prop("f105-own.service", "Environment"))
	require.NotEmpty(t, d.run("find", etc+"/f105-own.service", "-mmin", "-2"))
}
