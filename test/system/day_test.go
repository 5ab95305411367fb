package system

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/test/lab"
)

// day is an operator's day: every command that is given, and what the terminal
// showed, is held against a file of testdata/day, which is looked at.
type day struct {
	*rig
	web1, web2 *machine
	screens    int
	wrong      []string
}

// TestAnOperatorsDay has one operator declare a web server, change it, break it, see
// that named, mend it, fight with it, pause it, rename it, move it, and withdraw it.
func TestAnOperatorsDay(t *testing.T) {
	d := &day{rig: startSeats(t, "web1", "web2")}
	d.web1, d.web2 = d.nodes["web1"], d.nodes["web2"]
	programs, err := filepath.Glob(servers + "/bin/*")
	require.NoError(t, err)
	for _, m := range d.nodes {
		for _, p := range programs {
			require.NoError(t, m.CopyIn(p, "/usr/local/bin/"+filepath.Base(p)))
		}
	}
	require.NoError(t, d.ctl.CopyIn(servers+"/web.yaml", "/root/server/web.yaml"))
	before := map[string]lab.Snapshot{"web1": d.web1.snapshot(), "web2": d.web2.snapshot()}

	// It is declared.
	d.shows("declare", "node label web1 kind=server", "apply -f /root/server --dry-run", "apply -f /root/server --wait=1m",
		"get declarations", "get reports", "describe declaration web", "status web -n web1")
	require.Equal(t, "active", d.web1.prop("web.service", "ActiveState"))

	// Its configuration changes: one reload.
	run := d.web1.prop("web.service", "InvocationID")
	d.edit("s|/srv/pages|/srv/new|")
	d.shows("change", "diff -f /root/server", "apply -f /root/server --wait=1m", "describe declaration file:web-config")
	require.Equal(t, run, d.web1.prop("web.service", "InvocationID"))
	require.Contains(t, d.web1.said("web.service"), "reloaded: pages = /srv/new")

	// It is broken, and that is named.
	d.edit("s|bin/web-server|bin/web-servre|")
	d.edit("s|on_change: reload|on_change: restart|")
	d.shows("break", "apply -f /root/server --wait=10s")
	d.web1.outcome("web", report.Failed, report.Exited)
	d.shows("named", "get reports web", "describe declaration web")

	// It is mended.
	d.edit("s|bin/web-servre|bin/web-server|")
	d.shows("mend", "apply -f /root/server --wait=1m", "get reports")
	require.Equal(t, "active", d.web1.prop("web.service", "ActiveState"))

	// Somebody fights with it.
	for range 3 {
		run := d.web1.prop("web.service", "InvocationID")
		d.web1.Run(t, "systemctl", "stop", "web.service")
		d.web1.until("it was started again", func() bool {
			now := d.web1.prop("web.service", "InvocationID")
			return now != run && now != "" && d.web1.prop("web.service", "ActiveState") == "active"
		})
		d.web1.until("it has settled, or is fought over", func() bool {
			r := d.web1.report("web")
			return r != nil && (r.Outcome == report.Converged || r.Outcome == report.Contested)
		})
	}
	d.web1.outcome("web", report.Contested, "")
	d.until("the mesh knows", "contested", "get", "reports", "web")
	d.shows("fight", "get reports web", "describe declaration web")

	// It is left alone for a while, and taken care of again.
	d.shows("pause", "pause web -n web1 --for 30m", "stop web -n web1")
	d.until("the mesh knows", "paused", "get", "reports", "web")
	d.shows("paused", "get reports web", "status web -n web1", "resume web -n web1")
	d.web1.outcome("web", report.Converged, "")
	require.Equal(t, "active", d.web1.prop("web.service", "ActiveState"))

	// It gets another name, and goes on running.
	d.web1.until("its run has settled", func() bool { return d.web1.report("web").Outcome == report.Converged })
	run = d.web1.prop("web.service", "InvocationID")
	d.edit("s|^on_change: restart|on_withdraw: release|")
	d.shows("rename", "apply -f /root/server --wait=1m", "withdraw web")
	d.edit("s|^name: web$|name: site\\nunit: web.service|")
	d.shows("renamed", "apply -f /root/server --wait=1m", "get declarations")
	require.Equal(t, run, d.web1.prop("web.service", "InvocationID"))

	// It moves to another node.
	d.edit("s|^on_withdraw: release|on_withdraw: restore|")
	d.done("apply", "-f", "/root/server", "--wait=1m")
	d.shows("move", "node label web2 kind=server", "node label web1 kind-", "node label web1 kind- --yes", "apply -f /root/server --wait=1m")
	d.until("web1 has nothing more", "web2", "get", "reports", "site")
	d.web1.until("web1 is given back", func() bool { return d.web1.report("site") == nil })
	d.shows("moved", "get reports", "describe declaration site")

	// It is withdrawn.
	d.shows("withdraw", "withdraw site file:web-config file:web-key --yes")
	d.reports()
	d.shows("withdrawn", "get declarations", "get reports")
	d.web2.Run(t, "rm", "-rf", "/var/lib/stead/host/kept") // what was overwritten is the operator's to throw away
	last := ""
	d.web2.until("the node is as it was", func() bool {
		last = strings.Join(before["web2"].Diff(d.web2.snapshot()), "\n")
		return last == ""
	}, &last)
	require.Empty(t, d.wrong, "screens that are others than in testdata/day; look at them, then: go test ./test/system -run TestAnOperatorsDay -update")
}

