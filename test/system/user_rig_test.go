package system

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// login is a Unix login of a node, and what it says of its own units. Nobody is
// logged in as it.
type login struct {
	*machine
	name string
	uid  int
}

// login makes a login with a home.
func (m *machine) login(name string) *login {
	m.t.Helper()
	m.Run(m.t, "useradd", "--create-home", "--home-dir=/srv/"+name, "--shell=/bin/sh", name)
	uid, err := strconv.Atoi(strings.TrimSpace(m.Run(m.t, "id", "-u", name)))
	require.NoError(m.t, err)
	return &login{m, name, uid}
}

func (l *login) home(parts ...string) string {
	return path.Join(append([]string{"/srv", l.name}, parts...)...)
}

// unit is a path below the folder of the login's own units.
func (l *login) unit(parts ...string) string {
	return l.home(append([]string{".config/systemd/user"}, parts...)...)
}

// manager is the unit of the login's own manager.
func (l *login) manager() string { return fmt.Sprintf("user@%d.service", l.uid) }

// command makes one a process of the login, which is no login session.
func (l *login) command(args []string) []string {
	return append([]string{"runuser", "-u", l.name, "--", "env", "-C", l.home(), "HOME=" + l.home(), fmt.Sprintf("XDG_RUNTIME_DIR=/run/user/%d", l.uid)}, args...)
}

// as runs a command, which must succeed, as the login.
func (l *login) as(args ...string) string {
	l.t.Helper()
	return l.Run(l.t, l.command(args)...)
}

// systemctl asks the login's own manager, which must be able to do it.
func (l *login) systemctl(args ...string) string {
	l.t.Helper()
	return l.as(append([]string{"systemctl", "--user"}, args...)...)
}

// ask asks the login's manager for a property of a unit; "" when it does not answer.
func (l *login) ask(unit, name string) string {
	l.t.Helper()
	out, err := l.Exec(l.t.Context(), l.command([]string{"systemctl", "--user", "show", "--value", "--property=" + name, "--", unit})...)
	require.NoError(l.t, err)
	return strings.TrimSpace(out.Stdout)
}

// put writes files as the login, below its folder of units.
func (l *login) put(files map[string]string) {
	l.t.Helper()
	for file, text := range files {
		l.as("sh", "-ec", `mkdir -p "${1%/*}"; printf %s "$2" > "$1"`, "sh", l.unit(file), text)
	}
}

// lingers is whether the login's manager is to run without a session.
func (l *login) lingers() bool {
	out, err := l.Exec(l.t.Context(), "test", "-e", "/var/lib/systemd/linger/"+l.name)
	require.NoError(l.t, err)
	return out.Code == 0
}

// log is what a unit of the login's wrote.
func (l *login) log(unit string) string {
	l.t.Helper()
	return l.Run(l.t, "journalctl", "--output=cat", "--no-pager", "_UID="+strconv.Itoa(l.uid), "_SYSTEMD_USER_UNIT="+unit)
}

// account says to the host, by a drop-in, whose the user scope of the folder is;
// "" for nobody's. The host has to be started, or started anew.
func (m *machine) account(name string, flags ...string) {
	m.t.Helper()
	line := "ExecStart=/usr/local/bin/stead host run " + strings.Join(flags, " ")
	if name != "" {
		line += " --account " + name
	}
	m.Run(m.t, "mkdir", "-p", etc+"/"+service+".d")
	require.NoError(m.t, m.WriteFile(etc+"/"+service+".d/account.conf", []byte("[Service]\nExecStart=\n"+line+"\n"), 0o644))
	m.Run(m.t, "systemctl", "daemon-reload")
}

// daemon is the unit file of a user service that runs for long; the number makes
// one differ from another.
func daemon(n int) string {
	return fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n[Install]\nWantedBy=default.target\n", 200000+n)
}

// own is the declaration of a user service that runs and is enabled.
func own(name, content string) string {
	return text{name, "scope: user\nensure: running\nenabled: true\n", content}.String()
}

// says waits until the host states this outcome and reason of a declaration, in
// words that hold these.
func (m *machine) says(name string, o report.Outcome, why report.Reason, words string) *report.Report {
	m.t.Helper()
	var r *report.Report
	last := ""
	m.until(fmt.Sprintf("%s is %s (%s): %s", name, o, why, words), func() bool {
		if r = m.report(name); r != nil {
			last = fmt.Sprintf("it is %s (%s): %s", r.Outcome, r.Reason, r.Text)
		}
		return r != nil && r.Outcome == o && r.Reason == why && strings.Contains(r.Text, words)
	}, &last)
	return r
}
