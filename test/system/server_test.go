package system

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

const servers = "../../docs/examples/server"

// TestAServersServicesRun declares what docs/examples/server holds, as it stands, for one
// node, changes it, and takes it away.
func TestAServersServicesRun(t *testing.T) {
	r := startMesh(t, "web1")
	web := r.nodes["web1"]
	programs, err := filepath.Glob(servers + "/bin/*")
	require.NoError(t, err)
	for _, p := range programs {
		require.NoError(t, web.CopyIn(p, "/usr/local/bin/"+filepath.Base(p)))
	}
	require.NoError(t, r.ctl.CopyIn(servers, "/root/server"))
	before := web.snapshot()
	r.done("node", "label", "web1", "kind=server")
	r.done("apply", "-f", "/root/server", "--wait=1m")
	r.reports("web1 file:web-config 1", "web1 file:web-key 1", "web1 hello 1", "web1 hello-socket 1", "web1 rotate 1", "web1 rotate-timer 1", "web1 web 1")

	require.Equal(t, "listen = 80\npages = /srv/pages\n", web.read("/etc/web/web.conf"))
	require.Equal(t, "644 root:root 600 root:root\n", web.Run(t, "sh", "-c", "echo $(stat -c '%a %U:%G' /etc/web/web.conf /etc/web/key)"))
	require.Equal(t, "1073741824", web.prop("web.service", "MemoryMax"))
	started := "started: pages = /srv/pages, key of 15 bytes\n"
	require.Equal(t, started, web.said("web.service"), "it was started once, with its files in place")
	web.greets()
	web.until("the timer ran it", func() bool { return strings.Contains(web.said("rotate.service"), "rotated /run/web/log") })
	require.Less(t, web.stampOf("rotate.timer", "ActiveEnterTimestampMonotonic"), web.stampOf("rotate.service", "InactiveExitTimestampMonotonic"))

	// One change of the file is one reload of the server.
	run := web.prop("web.service", "InvocationID")
	web.editDeclared(r, "s|/srv/pages|/srv/new|")
	r.done("apply", "-f", "/root/server", "--wait=1m")
	r.reports("web1 file:web-config 2", "web1 file:web-key 1", "web1 hello 1", "web1 hello-socket 1", "web1 rotate 1", "web1 rotate-timer 1", "web1 web 1")
	reloaded := started + "reloaded: pages = /srv/new, key of 15 bytes\n"
	require.Equal(t, reloaded, web.said("web.service"))
	require.Equal(t, run, web.prop("web.service", "InvocationID"))

	// What somebody makes of the file is kept aside, and is no change to the server.
	require.NoError(t, web.WriteFile("/etc/web/web.conf", []byte("by hand\n"), 0o666))
	web.until("it is as declared", func() bool { return web.read("/etc/web/web.conf") == "listen = 80\npages = /srv/new\n" })
	var rep *report.Report
	web.until("what was done by hand is told", func() bool {
		rep = web.report("file:web-config")
		return rep != nil && rep.Outcome == report.Converged && len(rep.Warnings) == 1
	})
	require.Equal(t, "/etc/web/web.conf", string(rep.Unit))
	_, kept, _ := strings.Cut(rep.Warnings[0], "kept as ")
	require.Equal(t, "by hand\n", web.read(kept))
	require.Equal(t, reloaded, web.said("web.service"))

	web.keepsSecrets(r)
	web.refusesFiles(r)
	web.swaps(r)

	r.done("withdraw", "--yes", "web", "file:web-config", "file:web-key", "hello", "hello-socket", "rotate", "rotate-timer")
	r.reports()
	last := ""
	web.until("all is as it was", func() bool {
		last = strings.Join(slices.DeleteFunc(before.Diff(web.snapshot()), func(line string) bool {
			return strings.HasPrefix(line, "unit system-hello.slice:") // systemd makes it for instances, and leaves it
		}), "\n")
		return last == ""
	}, &last)
}

// said is what a unit wrote, in order.
func (m *machine) said(unit string) string {
	m.t.Helper()
	return m.Run(m.t, "journalctl", "--output=cat", "--no-pager", "_SYSTEMD_UNIT="+unit)
}

// stampOf is a time of a unit's, in microseconds.
func (m *machine) stampOf(unit, property string) int64 {
	m.t.Helper()
	n, err := strconv.ParseInt(m.prop(unit, property), 10, 64)
	require.NoError(m.t, err)
	return n
}

// editDeclared edits the declarations of the web server by a command of sed(1).
func (m *machine) editDeclared(r *rig, command string) {
	m.t.Helper()
	r.ctl.Run(m.t, "sed", "-i", command, "/root/server/web.yaml")
}

