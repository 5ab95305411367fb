package system

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/test/lab"
)

// condition is all of an account that a comparison looks at: the node's disk, what
// the account's manager knows, and what runs there.
type condition struct {
	lab.Snapshot
	manager, processes []string
}

// condition looks at an account; of a manager that does not run there is nothing.
func (l *login) condition() condition {
	l.t.Helper()
	c := condition{Snapshot: l.snapshot()}
	for p := range c.Disk {
		if strings.HasPrefix(p, "/var/tmp/systemd-private-") || strings.HasPrefix(p, etc+"/"+service+".d") {
			delete(c.Disk, p) // of the host's own service
		}
	}
	if l.prop(l.manager(), "ActiveState") == "active" {
		for _, list := range []string{"list-units --all", "list-unit-files"} {
			asked := l.command(append([]string{"systemctl", "--user", "--plain", "--no-legend", "--no-pager", "--full"}, strings.Fields(list)...))
			out, err := l.Exec(l.t.Context(), asked...)
			require.NoError(l.t, err)
			for line := range strings.Lines(out.Stdout + out.Stderr) { // it may be ending
				c.manager = append(c.manager, list+" "+strings.Join(strings.Fields(line), " "))
			}
		}
	}
	for line := range strings.Lines(l.Run(l.t, "sh", "-c", "ps --no-headers -o args -u "+l.name+" || true")) {
		c.processes = append(c.processes, strings.TrimSpace(line))
	}
	slices.Sort(c.processes)
	return c
}

// diff says everything in which later differs from c.
func (c condition) diff(later condition) []string {
	d := c.Snapshot.Diff(later.Snapshot)
	for _, both := range [][2][]string{{c.manager, later.manager}, {c.processes, later.processes}} {
		for _, is := range both[1] {
			if !slices.Contains(both[0], is) {
				d = append(d, "new: "+is)
			}
		}
		for _, was := range both[0] {
			if !slices.Contains(both[1], was) {
				d = append(d, "gone: "+was)
			}
		}
	}
	return d
}

// asBefore waits until the account is as it was, but for this.
func (l *login) asBefore(before condition, but ...string) {
	l.t.Helper()
	last := ""
	l.until("the account is as it was", func() bool {
		time.Sleep(200 * time.Millisecond)
		d := slices.DeleteFunc(before.diff(l.condition()), func(line string) bool {
			return slices.ContainsFunc(but, func(b string) bool { return strings.HasPrefix(line, b) })
		})
		last = strings.Join(d, "\n")
		return len(d) == 0
	}, &last)
}

// withdrawn takes everything but the system's own declaration from the folder, and
// waits until it was given back.
func (m *machine) withdrawn() {
	m.t.Helper()
	gone := make(map[string]string)
	for name := range m.files {
		if name != "stays" {
			gone[name] = ""
		}
	}
	m.t.Logf("given back after %s", m.converged(m.declare(gone)).Round(time.Millisecond))
}

// begunAnew starts the host anew, with what it has in its ledger.
func (m *machine) begunAnew() { m.t.Helper(); m.Run(m.t, "systemctl", "restart", service) }

// everyKind are user units of every kind, of which the account has nothing.
func everyKind() map[string]string {
	return map[string]string{
		"new":    own("new", daemon(10)),
		"vendor": text{"vendor", "scope: user\nmasked: true\n", ""}.String(),
		"quiet":  text{"quiet", "scope: user\nensure: running\ndropins: {10-x.conf: \"[Service]\\nNice=7\\n\"}\n", ""}.String(),
		"none":   text{"none", "scope: user\nunit: none.socket\nmasked: true\n", ""}.String(),
		"many": documents(text{"alias", "scope: user\nensure: running\nenabled: true\n", daemon(16) + "Alias=nickname.service\n"}.String(),
			text{"timer", "scope: user\nunit: timer.timer\nensure: running\nenabled: true\n", "[Timer]\nOnCalendar=yearly\nUnit=alias.service\n[Install]\nWantedBy=timers.target\n"}.String(),
			text{"once", "scope: user\nensure: running\n", "[Service]\nType=oneshot\nExecStart=/bin/true\n"}.String(),
			text{"template", "scope: user\nunit: tmpl@.service\n", daemon(17)}.String()),
	}
}

