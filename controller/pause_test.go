package controller_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// TestAPauseGoesToItsNodeAndIsKnownOf: in the signed index and the runtime's tools,
// in what people get, and in the audit, by whom.
func TestAPauseGoesToItsNodeAndIsKnownOf(t *testing.T) {
	w := newWorld(t)
	alice, bob, vera := w.operator("alice"), w.operator("bob"), w.viewer("vera")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	half := wire.PauseRequest{Node: "ws1", Unit: "web", Seconds: 1800, Reason: "a new disk"}
	reply, err := alice.Pause(w.within(patience), half)
	require.NoError(t, err)
	require.Equal(t, "ws1: the host of ws1 (stead 1.0.0) does not know of pauses; upgrade stead there; until then withdraw what is to be left alone", reply.Problems[0].String())
	require.Empty(t, ws1.sync().Signed, "nothing was changed")

	p := profile()
	p.Capabilities = append([]string{wire.PausesUnits}, p.Capabilities...)
	var told wire.ProfileReply
	require.NoError(t, ws1.ask(subject.Profile, p, &told))
	_, err = vera.Pause(w.within(patience), half)
	require.True(t, fault.Is(err, fault.Denied), "%v", err)
	require.Eventually(t, func() bool {
		reply, err = alice.Pause(w.within(patience), half)
		return err == nil && len(reply.Problems) == 0
	}, patience, tick)
	require.Equal(t, []wire.Pause{*reply.Pause}, reply.Node.Pauses)
	require.Equal(t, []any{"web", "operator alice", "a new disk"}, []any{reply.Pause.Declaration, reply.Pause.By, reply.Pause.Reason})
	require.NotNil(t, ws1.sync().Signed)
	require.Equal(t, []wire.Pause{*reply.Pause}, ws1.held.Pauses)
	require.True(t, ws1.sync().Same)
	agent := w.agent("ws1")
	agent.sync()
	require.True(t, agent.held.Units[0].Paused.Same(*reply.Pause))
	all, _ := w.pages(vera, wire.GetRequest{Kind: wire.Nodes})
	require.Equal(t, []wire.Pause{*reply.Pause}, all.Nodes[0].Pauses)

	ended, err := bob.Pause(w.within(patience), wire.PauseRequest{Node: "ws1", Unit: "web.service", End: true})
	require.NoError(t, err)
	require.True(t, ended.Pause.Same(*reply.Pause))
	require.Empty(t, ended.Node.Pauses)
	ws1.sync()
	require.Empty(t, ws1.held.Pauses)
	require.Eventually(t, func() bool {
		page, err := alice.Events(w.within(patience), wire.EventsRequest{Unit: "web.service", Last: 10})
		require.NoError(t, err)
		var kinds []string
		for _, e := range page.Events {
			if e.Kind == "pause" || e.Kind == "resume" {
				require.Equal(t, []string{"ws1", "web", "system"}, []string{e.Node, e.Declaration, e.Scope})
				require.Equal(t, map[string]string{"pause": "", "resume": "it was paused "}[e.Kind]+reply.Pause.String(), e.Text)
				kinds = append(kinds, e.Kind+" "+e.Who)
			}
		}
		return len(kinds) == 2 && kinds[0] == "pause operator alice" && kinds[1] == "resume operator bob"
	}, patience, tick)
}

// TestAPauseEndsByTheClock: nobody has to write that it is over.
func TestAPauseEndsByTheClock(t *testing.T) {
	w := newWorld(t)
	ahead := w.later()
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	p := profile()
	p.Capabilities = []string{wire.PausesUnits}
	var told wire.ProfileReply
	require.NoError(t, ws1.ask(subject.Profile, p, &told))
	require.Eventually(t, func() bool {
		reply, err := alice.Pause(w.within(patience), wire.PauseRequest{Node: "ws1", Unit: "web", Seconds: 60})
		return err == nil && reply.Pause != nil
	}, patience, tick)
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Nodes})
	require.Len(t, all.Nodes[0].Pauses, 1)
	ahead(61 * time.Second)
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Nodes})
	require.Empty(t, all.Nodes[0].Pauses)
	reply, err := alice.Pause(w.within(patience), wire.PauseRequest{Node: "ws1", Unit: "web", End: true})
	require.NoError(t, err)
	require.Equal(t, []string{"web.service of system scope is not paused on ws1"}, reply.Warnings)
	ahead(3 * time.Minute)
	reply, err = alice.Pause(w.within(patience), wire.PauseRequest{Node: "ws1", Unit: "web", Seconds: 60})
	require.NoError(t, err)
	require.Contains(t, reply.Warnings, "ws1 is silent: its host heeds this when it hears of it")
}

// TestWhoContestsIsNamed: where the audit has the calls; the rest came from outside.
func TestWhoContestsIsNamed(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	now := time.Now().Add(-time.Minute).UTC().Truncate(time.Millisecond)
	call := func(id, verb, unit, who, result string, at time.Time) wire.Event {
		return wire.Event{ID: id, At: at, Kind: verb, Unit: unit, Who: who, Call: &wire.CallEvent{Seat: "node-service-manager", Verb: verb, Result: result, Took: 0.2}}
	}
	var stored wire.EventReply
	require.NoError(t, w.agent("ws1").ask(subject.Event, wire.EventBatch{Wire: wire.Version, Events: []wire.Event{
		call("1", "stop", "web.service", "operator alice", "done", now),
		call("2", "stop", "we*", "operator alice", "done", now.Add(10*time.Second)),
		call("3", "restart", "web.service", "operator bob", "done", now.Add(20*time.Second)),
		call("4", "stop", "other.service", "operator bob", "done", now.Add(30*time.Second)),
		call("5", "stop", "web.service", "operator bob", "denied", now.Add(30*time.Second)),
		call("6", "status", "web.service", "operator bob", "done", now.Add(30*time.Second)),
	}}, &stored))
	b := wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: 1, Source: wire.Source{Mesh: ws1.mesh, Epoch: ws1.held.Epoch, Revision: ws1.held.Revision}}
	e := ws1.held.Entries[0]
	r := &report.Report{Name: "web", UID: e.UID, Generation: e.Generation, Scope: "system", Unit: "web.service", Outcome: report.Contested, Text: "undone 4 times lately"}
	for _, s := range []int{0, 10, 20, 30} {
		r.Undone = append(r.Undone, now.Add(time.Duration(s)*time.Second+300*time.Millisecond))
	}
	b.Reports = append(b.Reports, r)
	var taken wire.ReportReply
	require.NoError(t, ws1.ask(subject.Report, b, &taken))
	require.Eventually(t, func() bool {
		all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Reports})
		return len(all.Reports) == 1 && len(all.Reports[0].UndoneBy) == 2
	}, patience, tick)
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Reports})
	require.Equal(t, []wire.Undoing{{Who: "operator alice", Verb: "stop", Times: 2}, {Who: "operator bob", Verb: "restart", Times: 1}}, all.Reports[0].UndoneBy)
	require.Equal(t, "stop of operator alice through the seat, 2 times; restart of operator bob through the seat, once; from outside, once; undone 4 times lately", all.Reports[0].Text)
}
