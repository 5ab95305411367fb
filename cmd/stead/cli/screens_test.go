package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host"
	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/wire"
)

// at is a moment so long before that of the screens.
func at(ago time.Duration) time.Time { return screenTime().Add(-ago) }

func screenTime() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local) }

// golden holds a screen against its file below testdata/screens; -update writes
// it.
func golden(t *testing.T, name string, width int, draw func(w screen)) {
	t.Helper()
	var b bytes.Buffer
	draw(screen{&b, screenTime(), width})
	path := filepath.Join("testdata", "screens", name+".txt")
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
	for line := range strings.Lines(b.String()) {
		require.Equal(t, strings.TrimRight(line, " \n"), strings.TrimRight(line, "\n"), "a space at the end of a line")
	}
}

func origin(file string) shape.Origin { return shape.Origin{File: file, Line: 1} }

func someChanges() []wire.Change {
	return []wire.Change{
		{Name: "web", Origin: origin("mesh/web.yaml"), Nodes: 6, How: wire.Edited, Fields: []string{"content", "ensure"}},
		{Name: "reload-watcher", Origin: origin("mesh/desktop.yaml"), Nodes: 2, How: wire.New, Gains: 2},
		{Name: "backup", Origin: origin("mesh/desktop.yaml"), Nodes: 1, How: wire.Moved, Gains: 1, Loses: 3},
		{Name: "a", Origin: origin("mesh/base.yaml"), Nodes: 8, How: wire.Unchanged},
		{Name: "b", Origin: origin("mesh/base.yaml"), Nodes: 8, How: wire.Unchanged},
		{Name: "c", Origin: origin("mesh/one.yaml"), Nodes: 8, How: wire.Unchanged},
	}
}

func TestScreenOfChanges(t *testing.T) {
	golden(t, "applied", 0, func(w screen) {
		w.changeReply(change{reply: wire.ChangeReply{Revision: 418, Changes: someChanges()}, done: "applied"}, false)
	})
	golden(t, "applied-nothing", 0, func(w screen) {
		w.changeReply(change{reply: wire.ChangeReply{Revision: 418, Changes: someChanges()[3:]}, done: "applied"}, false)
	})
	golden(t, "withdrawn", 0, func(w screen) {
		w.changeReply(change{reply: wire.ChangeReply{Revision: 419, Changes: []wire.Change{
			{Name: "web", Nodes: 6, Loses: 6, How: wire.Gone}, {Name: "worker", Nodes: 1, Loses: 1, How: wire.Gone},
		}}, done: "withdrawn"}, false)
	})
	golden(t, "applied-many", 0, func(w screen) {
		var many []wire.Change
		for range 500 {
			many = append(many, wire.Change{Name: "x", Origin: origin("all.yaml"), How: wire.New, Nodes: 3})
		}
		w.changeReply(change{reply: wire.ChangeReply{Revision: 1, Changes: many}, done: "applied"}, false)
	})
}

func somePlans() []wire.NodePlan {
	web := wire.Plan{Name: "web", Unit: "web.service", Scope: "system", Steps: []wire.PlanStep{
		{Action: "write", Object: "/etc/systemd/system/web.service", Reason: "content differs",
			Diff: []string{"--- /etc/systemd/system/web.service", "+++ /etc/systemd/system/web.service", "@@ -1,2 +1,2 @@", " [Service]",
				"-ExecStart=/usr/local/bin/web --port 80", "+ExecStart=/usr/local/bin/web --port 8080"}},
		{Action: "reload", Object: "system manager", Reason: "a unit file changed"},
		{Action: "restart", Object: "web.service", Reason: "it runs the old definition"},
	}}
	return []wire.NodePlan{
		{Node: "web1", Plan: web}, {Node: "web2", Plan: wire.Plan{Name: "web"}}, {Node: "web3", Plan: web},
		{Node: "web4", Plan: wire.Plan{Name: "web", Outcome: report.Refused, Reason: report.IsMasked, Text: "web.service is masked", Hint: "systemctl unmask web.service", Warnings: []string{"line 3 is unknown"}}},
	}
}

func TestScreenOfPlans(t *testing.T) {
	reply := wire.ChangeReply{Revision: 418, Changes: someChanges()[:1], Plans: somePlans(), More: 3,
		Unplanned: map[string]string{"ws9": "no answer in 5 s", "ws8": "its host cannot plan"}}
	golden(t, "plans", 0, func(w screen) { w.changeReply(change{reply: reply, dryRun: true, done: "applied"}, false) })
	golden(t, "plans-nothing", 0, func(w screen) {
		w.changeReply(change{reply: wire.ChangeReply{Revision: 418, Changes: someChanges()[3:]}, dryRun: true, done: "applied"}, false)
	})
}

