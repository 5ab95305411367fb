package system

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
)

// TestUserScopeCases has what other tools get wrong, one after another on one node.
// The host runs as its own hardened service, and what it inherits points elsewhere.
func TestUserScopeCases(t *testing.T) {
	m := install(t)
	opal, ruby := m.login("opal"), m.login("ruby")
	m.account("opal")
	require.NoError(t, m.WriteFile(etc+"/"+service+".d/astray.conf", []byte("[Service]\nEnvironment=XDG_RUNTIME_DIR=/run/user/0 HOME=/root "+
		"XDG_CONFIG_HOME=/root/.config DBUS_SESSION_BUS_ADDRESS=unix:path=/run/nobody SYSTEMD_UNIT_PATH=/run/nowhere\n"), 0o644))
	m.Run(t, "systemctl", "daemon-reload")
	m.Run(t, "loginctl", "enable-linger", "ruby")
	files := map[string]string{
		"web":  up("web", sleeper(0)),
		"mine": own("mine", daemon(0)),
		// Two and more that belong together.
		"tick":  text{"tick", "scope: user\n", "[Service]\nType=oneshot\nExecStart=/bin/echo 1\n"}.String() + separator + text{"tick-timer", "scope: user\nunit: tick.timer\nensure: running\nenabled: true\n", "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n"}.String(),
		"multi": own("multi", strings.Replace(daemon(1), "default.target", "multi-user.target", 1)),
		"panel": text{"panel", "scope: user\nenabled: true\n", strings.Replace(daemon(2), "default.target", "graphical-session.target", 1)}.String(),
		"files": text{"files", "scope: user\nenabled: true\n", daemon(3)}.String(),
		"all":   text{"all", "scope: user\nensure: running\n", ""}.String(),
	}
	require.NoError(t, m.WriteFile("/etc/systemd/user/all.service", []byte(daemon(4)), 0o644))
	m.begin(files)
	part := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			m.t = t
			f(t)
		})
		m.t = t
	}

	// F001: a privileged tool acts on the units of an account by what it inherited of the
	// environment.
	// stead: derives the runtime folder and socket from the uid alone; no such account, linger
	// off, manager down and connection refused are different reasons.
	part("F001 nothing that is inherited says whose manager it is", func(t *testing.T) {
		require.Equal(t, daemon(0), m.read(opal.unit("mine.service")))
		require.Equal(t, "active", opal.ask("mine.service", "ActiveState"))
		require.Equal(t, "", m.Run(t, "sh", "-c", "find /root/.config -name mine.service 2>/dev/null; true"))
	})
	// F011: lingering is turned on, and the manager is used before it is up.
	// stead: waits, within bounds, until the manager answers, and only then acts.
	part("F011 the first start waited for the manager", func(t *testing.T) {
		for _, s := range m.report("mine").Steps {
			require.Empty(t, s.Error, s.Action)
		}
		require.True(t, opal.lingers())
	})
	// F025: what works in a shell of root does not from inside the tool's own service.
	// stead: does all of this from its own hardened unit: files by a child that is the
	// account, jobs over the manager's private socket.
	part("F025 it is done from inside the hardened unit", func(t *testing.T) {
		require.Equal(t, "yes yes", m.prop(service, "NoNewPrivileges")+" "+m.prop(service, "ProtectSystem"))
		require.Equal(t, "opal opal", strings.TrimSpace(m.Run(t, "stat", "-c", "%U %G", opal.unit("mine.service"))))
	})
	// F039: a user unit is enabled for multi-user.target, which a user manager does not have.
	// stead: makes the link, and warns that this manager does not know the target: nothing
	// starts the unit.
	part("F039 a target that this manager does not have is warned of", func(t *testing.T) {
		r := m.outcome("multi", report.Converged, "")
		require.Contains(t, strings.Join(r.Warnings, "\n"), "multi-user.target")
	})
	// F078: a user unit hangs on graphical-session.target, and nobody logs in.
	// stead: warns that it is enabled for a target that is not active; that is no drift unless
	// ensure: running is declared.
	part("F078 a target that nothing starts is warned of, and is no drift", func(t *testing.T) {
		r := m.outcome("panel", report.Converged, "")
		require.Contains(t, strings.Join(r.Warnings, "\n"), "graphical-session.target")
		require.Equal(t, unit.Inactive, r.State.Active)
	})
	// F047: a file below /etc/systemd/user changes, and user managers go on with the old one.
	// stead: sees the change, reloads the manager of the account, and restarts what runs with
	// it.
	part("F047 a file for all users that changed is taken in", func(t *testing.T) {
		before := opal.ask("all.service", "MainPID")
		require.NoError(t, m.WriteFile("/etc/systemd/user/all.service", []byte(daemon(40)), 0o644))
		m.until("it runs its new definition", func() bool {
			pid := opal.ask("all.service", "MainPID")
			return pid != before && strings.Contains(m.read("/proc/"+pid+"/cmdline"), "200040")
		})
		require.Equal(t, "no", opal.ask("all.service", "NeedDaemonReload"))
	})
	// F049: a unit that only a timer starts changes, and nothing is reloaded, as it is neither
	// active nor enabled.
	// stead: reloads for any file that changed, and starts nothing for it.
	part("F049 what only a timer starts is read anew, and not started", func(t *testing.T) {
		m.converged(m.declare(map[string]string{"tick": strings.Replace(files["tick"], "echo 1", "echo 2", 1)}))
		require.Contains(t, opal.ask("tick.service", "ExecStart"), "echo 2")
		require.Empty(t, opal.ask("tick.service", "InvocationID"))
	})
	// F061: units of all users are enabled, and the tool wants to reload some user's bus.
	// stead: has no scope of all users, and says so where one is declared; files and links
	// alone start nothing.
	part("F061 files and links alone start nothing, and there is no scope of all users", func(t *testing.T) {
		require.Equal(t, opal.unit("files.service"), m.link(opal.unit("default.target.wants/files.service")))
		require.Equal(t, "inactive", opal.ask("files.service", "ActiveState"))
		require.NoError(t, m.WriteFile("/run/global/x.yaml", []byte(text{"x", "scope: global\n", daemon(0)}.String()), 0o644))
		out, err := m.Exec(t.Context(), "stead", "host", "check", "/run/global")
		require.NoError(t, err)
		require.Equal(t, 1, out.Code)
		require.Contains(t, out.Stderr, "x.scope")
		m.converged(m.declare(map[string]string{"files": ""}))
	})
	// F074: start and enable take the scope, and the reload goes to the other manager.
	// stead: one scope is one connection, for reload and jobs alike; the system manager is not
	// touched.
	part("F074 the manager whose files changed is the one that is reloaded", func(t *testing.T) {
		b := m.listen(t, nil)
		m.converged(m.declare(map[string]string{"mine": own("mine", daemon(50))}))
		require.Contains(t, m.read("/proc/"+opal.ask("mine.service", "MainPID")+"/cmdline"), "200050")
		reloads, jobs := b.count()
		require.Zero(t, reloads)
		require.Empty(t, jobs)
	})
	// F069: the manager of one user goes, or hangs, and the query of all fails.
	// stead: what is wrong with one account is said of it alone, and others go on.
	part("F069 a manager of somebody else holds up nothing", func(t *testing.T) {
		pid := m.pidOf(ruby.manager())
		require.NoError(t, stop(pid))
		m.converged(m.declare(map[string]string{"mine": own("mine", daemon(51))}))
		require.NoError(t, wake(pid))
		m.Run(t, "loginctl", "terminate-user", "ruby")
	})
	// F004: lingering is off, so user units end with the last session and no boot starts them.
	// stead: turns lingering on while a user unit is declared, and again when somebody turns
	// it off; where it is declared off, the report says that it is.
	part("F004 a unit outlives that lingering is turned off", func(t *testing.T) {
		m.Run(t, "loginctl", "disable-linger", "opal")
		m.until("it is on again", func() bool { return opal.lingers() && opal.ask("mine.service", "ActiveState") == "active" })
		m.outcome("mine", report.Converged, "")
	})
	// F114: an account lingers, and its manager was not started at boot.
	// stead: looks at the manager and not at the flag, and starts it.
	part("F114 a manager that lingers and was not started at boot is started", func(t *testing.T) {
		m.Run(t, "systemctl", "stop", service)
		m.Run(t, "systemctl", "stop", opal.manager())
		require.True(t, opal.lingers())
		m.startHost()
		m.until("it runs", func() bool { return opal.ask("mine.service", "ActiveState") == "active" })
	})
	// F015: lines of a user unit are asked for as if it were a system unit, and those of its
	// namesake come.
	// stead: asks by user unit and uid, and holds each line against both: lines of the two
	// never mix.
	//
	// F110: a system account without login has user units, and its lines are in no user
	// journal.
	// stead: reads all journal files and picks lines by uid and unit.
	part("F015 F110 the log of a system account's unit is its own", func(t *testing.T) {
		m.Run(t, "useradd", "--system", "--create-home", "--home-dir=/srv/worker", "--shell=/usr/sbin/nologin", "worker")
		noisy := func(who string) string {
			return fmt.Sprintf("[Service]\nExecStart=/bin/sh -c 'echo it is %s that speaks; exit 7'\n", who)
		}
		m.account("worker")
		m.begunAnew()
		m.until("nothing is left of the account before", func() bool { return !opal.lingers() && m.read(opal.unit("mine.service")) == "" })
		m.declare(map[string]string{"noisy": text{"noisy", "ensure: running\n", noisy("the system")}.String(),
			"noisy-own": text{"noisy-own", "unit: noisy.service\nscope: user\nensure: running\n", noisy("the account")}.String()})
		for name, who := range map[string]string{"noisy": "the system", "noisy-own": "the account"} {
			m.until("the lines of "+name, func() bool {
				r := m.report(name)
				return r != nil && r.Outcome == report.Failed && strings.Contains(strings.Join(r.Lines, "\n"), "it is "+who+" that speaks")
			})
			for _, line := range m.report(name).Lines {
				require.NotContains(t, strings.ReplaceAll(line, who, ""), "it is the", "a line of the other one")
			}
		}
	})
}

