package system

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/wire"
	"stead/test/lab"
)

// examples is where a workstation's declarations and programs lie, and where the
// controller's node gets them.
const (
	examples = "../../docs/examples/workstation"
	declares = "/root/workstation"
)

// TestAWorkstationsDaemonsRun declares what docs/examples/workstation holds, as it
// stands, for a node on which nobody logs in.
func TestAWorkstationsDaemonsRun(t *testing.T) {
	r := startMesh(t, "ws1")
	ws1 := r.nodes["ws1"]
	opal := ws1.login("opal")
	require.NoError(t, r.ctl.CopyIn(examples, declares))
	programs, err := filepath.Glob(examples + "/bin/*")
	require.NoError(t, err)
	for _, p := range programs {
		require.NoError(t, ws1.CopyIn(p, "/usr/local/bin/"+filepath.Base(p)))
	}
	// The package that the masks are for comes with units of its own.
	require.NoError(t, ws1.WriteFile("/usr/lib/systemd/user/pulseaudio.service", []byte(daemon(1)), 0o644))
	require.NoError(t, ws1.WriteFile("/usr/lib/systemd/user/pulseaudio.socket", []byte("[Socket]\nListenStream=%t/pulse\n[Install]\nWantedBy=sockets.target\n"), 0o644))
	const settings = "/etc/xdg/desktop/desktop.conf"
	require.NoError(t, ws1.WriteFile(settings, []byte("theme=dark\n"), 0o644))
	r.done("node", "label", "ws1", "kind=workstation")

	out := r.stead("apply", "-f", declares, "--wait=1m")
	require.Equal(t, 3, out.Code, out.Stdout)
	const refusal = `node "ws1" has no operator account: scope user is refused`
	require.Contains(t, out.Stderr, "warning: "+refusal)
	require.Contains(t, out.Stderr, "stead node account ws1 LOGIN")
	require.Contains(t, out.Stdout, refusal, "and the node's own host refuses it")
	require.Equal(t, "active", ws1.prop("thermal-profile.service", "ActiveState"), "the system's own is applied meanwhile")
	r.done("node", "account", "ws1", "opal")
	r.reports("ws1 bar-watchdog 1", "ws1 memory-guard 1", "ws1 no-pulseaudio 1", "ws1 no-pulseaudio-socket 1", "ws1 reload-watcher 1", "ws1 thermal-profile 1")
	opal.everythingOfTheWorkstation()
	require.Equal(t, "started: theme=dark\n", opal.log("reload-watcher.service"))
	r.tellsOf(opal)
	r.answersFor(ws1)

	require.NoError(t, ws1.WriteFile(settings, []byte("theme=light\n"), 0o644))
	require.NoError(t, ws1.WriteFile("/etc/thermal-profile", []byte("quiet\n"), 0o644))
	ws1.until("both took their change in", func() bool {
		return strings.Contains(opal.log("reload-watcher.service"), "theme=light") && ws1.read("/run/thermal-profile/profile") == "quiet\n"
	})
	invocation := opal.ask("reload-watcher.service", "InvocationID")
	opal.systemctl("stop", "reload-watcher.service")
	ws1.until("it is started again", func() bool {
		now := opal.ask("reload-watcher.service", "InvocationID")
		return opal.ask("reload-watcher.service", "ActiveState") == "active" && now != invocation
	})
	ws1.outcome("reload-watcher", report.Converged, "")
	require.Equal(t, "started: theme=dark\nreloaded: theme=light\nstarted: theme=light\n", opal.log("reload-watcher.service"), "one reload, and one start for what was stopped")

	// Nobody logs in, and no controller is in reach.
	require.NoError(t, r.net.Cut(t.Context(), ws1.Node))
	require.NoError(t, ws1.PowerCut(t.Context()))
	require.NoError(t, os.WriteFile(ws1.Disk(settings), []byte("theme=grey\n"), 0o644))
	require.NoError(t, os.Remove(ws1.Disk(opal.unit("pulseaudio.service"))))
	require.NoError(t, ws1.PowerOn(t.Context()))
	ws1.until("all of it is back", func() bool {
		return opal.ask("reload-watcher.service", "ActiveState") == "active" && opal.ask("bar-watchdog.service", "ActiveState") == "active"
	})
	for _, name := range []string{"reload-watcher", "bar-watchdog", "no-pulseaudio", "no-pulseaudio-socket", "memory-guard"} {
		ws1.outcome(name, report.Converged, "")
	}
	opal.everythingOfTheWorkstation()
	require.Equal(t, "No users.", strings.TrimSpace(ws1.Run(t, "sh", "-c", "loginctl list-sessions | grep -w opal || echo No users.")))
	opal.systemctl("stop", "reload-watcher.service")
	ws1.until("and is kept", func() bool { return opal.ask("reload-watcher.service", "ActiveState") == "active" })
	require.Contains(t, opal.log("reload-watcher.service"), "theme=grey")
	st, err := ws1.status()
	require.NoError(t, err)
	require.False(t, st.Source.Mesh.Connected)
}