func TestScreenOfRefusals(t *testing.T) {
	complained := func(r wire.ChangeReply) func(w screen) {
		return func(w screen) {
			err := w.refusal(r, "nothing was applied")
			require.Error(t, err)
			complain(w, err, "")
		}
	}
	golden(t, "problems", 0, complained(wire.ChangeReply{Problems: shape.Problems{
		{File: "mesh/desktop.yaml", Line: 12, Path: "reload-watcher.masked", Rule: "masked: true contradicts ensure: running"},
		{File: "mesh/desktop.yaml", Line: 24, Path: "bar-watchdog.on_chnage", Rule: "unknown field", Cure: "did you mean on_change?"},
	}}))
	golden(t, "problems-of-a-command", 0, complained(wire.ChangeReply{Problems: shape.Problems{
		{Path: "wbe", Rule: "no declaration is called that", Cure: "did you mean web?"},
	}}))
	golden(t, "conflicts", 0, complained(wire.ChangeReply{Conflicts: []wire.Conflict{
		{Name: "web", By: "operator bob", At: at(4 * time.Minute), How: wire.Edited, Fields: []string{"content"}, Generation: 7},
		{Name: "old-service", By: "operator carol", At: at(0), How: wire.Gone},
	}}))
	golden(t, "sure", 0, complained(wire.ChangeReply{Sure: "12 declarations would be taken from web1, all that it has"}))
	golden(t, "everything", 0, complained(wire.ChangeReply{
		Problems: shape.Problems{{File: "a.yaml", Line: 1, Rule: "no addressing"}}, Sure: "web would be taken from 12 nodes",
		Conflicts: []wire.Conflict{{Name: "web", By: "operator bob", At: at(time.Hour), How: wire.Moved}},
	}))
	require.NoError(t, screen{}.refusal(wire.ChangeReply{Warnings: []string{"x"}}, ""))
}

func someProgress() []wire.ProgressOfName {
	return []wire.ProgressOfName{
		{Name: "web", Generation: 3, Nodes: 6, Outcomes: map[report.Outcome]int{report.Converged: 4, report.Waiting: 1, report.Failed: 1}, Notable: []wire.NodeReport{
			{Node: "web6", Report: report.Report{Outcome: report.Failed, Reason: report.Exited, Text: "exit status 203: /usr/local/bin/web: no such file"}}}},
		{Name: "reload-watcher", Generation: 1, Nodes: 2, Outcomes: map[report.Outcome]int{report.Converged: 2}},
		{Name: "base", Generation: 2, Nodes: 3, Outcomes: map[report.Outcome]int{report.Converged: 1}, Silent: []string{"ws9"}},
		{Name: "moved", Generation: 2, Nodes: 1, Outcomes: map[report.Outcome]int{report.Converged: 1}, Leaving: 2},
		{Name: "nowhere", Generation: 2},
		{Name: "old", Leaving: 1},
		{Name: "older"},
	}
}

func TestScreenOfProgress(t *testing.T) {
	draw := func(all []wire.ProgressOfName) func(w screen) {
		return func(w screen) {
			for _, line := range w.progress(all, 1400*time.Millisecond) {
				_, err := w.Write([]byte(line + "\n"))
				require.NoError(t, err)
			}
		}
	}
	golden(t, "progress", 120, draw(someProgress()))
	golden(t, "progress-narrow", 60, draw(someProgress()))
	golden(t, "progress-plain", 0, draw(someProgress()))
	golden(t, "progress-done", 100, draw(someProgress()[1:2]))
	var many []wire.ProgressOfName
	for range 30 {
		many = append(many, someProgress()[1])
	}
	golden(t, "progress-many", 100, draw(append(many, someProgress()[0])))
	for range 30 {
		many = append(many, someProgress()[5])
	}
	golden(t, "progress-many-open", 0, draw(many))
}

