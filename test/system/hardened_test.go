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

// TestTheHostIsHardened prints how systemd rates the unit.
func TestTheHostIsHardened(t *testing.T) {
	m := install(t)
	out := strings.TrimSpace(m.Run(t, "systemd-analyze", "security", "--no-pager", service))
	rating := out[strings.LastIndex(out, "\n")+1:]
	t.Log(rating)
	require.Contains(t, rating, "Overall exposure level for "+service)
}

// need is something that the host is for and cannot do without a capability.
type need struct {
	capability string
	done       func(m *machine) bool // tries it; the host was just started
}

func needs() []need {
	// A unit file of another owner, not readable by all, comes back as it was.
	back := func(m *machine) bool {
		file := etc + "/theirs.service"
		require.NoError(m.t, m.WriteFile(file, []byte(sleeper(1)), 0o600))
		m.Run(m.t, "chown", "1:1", file)
		m.declare(map[string]string{"theirs": up("theirs", sleeper(2))})
		m.until("it is written", func() bool { return m.read(file) == sleeper(2) })
		m.declare(map[string]string{"theirs": ""})
		return m.within(8*time.Second, func() bool {
			return m.read(file) == sleeper(1) && strings.TrimSpace(m.Run(m.t, "stat", "-c", "%u %a", file)) == "1 600"
		})
	}
	// F025: from inside the host's own unit, a unit of an account that nobody is logged
	// in to.
	own := func(m *machine) bool {
		opal := &login{machine: m, name: "opal"}
		if out, err := m.Exec(m.t.Context(), "id", "opal"); err == nil && out.Code != 0 {
			m.login("opal")
		}
		opal.as("rm", "-rf", opal.unit())
		m.account("opal")
		m.Run(m.t, "systemctl", "restart", service)
		m.declare(map[string]string{"own": own("own", daemon(1))})
		return m.within(15*time.Second, func() bool { return m.read(opal.unit("own.service")) == daemon(1) })
	}
	return []need{
		{"CAP_SETUID", own},
		{"CAP_SETGID", own},
		{"CAP_CHOWN", back},
		{"CAP_FOWNER", back},
		{"CAP_DAC_OVERRIDE", func(m *machine) bool { // a declaration that only its owner may read
			m.Run(m.t, "install", "-o", "1", "-m", "0600", "/dev/null", "/run/theirs.yaml")
			require.NoError(m.t, m.WriteFile("/run/theirs.yaml", []byte(up("private", sleeper(3))), 0o600))
			m.Run(m.t, "mv", "/run/theirs.yaml", folder+"/private.yaml")
			return m.within(8*time.Second, func() bool { return m.read(etc+"/private.service") != "" })
		}},
		{"CAP_LEASE", func(m *machine) bool { // a file that its owner is still writing is not taken over
			file := folder + "/open.yaml"
			m.Run(m.t, "install", "-o", "1", "-m", "0644", "/dev/null", file)
			m.Run(m.t, "systemd-run", "--unit=writer", "--property=Type=exec", "sh", "-c", `exec 3>"$1"; printf %s "$2" >&3; exec sleep 6`, "sh", file, up("open", sleeper(4)))
			waited := !m.within(4*time.Second, func() bool { return m.read(etc+"/open.service") != "" })
			m.until("it is taken over when it is closed", func() bool { return m.read(etc+"/open.service") != "" })
			return waited
		}},
	}
}

// TestEachCapabilityIsNeeded takes each away in turn, but for the one to kill a child
// that is an account: what it is for does not succeed then, and does with all.
func TestEachCapabilityIsNeeded(t *testing.T) {
	for _, n := range needs() {
		t.Run(n.capability, func(t *testing.T) {
			m := install(t)
			for _, drop := range []string{"", n.capability} {
				m.anew(drop)
				require.Equal(t, drop == "", n.done(m), "%s, without %q", n.capability, drop)
			}
		})
	}
}

// anew starts a host that remembers nothing, without a capability.
func (m *machine) anew(drop string) {
	m.t.Helper()
	m.Run(m.t, "systemctl", "stop", service)
	m.Run(m.t, "rm", "-rf", "/var/lib/stead", folder, etc+"/theirs.service", etc+"/private.service", etc+"/open.service")
	line := "[Service]\n"
	if drop != "" {
		line += "CapabilityBoundingSet=~" + drop + "\n"
	}
	require.NoError(m.t, m.WriteFile(etc+"/"+service+".d/drop.conf", []byte(line), 0o644))
	require.NoError(m.t, m.WriteFile(folder+"/none.yaml", []byte("# nothing on purpose\n"), 0o644))
	m.Run(m.t, "systemctl", "daemon-reload")
	m.startHost()
}
