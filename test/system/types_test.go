package system

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestEveryTypeOfUnitIsKept declares a unit of each type that a declaration can
// have, undoes what can be undone to each, and withdraws them all.
func TestEveryTypeOfUnitIsKept(t *testing.T) {
	const both = "ensure: running\nenabled: true\n"
	units := map[string]string{ // by name of the unit, its content
		"mnt-data.mount":     "[Mount]\nWhat=tmpfs\nWhere=/mnt/data\nType=tmpfs\n[Install]\nWantedBy=local-fs.target\n",
		`srv-a\x2db.mount`:   "[Mount]\nWhat=tmpfs\nWhere=/srv/a-b\nType=tmpfs\n[Install]\nWantedBy=local-fs.target\n",
		"talk.socket":        "[Socket]\nListenStream=/run/talk\nService=talked.service\n[Install]\nWantedBy=sockets.target\n",
		"look.path":          "[Path]\nPathExists=/run/never\nUnit=talked.service\n[Install]\nWantedBy=paths.target\n",
		"when.timer":         "[Timer]\nOnCalendar=yearly\nUnit=talked.service\n[Install]\nWantedBy=timers.target\n",
		"group.target":       "[Unit]\nDescription=A group\n[Install]\nWantedBy=multi-user.target\n",
		"part.slice":         "[Slice]\nTasksMax=50\n[Install]\nWantedBy=slices.target\n",
		"long-lived.service": sleeper(0),
		`odd:name_1.service`: sleeper(1),
		// Else systemd makes, and leaves, a slice for the instances of its name.
		"inst@a-b.service": "[Service]\nSlice=system.slice\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n",
	}
	// What these do when they run is this machine's kernel's, so they only stand, enabled.
	still := map[string]string{
		"srv-swapfile.swap":  "[Swap]\nWhat=/srv/swapfile\n[Install]\nWantedBy=swap.target\n",
		"mnt-late.automount": "[Automount]\nWhere=/mnt/late\n[Install]\nWantedBy=local-fs.target\n",
		"mnt-late.mount":     "[Mount]\nWhat=tmpfs\nWhere=/mnt/late\nType=tmpfs\n",
	}
	m := install(t)
	m.Run(t, "mkdir", "-p", "/mnt/data", "/srv/a-b")
	require.NoError(t, m.WriteFile(etc+"/talked.service", []byte("[Service]\nExecStart=/bin/sleep 1000\n"), 0o644))
	m.Run(t, "systemctl", "daemon-reload")
	m.begin(map[string]string{"stays": up("stays", sleeper(9))})
	before := m.snapshot()
	files, names := map[string]string{}, sorted(units)
	for i, u := range names {
		name := "n" + string(rune('a'+i))
		files[name] = text{name, "unit: '" + u + "'\n" + both, units[u]}.String()
	}
	for i, u := range sorted(still) {
		name, fields := fmt.Sprintf("s%d", i), "unit: "+u+"\n"
		if strings.Contains(still[u], "[Install]") {
			fields += "enabled: true\n"
		}
		files[name] = text{name, fields, still[u]}.String()
	}
	m.converged(m.declare(files))
	require.Equal(t, []string{"enabled", "static", "enabled"}, m.props("UnitFileState", sorted(still)))
	for i, state := range m.props("ActiveState", names) {
		require.Equal(t, "active", state, names[i])
	}
	for i, loaded := range m.props("FragmentPath", names) {
		require.Equal(t, etc+"/"+names[i], loaded)
	}
	from := time.Now()
	for _, u := range names {
		m.Run(t, "systemctl", "disable", "--now", "--", u)
		m.Run(t, "rm", etc+"/"+u)
	}
	m.until("all are up again", func() bool {
		for _, state := range m.props("ActiveState", names) {
			if state != "active" {
				return false
			}
		}
		return true
	})
	m.converged(from)
	for _, u := range names {
		require.Equal(t, units[u], m.read(etc+"/"+u))
	}
	for name := range files {
		files[name] = ""
	}
	m.converged(m.declare(files))
	require.Empty(t, before.Diff(m.snapshot()))
}

// TestASecondHostIsTurnedAway starts one beside the service, by hand.
func TestASecondHostIsTurnedAway(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0))})
	m.Run(t, "mkdir", "/run/empty")
	for _, more := range [][]string{nil, {"--socket", "/run/second.sock"}} {
		out, err := m.Exec(t.Context(), append([]string{"timeout", "20", "stead", "host", "run", "--declarations", "/run/empty"}, more...)...)
		require.NoError(t, err)
		require.Equal(t, 1, out.Code, out.Stderr)
		require.Regexp(t, `(?m)^error: .*another host`, out.Stderr)
		require.Regexp(t, `(?m)^hint: `, out.Stderr)
	}
	require.NotNil(t, m.report("web"), "the first one answers")
	require.Equal(t, "active", m.prop("web.service", "ActiveState"))
}
