package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/unit"
	"stead/mesh/wire"
	"stead/seats"
)

func somePause() wire.Pause {
	return wire.Pause{Unit: "web.service", Scope: unit.System, Until: at(-30 * time.Minute), Seconds: 3600, Declaration: "web", By: "operator alice", At: at(30 * time.Minute),
		Reason: "a new disk"}
}

func pausedReports() []wire.NodeReport {
	all, p := someReports(), somePause()
	r := &all[1]
	r.Outcome, r.Reason, r.Paused, r.Since = report.Paused, "", &p, p.At
	r.Text = "until 2026-03-01 12:30 UTC by operator alice: a new disk; not done before: start web.service"
	r.State = report.State{Load: "loaded", Active: "inactive", Sub: "dead", Enabled: "enabled"}
	r.Looked = at(time.Minute)
	r.Steps = []report.Step{{At: at(time.Hour), Action: "write", Object: "/etc/systemd/system/web.service", Reason: "content differs"},
		{At: at(time.Hour), Action: "reload", Object: "system manager", Reason: "its files changed", Took: 84 * time.Millisecond},
		{At: at(time.Hour), Action: "start", Object: "web.service", Reason: "it was stopped", Error: "it is masked"}}
	r.Warnings, r.Lines = []string{"web.service:3: Unknown key name 'X'"}, []string{"Mar 01 11:02:11 listening on 80"}
	all[0].Warnings = []string{"web.service:3: Unknown key name 'X'"}
	return all
}

func TestScreenOfWhatIsPaused(t *testing.T) {
	reports := pausedReports()
	golden(t, "reports-paused", 0, func(w screen) { w.got(wire.Reports, wire.GetReply{Reports: reports}, false) })
	d := wire.Declaration{Name: "web", UID: "u1", Generation: 12, Revision: 418, Unit: "web.service", Scope: "system", All: true, By: "operator alice", At: at(2 * time.Hour), On: 3,
		Outcomes: map[report.Outcome]int{report.Converged: 1, report.Paused: 1}}
	golden(t, "declarations-paused", 0, func(w screen) { w.got(wire.Declarations, wire.GetReply{Declarations: []wire.Declaration{d}}, false) })
	golden(t, "declaration-paused", 0, func(w screen) { w.describeDeclaration(d, reports, false) })
	golden(t, "declaration-on-a-node", 90, func(w screen) { w.describeDeclaration(d, reports[:1], true) })
	n := someNodes()[0]
	n.Outcomes = map[report.Outcome]int{report.Converged: 6, report.Paused: 1}
	n.Pauses = []wire.Pause{somePause(), {Unit: "reload-watcher.service", Scope: unit.User, Until: at(-48 * time.Hour), By: "operator bob"}}
	golden(t, "node-with-pauses", 0, func(w screen) { w.describeNode(n, reports[1:2]) })
	golden(t, "events-of-a-pause", 0, func(w screen) {
		p := somePause()
		e := wire.Event{At: p.At, Source: "controller", Who: p.By, Kind: "pause", Node: "web1", Declaration: "web", Unit: "web.service", Scope: "system", Text: p.String()}
		end, held := e, e
		end.Kind, end.Who, end.At, end.Text = "resume", "operator bob", at(time.Minute), "it was paused "+p.String()
		held.Source, held.Who, held.Kind, held.Outcome, held.Text = "host", "", "outcome", "paused", p.String()+"; it is as declared"
		require.NoError(t, (&teller{w: w}).tell([]wire.Event{e, held, end}))
	})
}

func TestScreenOfAPausedUnit(t *testing.T) {
	p := somePause()
	u := someStatus()
	by := *u.DeclaredBy
	by.Paused = &seats.Paused{Until: p.Until, By: p.By, Reason: p.Reason}
	u.DeclaredBy, u.Active, u.Sub = &by, "inactive", "dead"
	require.False(t, unwanted(u), "somebody wants it so")
	golden(t, "status-paused", 0, func(w screen) { w.unitStatus("web1", u) })
	golden(t, "units-paused", 0, func(w screen) {
		var o unitsOptions
		table(w, "", unitHead(o), w.unitRows("web1", []seats.UnitLine{{Name: "web.service", Scope: "system", Load: "loaded", Active: "inactive", Sub: "dead", Enablement: "enabled", DeclaredBy: &by}}, o))
	})
	golden(t, "act-paused", 0, func(w screen) {
		a := seats.Acted{Unit: "web.service", Scope: "system", Result: "done", Before: seats.State{Active: "active", Sub: "running"}, After: seats.State{Active: "inactive", Sub: "dead"}, Took: 0.2, DeclaredBy: &by,
			Note: `declaration "web" ensures running, and is paused until 2026-03-01 12:30 UTC by operator alice (a new disk): then the host will start it again`}
		require.NoError(t, actTeller{w: w, log: w, of: deeds()[seats.Stop]}.tell(&tour{log: w}, "web1", a))
	})
}

func TestScreenOfAPause(t *testing.T) {
	var log bytes.Buffer
	p := somePause()
	user := p
	user.Scope = unit.User
	golden(t, "paused", 0, func(w screen) {
		o := pauseOptions{}
		require.NoError(t, o.tell(&log, w, paused{Node: "web1", ChangeReply: wire.ChangeReply{Pause: &p}}))
		require.NoError(t, o.tell(&log, w, paused{Node: "ws1", ChangeReply: wire.ChangeReply{Pause: &user}, Unconfirmed: true}))
		o.q.End = true
		require.NoError(t, o.tell(&log, w, paused{Node: "ws1", ChangeReply: wire.ChangeReply{Pause: &user}}))
		require.NoError(t, o.tell(&log, w, paused{Node: "ws1", ChangeReply: wire.ChangeReply{Warnings: []string{"web.service of system scope is not paused on ws1"}}}))
	})
	require.Equal(t, "hint: to end it before: stead resume web.service -n web1\n"+
		"warning: ws1 has not said yet that it heeds this: until then it may put the unit right (stead get reports web -n ws1)\n"+
		"hint: to end it before: stead resume web.service -n ws1 --user\n"+
		"warning: web.service of system scope is not paused on ws1\n", log.String())
}

func TestLengthsAreReadWithDays(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30m": 30 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "2h30m": 150 * time.Minute, "90s": 90 * time.Second,
		"": 0, "30": 0, "0s": 0, "0d": 0, "-1h": 0, "-1d": 0, "d": 0, "1dd": 0, "1d-2h": 0, "99999999999d": 0, "x": 0, "1d2d": 0,
	} {
		var l length
		err := l.Set(text)
		require.Equal(t, want, time.Duration(l), text)
		require.Equal(t, want == 0, err != nil, text)
	}
}

func TestAWaitDoesNotWaitForPauses(t *testing.T) {
	a := advance{nodes: 3, outcomes: map[report.Outcome]int{report.Converged: 2, report.Paused: 1}}
	require.True(t, a.stuck())
	require.False(t, a.done())
	a.outcomes = map[report.Outcome]int{report.Converged: 1, report.Paused: 1, report.Waiting: 1}
	require.False(t, a.stuck())
}
