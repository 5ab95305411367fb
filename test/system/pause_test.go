package system

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/wire"
	"stead/test/lab"
)

// oneNode is a mesh of one node that stead up made, with all commands given there.
type oneNode struct {
	*machine
	printed strings.Builder // all that was printed
}

func upNode(t *testing.T) *oneNode {
	t.Helper()
	n := &oneNode{machine: installOn(t, "ws1")}
	n.Run(t, "stead", "up", "--node", "ws1")
	return n
}

// try gives a command.
func (n *oneNode) try(args ...string) lab.Output {
	n.t.Helper()
	out, err := n.Exec(n.t.Context(), append([]string{"stead"}, args...)...)
	require.NoError(n.t, err)
	fmt.Fprintf(&n.printed, "$ stead %s\n%s%s", strings.Join(args, " "), out.Stdout, out.Stderr)
	return out
}

// done gives a command that must be done.
func (n *oneNode) done(args ...string) lab.Output {
	n.t.Helper()
	out := n.try(args...)
	require.Zero(n.t, out.Code, "stead %q: %s%s", args, out.Stdout, out.Stderr)
	return out
}

// refused gives a command that must be refused, with these words.
func (n *oneNode) refused(words string, args ...string) {
	n.t.Helper()
	out := n.try(args...)
	require.Equal(n.t, 1, out.Code, "stead %q: %s%s", args, out.Stdout, out.Stderr)
	require.Contains(n.t, out.Stderr, words)
	require.Contains(n.t, out.Stderr, "hint: ")
}

// apply applies documents, with more arguments.
func (n *oneNode) apply(docs string, args ...string) lab.Output {
	n.t.Helper()
	require.NoError(n.t, n.WriteFile("/root/mesh.yaml", []byte(docs), 0o600))
	return n.try(append([]string{"apply", "-f", "/root/mesh.yaml"}, args...)...)
}

// report is what the mesh knows of a declaration.
func (n *oneNode) report(name string) wire.NodeReport {
	n.t.Helper()
	var reply wire.GetReply
	require.NoError(n.t, json.Unmarshal([]byte(n.done("get", "reports", name, "-o", "json").Stdout), &reply))
	require.Len(n.t, reply.Reports, 1)
	return reply.Reports[0]
}

// down is whether web.service is as it was left by hand.
func (n *oneNode) down(file string) bool {
	return n.prop("web.service", "ActiveState") == "inactive" && n.prop("web.service", "UnitFileState") == "disabled" && n.read(etc+"/web.service") == file
}

// TestANodeOfUpKeepsSecretsAndHeedsPauses shares one node: what is sensitive first,
// while there is a controller all the time.
func TestANodeOfUpKeepsSecretsAndHeedsPauses(t *testing.T) {
	n := upNode(t)
	t.Run("what is sensitive is shown to nobody", func(t *testing.T) { n.sensitive(t) })
	t.Run("a pause holds everything back and ends by itself", func(t *testing.T) { n.paused(t) })
}