func someReports() []wire.NodeReport {
	one := func(node, name string, u unit.Name, o report.Outcome, r report.Reason, text string, ago time.Duration) wire.NodeReport {
		return wire.NodeReport{Node: node, Report: report.Report{Name: name, UID: "u1", Generation: 12, Scope: unit.System, Unit: u, Outcome: o, Reason: r, Text: text,
			Since: at(ago), State: report.State{Load: "loaded", Active: "active", Sub: "running", Enabled: "enabled", MainPID: 1843}}}
	}
	old := one("web7", "web", "web.service", report.Converged, "", "", time.Hour)
	old.Generation, old.State = 11, report.State{}
	return []wire.NodeReport{
		one("web1", "web", "web.service", report.Converged, "", "", 2*time.Hour),
		one("web6", "web", "web.service", report.Failed, report.Exited, "exit status 203: /usr/local/bin/web: no such file or directory, and nothing else that would start in its place", 3*time.Minute),
		old,
	}
}

func TestScreenOfReports(t *testing.T) {
	r := wire.GetReply{Reports: someReports()}
	golden(t, "reports", 0, func(w screen) { w.got(wire.Reports, r, false) })
	golden(t, "reports-narrow", 90, func(w screen) { w.got(wire.Reports, r, false) })
	golden(t, "reports-wide", 90, func(w screen) { w.got(wire.Reports, r, true) })
	golden(t, "reports-none", 0, func(w screen) { w.got(wire.Reports, wire.GetReply{}, false) })
}

func someNodes() []wire.Node {
	return []wire.Node{
		{Name: "web1", State: wire.Ready, Labels: map[string]string{"role": "web", "zone": "a"}, Seen: at(time.Second), Declared: 7, Linger: "auto",
			Outcomes: map[report.Outcome]int{report.Converged: 7}, By: "operator alice", At: at(72 * time.Hour), Revision: 400,
			Source: &wire.Source{Mesh: "m", Epoch: "e", Revision: 418, Accepted: at(3 * time.Second)},
			Profile: &wire.Profile{Version: "1.2.3", Systemd: "252.39-1~deb12u1", OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-28",
				Capabilities: []string{wire.ServiceManager}, Started: at(26 * time.Hour)}},
		{Name: "ws1", State: wire.Refusing, Account: "opal", Labels: map[string]string{"role": "workstation"}, Seen: at(time.Second), Declared: 9,
			Outcomes: map[report.Outcome]int{report.Converged: 6, report.Failed: 1}, Linger: "on",
			Profile: &wire.Profile{Systemd: "257", Account: &wire.Account{Name: "opal", UID: 1000, Lingers: true, State: string(report.ManagerStarting), Text: "user@1000.service is activating"}},
			Source:  &wire.Source{Revision: 300, Trouble: "the index is of another epoch", Kept: []string{"older", "oldest"}}},
		{Name: "ws9", State: wire.Silent, Seen: at(4 * time.Minute), Profile: &wire.Profile{Systemd: "systemd 247"}},
		{Name: "new", State: wire.Unknown},
		{Name: "twin", State: wire.Double, Trouble: "two machines use its credentials: a and b", Seen: at(time.Second)},
	}
}

func TestScreenOfNodes(t *testing.T) {
	r := wire.GetReply{Nodes: someNodes()}
	golden(t, "nodes", 0, func(w screen) { w.got(wire.Nodes, r, false) })
	golden(t, "nodes-wide", 0, func(w screen) { w.got(wire.Nodes, r, true) })
	golden(t, "node", 0, func(w screen) { w.describeNode(r.Nodes[0], someReports()[:1]) })
	golden(t, "node-in-trouble", 100, func(w screen) { w.describeNode(r.Nodes[1], someReports()[1:2]) })
	golden(t, "node-double", 0, func(w screen) { w.describeNode(r.Nodes[4], nil) })
	ready, moving := r.Nodes[1], r.Nodes[1]
	ready.Profile = &wire.Profile{Account: &wire.Account{Name: "opal", UID: 1000, State: wire.AccountReady}}
	moving.Account = "pearl"
	golden(t, "node-with-account", 0, func(w screen) { w.describeNode(ready, nil) })
	golden(t, "node-changes-account", 0, func(w screen) { w.describeNode(moving, nil) })
	golden(t, "nodes-with-accounts", 0, func(w screen) { w.got(wire.Nodes, wire.GetReply{Nodes: []wire.Node{ready, moving}}, false) })
	golden(t, "node-new", 0, func(w screen) { w.describeNode(r.Nodes[3], nil) })
}