// greets talks to the socket, from outside of the node: an instance of the template
// answers, and nothing of it runs before or after.
func (m *machine) greets() {
	m.t.Helper()
	require.Equal(m.t, "0", m.prop("hello.socket", "NAccepted"))
	c, err := net.Dial("unix", m.Path("/run/hello.sock"))
	require.NoError(m.t, err)
	defer c.Close()
	require.NoError(m.t, c.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = fmt.Fprintln(c, "you")
	require.NoError(m.t, err)
	answer, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(m.t, err)
	require.Equal(m.t, "hello, you\n", answer)
	require.Equal(m.t, "1", m.prop("hello.socket", "NAccepted"))
}

// keepsSecrets looks for the sensitive file's content in what is shown of it.
func (m *machine) keepsSecrets(r *rig) {
	m.t.Helper()
	m.editDeclared(r, "s|not-a-real-key|a-new-secret-key|")
	plan := r.done("apply", "-f", "/root/server", "--dry-run")
	r.done("apply", "-f", "/root/server", "--wait=1m")
	require.Equal(m.t, "a-new-secret-key\n", m.read("/etc/web/key"))
	for what, text := range map[string]string{
		"plan": plan, "reports": r.done("get", "reports", "-o", "json"), "events": r.done("events", "--since", "1h", "-o", "json"),
		"log": m.Run(m.t, "journalctl", "--output=cat", "--no-pager", "--unit=stead-*"),
	} {
		for _, secret := range []string{"not-a-real-key", "a-new-secret-key"} {
			require.NotContains(m.t, text, secret, what)
		}
	}
	require.Contains(m.t, plan, "sha256")
}

// refusesFiles has the mesh and the node refuse files, with rule and cure. Nothing of
// them is written.
func (m *machine) refusesFiles(r *rig) {
	m.t.Helper()
	file := func(name, path, more string) string {
		return fmt.Sprintf("shape: file\nname: %s\nnodes: [web1]\npath: %s\ncontent: bad\n%s", name, path, more)
	}
	for path, rule := range map[string]string{
		"/etc/systemd/system/web.service": "is protected: systemd reads units there", "/etc/stead/credentials/x": "is protected: it is stead's own",
		"/etc/../etc/x": "is not written out", "/dev/null": "is protected",
		"/etc/web/key": `is declared by "file:web-key"`,
	} {
		r.write(map[string]string{"bad": file("bad", path, "")})
		r.refused(1, []string{"apply", "-f", declared}, rule)
	}
	m.Run(m.t, "mkfifo", "/etc/fifo")
	m.Run(m.t, "mknod", "/etc/device", "c", "1", "3")
	m.Run(m.t, "ln", "-s", "systemd/system", "/etc/units")
	r.write(map[string]string{"bad": file("fifo", "/etc/fifo", "") + "---\n" + file("device", "/etc/device", "") + "---\n" + file("nobody", "/etc/nobody", "owner: not-there\n") + "---\n" +
		file("nogroup", "/etc/nobody2", "group: not-there\n") + "---\n" + file("linked", "/etc/units/web.service", "")})
	require.Equal(m.t, 3, r.stead("apply", "-f", declared, "--wait=1m").Code)
	m.says("file:fifo", report.Refused, report.BadTarget, "/etc/fifo is a device, FIFO or socket")
	m.says("file:device", report.Refused, report.BadTarget, "/etc/device is a device, FIFO or socket")
	m.says("file:nobody", report.Refused, report.NoLogin, "this node has no login not-there")
	m.says("file:nogroup", report.Refused, report.NoLogin, "this node has no group not-there")
	m.says("file:linked", report.Refused, report.Protected, "systemd reads units there")
	for _, name := range []string{"fifo", "device", "nobody", "nogroup", "linked"} {
		require.NotEmpty(m.t, m.report("file:"+name).Hint, name)
	}
	require.Equal(m.t, "fifo character special file\n", m.Run(m.t, "sh", "-c", "echo $(stat -c %F /etc/fifo /etc/device)"))
	m.Run(m.t, "sh", "-c", "! test -e /etc/nobody && ! test -e /etc/nobody2")
	r.done("withdraw", "--yes", "file:fifo", "file:device", "file:nobody", "file:nogroup", "file:linked")
	m.Run(m.t, "rm", "/etc/fifo", "/etc/device", "/etc/units")
	r.write(map[string]string{"bad": ""})
}

// swaps changes a socket and its service at once: the service stops, the socket
// listens elsewhere, the service has it.
func (m *machine) swaps(r *rig) {
	m.t.Helper()
	pair := func(n int) map[string]string {
		return map[string]string{
			"swap":   addressed("swap", "nodes: [web1]", fmt.Sprintf("[Service]\nExecStart=/bin/sleep %d\n[Install]\nWantedBy=multi-user.target\n", 9000+n)),
			"socket": addressed("swap-socket", "nodes: [web1]\nunit: swap.socket", fmt.Sprintf("[Socket]\nListenStream=/run/swap-%d\n[Install]\nWantedBy=sockets.target\n", n)),
		}
	}
	r.apply(pair(1))
	for n := 2; n <= 4; n++ { // a race that is lost now and then would show
		was := m.prop("swap.service", "InvocationID")
		r.apply(pair(n))
		require.Equal(m.t, "active active", m.prop("swap.socket", "ActiveState")+" "+m.prop("swap.service", "ActiveState"))
		require.Contains(m.t, m.prop("swap.socket", "Listen"), fmt.Sprintf("/run/swap-%d", n))
		require.NotEqual(m.t, was, m.prop("swap.service", "InvocationID"))
		require.LessOrEqual(m.t, m.stampOf("swap.socket", "ActiveEnterTimestampMonotonic"), m.stampOf("swap.service", "ExecMainStartTimestampMonotonic"), "the socket came first")
		require.Equal(m.t, "1", strings.TrimSpace(m.Run(m.t, "sh", "-c", fmt.Sprintf("grep -c /run/swap-%d /proc/net/unix", n))), "and the old one is gone")
	}
	r.done("withdraw", "--yes", "swap", "swap-socket")
	r.write(map[string]string{"swap": "", "socket": ""})
}

// TestFilesOfAnAccountAreWrittenByIt declares files of both scopes, and who cites them,
// on a node on which nobody logs in.
func TestFilesOfAnAccountAreWrittenByIt(t *testing.T) {
	m := install(t)
	opal := m.login("opal")
	m.account("opal")
	m.begin(map[string]string{"stays": up("stays", sleeper(9))})
	before := m.snapshot()
	file := func(name, path, content, more string) string {
		return fmt.Sprintf("shape: file\nname: %s\npath: %s\ncontent: \"%s\\n\"\n%s", name, path, content, more)
	}
	watcher := "[Service]\nType=exec\nExecStart=/bin/sh -c 'cat %h/.config/app/app.toml /etc/app.toml > %t/took; exec sleep 9999'\nExecReload=/bin/sh -c 'cat %h/.config/app/app.toml /etc/app.toml > %t/took'\n[Install]\nWantedBy=default.target\n"
	took := func() string { return m.read(fmt.Sprintf("/run/user/%d/took", opal.uid)) } // journald may not know whose a short life's lines are
	all := map[string]string{
		"stays":  up("stays", sleeper(9)),
		"app":    text{"app", "scope: user\nensure: running\nenabled: true\non_change: reload\ntriggers: [file:mine, file:ours]\n", watcher}.String(),
		"mine":   file("mine", "~/.config/app/app.toml", "mine-1", "scope: user\nmode: 0600\n"),
		"ours":   file("ours", "/etc/app.toml", "ours-1", ""),
		"linked": file("linked", "~/out/x", "x", "scope: user\n"),
	}
	opal.as("ln", "-s", "/etc", opal.home("out"))
	from := m.replace(all)
	m.converged(from, "app", "file:mine", "file:ours")
	mine := opal.home(".config/app/app.toml")
	require.Equal(t, "600 opal:opal", strings.TrimSpace(m.Run(t, "stat", "-c", "%a %U:%G", mine)))
	require.Equal(t, "755 opal:opal", strings.TrimSpace(m.Run(t, "stat", "-c", "%a %U:%G", opal.home(".config/app"))))
	m.says("file:linked", report.Refused, report.Protected, "it is not below the account's home")
	m.until("it has both, which were in place", func() bool { return took() == "mine-1\nours-1\n" })

	// A change of either is taken in by a reload.
	all["mine"] = strings.Replace(all["mine"], "mine-1", "mine-2", 1)
	m.declare(map[string]string{"mine": all["mine"]})
	m.until("it took its own file in", func() bool { return took() == "mine-2\nours-1\n" })
	all["ours"] = strings.Replace(all["ours"], "ours-1", "ours-2", 1)
	m.declare(map[string]string{"ours": all["ours"]})
	m.until("it took the system's in", func() bool { return took() == "mine-2\nours-2\n" })
	opal.as("sh", "-c", "echo theirs > "+mine)
	m.until("what the account did to its file is undone", func() bool { return m.read(mine) == "mine-2\n" })
	m.until("where that is kept is told", func() bool {
		rep := m.report("file:mine")
		return rep != nil && rep.Outcome == report.Converged && strings.Contains(strings.Join(rep.Warnings, " "), "kept as "+opal.home(".local/state/stead/kept"))
	})

	m.Run(t, "rm", opal.home("out"))
	from = m.declare(map[string]string{"app": "", "mine": "", "ours": "", "linked": ""})
	m.converged(from)
	m.Run(t, "rm", "-rf", opal.home(".local"))
	m.until("all is as it was", func() bool { return len(before.Diff(m.snapshot())) == 0 })
}