// paused has a unit paused, over a restart of the host and without a controller, and
// what was held back done when it is over.
func (n *oneNode) paused(t *testing.T) {
	require.Zero(t, n.apply(addressed("web", "all: true", sleeper(1))+separator+addressed("other", "all: true", sleeper(2)), "--wait=1m").Code)
	n.refused("nothing is declared of wbe.service", "pause", "wbe", "--for", "1m")
	long := n.try("pause", "web", "--for", "8d")
	require.Equal(n.t, 2, long.Code, long.Stderr)
	require.Contains(n.t, long.Stderr, "--for 8d is out of bounds")
	n.refused(`no node is called "ws2"`, "pause", "web", "-n", "ws2", "--for", "1m")

	began := time.Now()
	out := n.done("pause", "web", "-n", "ws1", "--for", "1m", "--reason", "a new disk")
	require.Contains(t, out.Stderr, "stead resume web.service -n ws1")
	t.Logf("the node heeded the pause after %s", time.Since(began).Round(time.Millisecond))
	const mine = "# by hand\n[Service]\nExecStart=/bin/sleep 7\n[Install]\nWantedBy=multi-user.target\n"
	note := n.done("stop", "web", "-n", "ws1").Stderr
	require.Contains(t, note, "is paused until")
	require.Contains(t, note, "a new disk")
	n.Run(t, "systemctl", "disable", "web.service")
	require.NoError(t, n.WriteFile(etc+"/web.service", []byte(mine), 0o644))
	next := n.apply(addressed("web", "all: true", sleeper(3)), "--wait=20s")
	require.Equal(t, 3, next.Code, "%s%s", next.Stdout, next.Stderr)
	require.Contains(t, next.Stdout, "1 paused")
	n.contested()

	r := n.report("web")
	require.Equal(t, report.Paused, r.Outcome)
	require.EqualValues(t, 2, r.Generation)
	require.Equal(t, "a new disk", r.Paused.Reason)
	require.Contains(t, r.Text, "not done before: write "+etc+"/web.service")
	for words, args := range map[string][]string{
		"paused    until":     {"status", "web"},
		"web (paused)":        {"units", "--declared"},
		"1 paused":            {"get", "declarations", "web"},
		"paused    web.serv":  {"describe", "node", "ws1"},
		"not done before":     {"describe", "declaration", "web"},
		"pause ":              {"events", "--unit", "web.service"},
		"paused: until ":      {"diff", "-f", "/root/more.yaml"},
		"outcome   paused: u": {"events", "--declaration", "web"},
	} {
		require.NoError(t, n.WriteFile("/root/more.yaml", []byte(addressed("web", "all: true", sleeper(4))), 0o600))
		require.Contains(t, n.try(args...).Stdout, words, "%q", args)
	}
	require.True(t, n.down(mine))

	n.Run(t, "systemctl", "stop", controllerService)
	n.Run(t, "systemctl", "restart", service)
	require.Less(t, time.Since(began), 55*time.Second, "this machine is too slow to see the pause held")
	n.until("the host is back, and the unit is paused", func() bool {
		out, err := n.Exec(t.Context(), "stead", "host", "status")
		return err == nil && strings.Contains(out.Stdout, "paused")
	})
	require.True(t, n.down(mine))
	n.until("the pause is over, and all is done", func() bool {
		return n.runs("web.service", sleeper(3)) && n.prop("web.service", "UnitFileState") == "enabled"
	})
	require.Greater(t, time.Since(began), time.Minute)
	t.Logf("all is done %s after the pause began", time.Since(began).Round(time.Millisecond))

	n.Run(t, "systemctl", "start", controllerService)
	n.until("what was done is told", func() bool {
		out := n.try("get", "reports", "web")
		return out.Code == 0 && strings.Contains(out.Stdout, "converged")
	})
	n.done("pause", "web", "--for", "1h")
	n.Run(t, "systemctl", "stop", "web.service")
	require.Contains(t, n.done("resume", "web").Stdout, "resumed web.service on ws1")
	n.until("it is put right at once", func() bool { return n.runs("web.service", sleeper(3)) })
	require.Contains(t, n.done("events", "--unit", "web.service").Stdout, "resume")
}