// ownUnits gives the account units of its own, of every kind that a declaration can
// meet, and some that none does.
func (l *login) ownUnits() {
	l.t.Helper()
	plain := func(n int) string { return strings.Replace(daemon(n), "[Install]", "Nice=3\n[Install]", 1) }
	l.put(map[string]string{
		"bystander.service": plain(1), "ran.service": plain(2), "lay.service": plain(3), "hush.service": plain(4),
		"ran.service.d/50-mine.conf": "[Service]\nEnvironment=MINE=1\n",
	})
	l.as("sh", "-ec", "mkdir src; printf %s \"$1\" > src/linked.service; chmod 600 .config/systemd/user/lay.service", "sh", plain(5))
	l.systemctl("daemon-reload")
	l.systemctl("link", "--quiet", l.home("src/linked.service"))
	l.systemctl("mask", "--quiet", "held.service")
	l.systemctl("enable", "--quiet", "--now", "bystander.service", "ran.service", "hush.service", "vendor.service", "linked.service")
}

// TestWithdrawalLeavesTheAccountAsItWas compares all that is on the disk, and all
// that an account's manager knows and runs, before stead and after.
func TestWithdrawalLeavesTheAccountAsItWas(t *testing.T) {
	m := install(t)
	for i, name := range []string{"vendor", "quiet"} {
		require.NoError(t, m.WriteFile("/usr/lib/systemd/user/"+name+".service", []byte(daemon(20+i)), 0o644))
	}
	// A manager ends with the last session, and not some seconds later.
	require.NoError(t, m.WriteFile("/etc/systemd/logind.conf.d/at-once.conf", []byte("[Login]\nUserStopDelaySec=0\n"), 0o644))
	m.Run(t, "systemctl", "restart", "systemd-logind.service")
	opal, ruby := m.login("opal"), m.login("ruby")
	m.account("opal")
	m.begin(map[string]string{"stays": up("stays", sleeper(0))})
	part := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			m.t = t
			f(t)
		})
		m.t = t
	}
	fresh := opal.condition()

	part("an account whose manager never ran", func(t *testing.T) {
		m.converged(m.declare(everyKind()))
		require.True(t, opal.lingers())
		require.Equal(t, "masked", opal.ask("vendor.service", "LoadState"))
		require.NotEmpty(t, fresh.diff(opal.condition()), "the comparison sees what is declared")
		m.withdrawn()
		opal.asBefore(fresh)
		require.False(t, opal.lingers())
	})
	part("what the account began meanwhile goes on", func(t *testing.T) {
		m.converged(m.declare(map[string]string{"new": own("new", daemon(10))}))
		opal.as("systemd-run", "--user", "--quiet", "--unit=meanwhile", "sleep", "300001")
		m.withdrawn()
		time.Sleep(time.Second)
		require.True(t, opal.lingers(), "it would end with that")
		require.Equal(t, "active", opal.ask("meanwhile.service", "ActiveState"))
		opal.systemctl("stop", "meanwhile.service")
		m.begunAnew() // it looks now
		opal.asBefore(fresh)
	})
	part("while somebody is logged in", func(t *testing.T) {
		m.Run(t, "systemd-run", "--quiet", "--unit=session", "--uid=opal", "--property=PAMName=login", "--setenv=XDG_SESSION_CLASS=user",
			"--setenv=XDG_SESSION_TYPE=tty", "sleep", "300002")
		m.until("somebody is logged in", func() bool { return strings.Contains(m.Run(t, "loginctl", "list-sessions"), "opal") })
		during := opal.condition()
		m.converged(m.declare(map[string]string{"new": own("new", daemon(10))}))
		m.withdrawn()
		opal.asBefore(during, "/var/lib/systemd/linger", "new: /proc/self/exe host delegate")
		require.True(t, opal.lingers(), "until nobody is")
		m.Run(t, "systemctl", "stop", "session.service")
		m.until("nobody is", func() bool { return !strings.Contains(m.Run(t, "loginctl", "list-sessions"), "opal") })
		m.begunAnew()
		opal.asBefore(fresh, "/var/log/wtmp", "/var/log/lastlog")
	})
	m.Run(t, "loginctl", "enable-linger", "opal")
	m.until("the account's manager runs", func() bool { return m.prop(opal.manager(), "ActiveState") == "active" })
	opal.ownUnits()
	before := opal.condition()
	bystander := opal.ask("bystander.service", "MainPID")
	files := everyKind()
	for i, name := range []string{"ran", "lay", "linked"} {
		files[name] = own(name, daemon(11+i))
	}
	files["held"] = text{"held", "scope: user\nmasked: false\nensure: running\nenabled: true\n", daemon(14)}.String()
	files["hush"] = text{"hush", "scope: user\nmasked: true\n", ""}.String()

	part("an account that has units of its own", func(t *testing.T) {
		m.converged(m.declare(files))
		for i, u := range []string{"ran", "lay", "linked", "held"} {
			require.Equal(t, daemon(11+i), opal.read(opal.unit(u+".service")))
		}
		require.Equal(t, "masked inactive", opal.ask("hush.service", "LoadState")+" "+opal.ask("hush.service", "ActiveState"))
		opal.as("sh", "-c", "echo '# mine' >> "+opal.unit("ran.service"))
		m.until("an edit is undone", func() bool { return opal.read(opal.unit("ran.service")) == daemon(11) })
		m.withdrawn()
		opal.asBefore(before, opal.home(".local"))
		require.True(t, opal.lingers(), "that was not stead's doing")
		require.Equal(t, bystander, opal.ask("bystander.service", "MainPID"))
		require.Contains(t, m.read("/proc/"+opal.ask("ran.service", "MainPID")+"/environ"), "MINE=1", "it runs its old definition")
		kept := m.Run(t, "find", opal.home(".local"), "-type", "f", "-printf", "%P %u %m\n")
		require.Regexp(t, `^(state/stead/kept/\S+-(hush|lay|ran|ran).service opal 600\n){4}state/stead/kept/index.jsonl opal 600\n$`, sortedLines(kept),
			"what was overwritten, and nothing else")
		require.Contains(t, m.Run(t, "sh", "-c", "cat "+opal.home(".local/state/stead/kept")+"/*ran.service"), "# mine")
	})
	before = opal.condition()
	keptIndex := opal.home(".local/state/stead/kept/index.jsonl") // tells of each time
	part("another account", func(t *testing.T) {
		m.converged(m.declare(files))
		m.account("ruby")
		m.begunAnew()
		m.converged(time.Now())
		require.Equal(t, "active", ruby.ask("ran.service", "ActiveState"))
		opal.asBefore(before, keptIndex, "/var/lib/systemd/linger/ruby", "/srv/ruby", "unit ", "new: list-units --all run-user-")
		require.Equal(t, bystander, opal.ask("bystander.service", "MainPID"))
	})
	part("no account", func(t *testing.T) {
		m.account("")
		m.begunAnew()
		m.outcome("ran", report.Refused, report.NoAccount)
		opal.asBefore(before, keptIndex)
		require.False(t, ruby.lingers())
	})
	part("a login that is there no more", func(t *testing.T) {
		m.account("ruby")
		m.begunAnew()
		m.converged(time.Now())
		written := m.read(ruby.unit("ran.service"))
		m.Run(t, "systemctl", "stop", service)
		m.Run(t, "userdel", "--force", "ruby")
		m.account("opal")
		m.startHost()
		m.converged(time.Now())
		require.Equal(t, written, m.read(ruby.unit("ran.service")), "what is there is nobody's to touch")
		log := m.Run(t, "journalctl", "--unit="+service, "--output=cat", "--no-pager")
		require.Contains(t, log, `what was written for account \"ruby\" is left where it is: node \"node\" has no login \"ruby\"`)
		m.withdrawn()
		opal.asBefore(before, keptIndex, ruby.home(), "/etc/", "/var/lib/systemd/linger/ruby", "/var/mail", "unit ", "new: list-units --all run-user-")
	})
}

// sortedLines sorts the lines of a text.
func sortedLines(s string) string {
	lines := slices.Sorted(strings.Lines(s))
	return strings.Join(lines, "")
}