// F035: a manager that lingers starts before the home is mounted, and does not find the
// units that are in it.
// stead: writes nothing below a home that is not mounted, waits naming the mount, and
// has the manager read its units anew once the home is there.
func TestF035NothingIsWrittenBelowAHomeThatIsNotMounted(t *testing.T) {
	m := install(t)
	opal := m.login("opal")
	m.account("opal")
	require.NoError(t, m.WriteFile(etc+"/srv-opal.mount", []byte("[Mount]\nWhat=/var/vault\nWhere=/srv/opal\nType=none\nOptions=bind\n[Install]\nWantedBy=multi-user.target\n"), 0o644))
	m.Run(t, "cp", "-a", "/srv/opal", "/var/vault")
	m.Run(t, "systemctl", "enable", "srv-opal.mount")
	m.Run(t, "loginctl", "enable-linger", "opal")
	m.Run(t, "sh", "-ec", "mkdir -p /var/vault/.config/systemd/user; printf %s \"$1\" > /var/vault/.config/systemd/user/theirs.service; chown -R opal:opal /var/vault", "sh", daemon(1))
	m.startHost()
	m.declare(map[string]string{"web": up("web", sleeper(0)), "mine": own("mine", daemon(0)), "theirs": text{"theirs", "scope: user\nensure: running\nenabled: true\n", ""}.String()})
	m.says("mine", report.Waiting, report.HomeUnmounted, "srv-opal.mount")
	m.outcome("web", report.Converged, "")
	m.until("its manager runs", func() bool { return m.prop(opal.manager(), "ActiveState") == "active" })
	require.Equal(t, "not-found", opal.ask("theirs.service", "LoadState"), "it was started without")
	time.Sleep(time.Second)
	require.Empty(t, m.Run(t, "find", "/srv/opal", "-name", ".config"))
	m.Run(t, "systemctl", "start", "srv-opal.mount")
	m.converged(m.declared)
	for _, u := range []string{"mine.service", "theirs.service"} {
		require.Equal(t, "active", opal.ask(u, "ActiveState"), u)
	}
	m.Run(t, "systemctl", "stop", service)
	require.Equal(t, daemon(0), m.read("/var/vault/.config/systemd/user/mine.service"))
}