// everythingOfTheWorkstation looks at all that the examples declare.
func (l *login) everythingOfTheWorkstation() {
	l.t.Helper()
	for _, u := range []string{"reload-watcher.service", "bar-watchdog.service"} {
		require.Equal(l.t, "active", l.ask(u, "ActiveState"), u)
		require.Equal(l.t, l.unit(u), l.link(l.unit("default.target.wants", u)))
	}
	for _, u := range []string{"pulseaudio.service", "pulseaudio.socket"} {
		require.Equal(l.t, "masked inactive", l.ask(u, "LoadState")+" "+l.ask(u, "ActiveState"), u)
		require.Equal(l.t, "/dev/null", l.link(l.unit(u)))
	}
	require.Equal(l.t, "1073741824", l.ask("background.slice", "MemoryMax"))
	require.Equal(l.t, "active", l.prop("thermal-profile.service", "ActiveState"))
}

// tellsOf is what the mesh is told of a node's account.
func (r *rig) tellsOf(l *login) {
	r.Helper()
	r.ctl.until("the mesh is told of the account", func() bool {
		for _, n := range r.get(wire.Nodes).Nodes {
			if p := n.Profile; n.Name == l.Hostname() && p != nil && p.Account != nil {
				return p.Account.Name == l.name && int(p.Account.UID) == l.uid && p.Account.Lingers && p.Account.State == wire.AccountReady
			}
		}
		return false
	})
	require.Regexp(r, `ws1 +ready .* opal `, r.done("get", "nodes"))
	require.Regexp(r, `account +opal, linger auto\n +manager +uid \d+, runs without a login; ready`, r.done("describe", "node", "ws1"))
}

// answersFor asks a node for the status of the reload watcher.
func (r *rig) answersFor(m *machine) {
	r.Helper()
	m.Run(r.T, "systemctl", "enable", "--now", "stead-escalate.socket", runtimeService)
	var out lab.Output
	r.ctl.until("the node answers", func() bool {
		out = r.stead("call", "node-service-manager.status@ws1", "unit=reload-watcher.service", "scope=user")
		return out.Code == 0
	}, &out.Stderr)
	var reply struct {
		Units []struct {
			ID, Scope, Active string
			DeclaredBy        *struct{ Name string } `json:"declared_by"`
		}
	}
	require.NoError(r, json.Unmarshal([]byte(out.Stdout), &reply), out.Stdout)
	require.Len(r, reply.Units, 1)
	u := reply.Units[0]
	require.Equal(r, "reload-watcher.service user active", u.ID+" "+u.Scope+" "+u.Active)
	require.NotNil(r, u.DeclaredBy, out.Stdout)
	require.Equal(r, "reload-watcher", u.DeclaredBy.Name)
}
