package system

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestWhatSteadStandsOnIsNotTouched declares protected units by their names, and
// by an alias and a drop-in that only this machine knows to reach them.
func TestWhatSteadStandsOnIsNotTouched(t *testing.T) {
	m := installOn(t, "dbus")
	m.begin(map[string]string{"web": up("web", sleeper(0))})
	b := m.listen(t, nil)
	for _, name := range []string{"stead-host.service", "stead-agent.service", "dbus.service", "dbus.socket", "systemd-journald.service", "user@1000.service", "init.scope"} {
		m.declare(map[string]string{"bad": text{"bad", "unit: " + name + "\nensure: stopped\n", ""}.String()})
		m.until(name+" is refused", func() bool {
			st, err := m.status()
			return err == nil && len(st.Source.Problems) == 1 && strings.Contains(st.Source.Problems[0], name)
		})
	}
	m.declare(map[string]string{"bad": ""})
	// A name that nobody knows until the machine has been asked.
	m.Run(t, "ln", "-s", "/lib/systemd/system/dbus.service", etc+"/harmless.service")
	m.Run(t, "systemctl", "daemon-reload")
	m.declare(map[string]string{"harmless": text{"harmless", "ensure: stopped\n", ""}.String(),
		"alias": up("alias", sleeper(1)+"Alias=%H.service\n")})
	r := m.outcome("harmless", report.Refused, report.Protected)
	require.Contains(t, r.Text, "dbus.service")
	r = m.outcome("alias", report.Refused, report.Protected)
	require.Contains(t, r.Text, etc+"/dbus.service")
	time.Sleep(2 * time.Second)
	require.Zero(t, b.jobsOf("dbus.service", "dbus.socket", service, "alias.service"))
	require.Equal(t, "active", m.prop("dbus.service", "ActiveState"))
	require.Empty(t, m.read(etc+"/alias.service"))
}

// TestAUnitHasOneDeclaration lets declarations meet in one unit: in the folder,
// by an alias link that somebody makes, and by an alias that only this machine's
// host name makes one. The one that is applied keeps the unit.
func TestAUnitHasOneDeclaration(t *testing.T) {
	m := installOn(t, "nick")
	m.begin(map[string]string{"nick": text{"nick", "unit: nick.service\nensure: running\n", sleeper(1)}.String(), "web": up("web", sleeper(0))})
	b := m.listen(t, nil)

	m.declare(map[string]string{"again": text{"again", "unit: web.service\nensure: running\n", ""}.String()})
	m.until("two declarations of one unit are refused", func() bool {
		st, err := m.status()
		return err == nil && len(st.Source.Problems) == 1 && strings.Contains(st.Source.Problems[0], "web.service is declared by")
	})

	m.declare(map[string]string{"again": text{"again", "unit: other.service\nensure: running\n", ""}.String()})
	m.outcome("again", report.Failed, report.Missing)
	m.Run(t, "ln", "-s", etc+"/web.service", etc+"/other.service")
	m.Run(t, "systemctl", "daemon-reload")
	r := m.outcome("again", report.Refused, report.OwnedBy)
	require.Contains(t, r.Text, "conflict with web")
	m.Run(t, "rm", etc+"/other.service")
	m.Run(t, "systemctl", "daemon-reload")
	m.outcome("again", report.Failed, report.Missing)
	m.converged(m.declare(map[string]string{"again": ""}))

	m.declare(map[string]string{"web": up("web", sleeper(0)+"Alias=%H.service\n")})
	r = m.outcome("web", report.Refused, report.OwnedBy)
	require.Contains(t, r.Text, "conflict with nick")
	time.Sleep(2 * time.Second)
	require.Equal(t, sleeper(1), m.read(etc+"/nick.service"), "the unit that was there keeps its file")
	require.Empty(t, m.link(etc+"/nick.service"))
	require.Equal(t, []string{"active", "active"}, m.props("ActiveState", []string{"nick.service", "web.service"}))
	require.Zero(t, b.jobsOf("nick.service", "web.service"))
	require.Equal(t, report.Converged, m.report("nick").Outcome)

	m.converged(m.declare(map[string]string{"nick": ""}))
	require.Equal(t, etc+"/web.service", m.link(etc+"/nick.service"), "when one goes the other has its way")
	require.Equal(t, "web.service", m.prop("nick.service", "Id"))
}