// contested has a unit stopped through the seat until that is called a fight: the
// report says whose it is.
func (n *oneNode) contested() {
	n.t.Helper()
	for range 4 {
		run := n.prop("other.service", "InvocationID")
		n.done("stop", "other")
		n.until("it was started again", func() bool {
			now := n.prop("other.service", "InvocationID")
			return now != run && now != "" && n.prop("other.service", "ActiveState") == "active"
		})
		from, contested := time.Now(), false
		n.until("it has been up for a while", func() bool { // what had no time to settle is not undone
			r := n.machine.report("other")
			contested = r != nil && r.Outcome == report.Contested
			return contested || r != nil && r.Looked.After(from) && r.Outcome == report.Converged
		})
		if contested {
			break
		}
	}
	var r wire.NodeReport
	n.until("it is contested, by name", func() bool {
		r = n.report("other")
		return r.Outcome == report.Contested && len(r.UndoneBy) > 0
	})
	require.Equal(n.t, "stop", r.UndoneBy[0].Verb)
	require.GreaterOrEqual(n.t, r.UndoneBy[0].Times, 3)
	require.Contains(n.t, r.Text, "stop of "+r.UndoneBy[0].Who+" through the seat, ")
	require.Contains(n.t, n.done("get", "reports").Stdout, "through the seat")
	require.Contains(n.t, n.done("describe", "declaration", "other").Stdout, r.UndoneBy[0].Who+" through the seat")
}

// sensitive looks for what a sensitive declaration holds in everything that is
// printed, and in everything that is logged.
func (n *oneNode) sensitive(t *testing.T) {
	const secret = "hunter2"
	doc := func(more string) string {
		unit := "[Unit]\nConditionPathExists=!/" + secret + "\n[Service]\nEnvironment=PASSWORD=" + secret + more + "\nExecStart=/bin/sleep 100001\nNonsense=" + secret + "\n[Install]\nWantedBy=multi-user.target\n"
		return "shape: service\nname: vault\nall: true\nensure: running\nenabled: true\nsensitive: true\ndropins: {10-x.conf: \"[Service]\\nEnvironment=MORE=" + secret + more + "\\n\"}\ncontent: |\n  " +
			strings.ReplaceAll(strings.TrimSpace(unit), "\n", "\n  ") + "\n"
	}
	require.Zero(t, n.apply(doc("1"), "--wait=1m").Code)
	n.until("its warnings are in", func() bool { return len(n.report("vault").Warnings) > 0 })
	look := func() { // the text of each is made of what these hold
		t.Helper()
		for _, args := range [][]string{{"get", "reports", "-o", "json"}, {"describe", "declaration", "vault", "-n", "ws1"}, {"events", "--since", "1h", "-o", "json"}, {"host", "status", "-o", "json"}} {
			n.try(args...)
		}
	}
	look()
	n.done("describe", "declaration", "vault", "-o", "json")
	n.done("describe", "node", "ws1", "-o", "yaml")
	n.done("units", "--declared", "-o", "json")
	require.Contains(t, n.done("get", "declarations", "vault", "-o", "yaml").Stdout, "sha256")
	for _, args := range [][]string{{"--dry-run"}, {"--dry-run", "-o", "json"}} {
		require.Contains(t, n.apply(doc("2"), args...).Stdout, "sha256")
	}
	require.Equal(t, 3, n.try("diff", "-f", "/root/mesh.yaml").Code)
	require.Zero(t, n.apply(doc("2"), "--wait=1m").Code)
	require.Contains(t, n.prop("vault.service", "Environment"), secret+"2", "it is applied as it is")
	n.Run(t, "touch", "/"+secret)
	n.Run(t, "systemctl", "stop", "vault.service")
	n.until("it waits for its condition", func() bool { return n.report("vault").Reason == report.Condition })
	look()
	n.done("withdraw", "vault", "--dry-run")
	n.done("withdraw", "vault", "--wait=1m")
	n.done("events", "--since", "1h", "-o", "json")
	printed := n.printed.String()
	for i, line := range strings.Split(printed, "\n") {
		require.NotContains(t, line, secret, "line %d of what was printed", i)
	}
	log := n.Run(t, "journalctl", "--no-pager", "-o", "cat", "-u", service, "-u", controllerService, "-u", runtimeService, "-u", helperService)
	require.NotEmpty(t, log)
	for line := range strings.Lines(log) {
		require.NotContains(t, line, secret, "what was logged")
	}
}