// edit edits the declarations by a command of sed(1).
func (d *day) edit(command string) {
	d.Helper()
	d.ctl.Run(d.T, "sed", "-i", command, "/root/server/web.yaml")
}

// until waits until a command's answer holds a word.
func (d *day) until(what, word string, args ...string) {
	d.Helper()
	last := ""
	d.ctl.until(what, func() bool {
		last = d.stead(args...).Stdout
		return strings.Contains(last, word)
	}, &last)
}

// shows gives commands, and holds what they print against the file of that name.
func (d *day) shows(name string, commands ...string) {
	d.Helper()
	var b strings.Builder
	for _, c := range commands {
		out := d.stead(strings.Fields(c)...)
		fmt.Fprintf(&b, "$ stead %s\n%s%s", c, out.Stdout, out.Stderr)
		if out.Code != 0 {
			fmt.Fprintf(&b, "(exit status %d)\n", out.Code)
		}
		b.WriteString("\n")
	}
	d.screens++
	file := fmt.Sprintf("testdata/day/%02d-%s.txt", d.screens, name)
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(d, os.MkdirAll("testdata/day", 0o755))
		require.NoError(d, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(d, err)
	if timeless(string(want)) != timeless(b.String()) {
		d.wrong = append(d.wrong, file)
		d.Logf("%s holds\n%s\nand this was shown:\n%s", file, want, b.String())
	}
}

var (
	ids      = regexp.MustCompile(`\b([a-z2-7]{26}|[0-9a-f]{32})\b`)
	logged   = regexp.MustCompile(`(?m)^(      \d\d:\d\d:\d\d|    ([A-Z][a-z]{2} [ \d]|retry|began|looked|last lines|warnings)|      web\.service: |converged on .* ·).*\n`)
	standing = regexp.MustCompile(`web1 (failed|waiting): .*`)
	failing  = regexp.MustCompile(`\d (failed|waiting)`)
	nextTry  = regexp.MustCompile(`, next [\d:]+`)
	numbers  = regexp.MustCompile(`\bnow\b|\b\d[\d.:,T-]*(\s?(ms|s|m|h|d|min|[KMG]?i?B)\b)*Z?`)
	spaces   = regexp.MustCompile(`[ ─-]{2,}`)
)

// timeless is a screen without what is another each time: numbers, ids, the widths of
// columns that follow from them, lines of logs, and which try it is.
func timeless(screen string) string {
	screen = logged.ReplaceAllString(screen, "")
	screen = ids.ReplaceAllString(screen, "ID")
	screen = standing.ReplaceAllString(screen, "web1 is at it")
	screen = failing.ReplaceAllString(screen, "N at it")
	screen = nextTry.ReplaceAllString(screen, "")
	screen = strings.ReplaceAll(screen, "s ago ", "s ") // less than that is "now"
	screen = numbers.ReplaceAllString(screen, "N")
	return spaces.ReplaceAllString(screen, "  ")
}