// What is in force is not said to be nothing: a host that starts keeps what an
// earlier one accepted, before it accepts anything itself.
func TestScreenOfWhatIsInForce(t *testing.T) {
	w := screen{now: at(0)}
	mesh := &host.Membership{Mesh: "m"}
	for want, s := range map[string]host.Source{
		"what was accepted before this host started":                   {Folder: "/f"},
		"what is kept of before: no reading was accepted yet":          {Folder: "/f", Kept: []string{"web"}},
		"what is kept of before: nothing of the mesh was accepted yet": {Mesh: mesh, Kept: []string{"web"}},
		"what was accepted at " + w.when(at(time.Hour)):                {Mesh: mesh, Accepted: at(time.Hour)},
	} {
		require.Equal(t, want, w.inForce(s, true))
	}
	require.Equal(t, "nothing: no reading was accepted yet", w.inForce(host.Source{Folder: "/f"}, false))
	require.Equal(t, "nothing: nothing of the mesh was accepted yet", w.inForce(host.Source{Mesh: mesh}, false))
}

func TestScreenOfDeclarations(t *testing.T) {
	content := "[Service]\nExecStart=/usr/local/bin/web\n"
	s := &shape.Service{Name: "web", Scope: unit.System, Unit: "web.service", Content: &content, Ensure: shape.Running, Timeout: time.Minute, OnWithdraw: shape.Restore}
	all := []wire.Declaration{
		{Name: "web", UID: "u1", Generation: 12, Revision: 418, Unit: "web.service", Scope: "system", Labels: map[string]string{"role": "web"}, Size: 210,
			By: "operator alice", At: at(2 * time.Hour), On: 6, Outcomes: map[report.Outcome]int{report.Converged: 4, report.Failed: 1}, Canonical: json.RawMessage(s.Canonical())},
		{Name: "base", Unit: "base.timer", Scope: "system", All: true, By: "operator bob", At: at(time.Minute), On: 8, Outcomes: map[report.Outcome]int{report.Converged: 8}},
		{Name: "one", Unit: "one.service", Scope: "system", Nodes: []string{"ws1", "ws2"}, By: "operator bob", At: at(time.Minute)},
	}
	golden(t, "declarations", 0, func(w screen) { w.got(wire.Declarations, wire.GetReply{Declarations: all}, false) })
	golden(t, "declarations-wide", 0, func(w screen) { w.got(wire.Declarations, wire.GetReply{Declarations: all}, true) })
	golden(t, "declaration", 100, func(w screen) { w.describeDeclaration(all[0], someReports(), false) })
	golden(t, "declaration-to-a-viewer", 0, func(w screen) { w.describeDeclaration(all[1], nil, false) })
}

func TestScreenOfEvents(t *testing.T) {
	first := []wire.Event{
		{At: at(5 * time.Minute), Source: "controller", Who: "operator alice", Kind: "apply", Declaration: "web", Revision: 418, Text: "content, ensure"},
		{At: at(4 * time.Minute), Source: "host", Node: "web1", Declaration: "web", Unit: "web.service", Scope: "system", Kind: "started", Text: `it was stopped; declaration "web" ensures running`},
	}
	second := []wire.Event{{At: at(0), Source: "host", Node: "workstation1", Unit: "a-unit-with-a-long-name.service", Kind: "outcome", Outcome: "failed", Reason: "exited", Text: "exit status 1"}}
	for name, wide := range map[string]format{"events": "", "events-wide": "wide"} {
		golden(t, name, 0, func(w screen) {
			tell := teller{w: w, format: wide}
			for _, page := range [][]wire.Event{first, nil, second, first} {
				require.NoError(t, tell.tell(page))
			}
			require.NoError(t, tell.end())
		})
	}
	golden(t, "events-json-lines", 0, func(w screen) { require.NoError(t, (&teller{w: w, format: "json", lines: true}).tell(second)) })
	golden(t, "events-none", 0, func(w screen) { require.NoError(t, (&teller{w: w}).end()) })
}

func TestScreenOfASetting(t *testing.T) {
	node := wire.Node{Name: "web1", Labels: map[string]string{"role": "web", "zone": "b"}, Account: "opal", Linger: "on"}
	golden(t, "labelled", 0, func(w screen) {
		w.settled(setting{done: "labelled", q: wire.SettingsRequest{Node: "web1"}}, wire.ChangeReply{Node: &node, Revision: 420, Changes: []wire.Change{
			{Name: "web", Unit: "web.service", Gains: 1}, {Name: "backup", Unit: "backup.timer", Loses: 1},
		}})
	})
}

func TestAPainterDrawsOverWhatItDrew(t *testing.T) {
	var b bytes.Buffer
	p := painter{w: &b}
	p.paint([]string{"one", "two"})
	p.paint([]string{"three"})
	require.Equal(t, "one\ntwo\n\x1b[2A\r\x1b[Jthree\n", b.String())
}
