package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestADeclarationFromApplyToWithdrawal(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1, ws2 := w.join("ws1"), w.join("ws2")
	reply, err := alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Labels: map[string]string{"role": "web"}})
	require.NoError(t, err)
	require.Equal(t, "web", reply.Node.Labels["role"])

	reply = w.apply(alice, service("web", "labels: {role: web}", "1"))
	require.Len(t, reply.Changes, 1)
	require.Equal(t, wire.New, reply.Changes[0].How)
	require.Equal(t, 1, reply.Changes[0].Nodes)

	require.NotNil(t, ws1.sync().Signed)
	require.Equal(t, []string{"web"}, ws1.names())
	require.Equal(t, reply.Revision, ws1.held.Revision)
	require.NotNil(t, ws2.sync().Signed)
	require.Empty(t, ws2.names())
	require.True(t, ws1.sync().Same)

	progress, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web", "db"}, Least: reply.Revision})
	require.NoError(t, err)
	require.Equal(t, 1, progress.Names[0].Nodes)
	require.Empty(t, progress.Names[0].Outcomes)
	require.Zero(t, progress.Names[1].Generation)

	require.False(t, ws1.report(1, report.Failed).Full)
	require.Eventually(t, func() bool {
		progress, err = alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web"}})
		return err == nil && progress.Names[0].Outcomes[report.Failed] == 1
	}, patience, 10*time.Millisecond)
	require.Len(t, progress.Names[0].Notable, 1)
	require.Equal(t, "ws1", progress.Names[0].Notable[0].Node)
	require.Equal(t, []string{"secret of web"}, progress.Names[0].Notable[0].Lines)

	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations, Content: true, Names: []string{"web", "wep"}})
	require.Len(t, all.Declarations, 1)
	require.Equal(t, map[report.Outcome]int{report.Failed: 1}, all.Declarations[0].Outcomes)
	require.JSONEq(t, string(canonicalOf(t, service("web", "all: true", "1"))), string(all.Declarations[0].Canonical))
	require.Equal(t, "operator alice", all.Declarations[0].By)
	require.Equal(t, []string{"wep"}, all.Missing)
	require.Equal(t, "web", all.Closest["wep"])

	again := w.apply(alice, service("web", "labels: {role: web}", "1"))
	require.Equal(t, reply.Revision, again.Revision, "the same twice changes nothing")
	require.Equal(t, wire.Unchanged, again.Changes[0].How)

	gone, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"web"}, Force: true})
	require.NoError(t, err)
	require.Equal(t, wire.Gone, gone.Changes[0].How)
	require.NotNil(t, ws1.sync().Signed)
	require.Empty(t, ws1.names())
	progress, err = alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web"}, Least: gone.Revision})
	require.NoError(t, err)
	require.Equal(t, wire.ProgressOfName{Name: "web", Leaving: 1}, progress.Names[0])

	w.wantEvents(alice, "node", "ws1", "node", "ws2", "node", "ws1", "apply", "web", "withdraw", "web")
}

// wantEvents waits for these kinds and objects among the events of controllers.
func (w *world) wantEvents(c *client.Client, want ...string) {
	w.t.Helper()
	var got []string
	require.Eventually(w.t, func() bool {
		page, err := c.Events(w.within(patience), wire.EventsRequest{Last: 100})
		require.NoError(w.t, err)
		got = nil
		for _, e := range page.Events {
			if e.Source == "controller" && e.Kind != "seat" && e.Kind != "module" {
				got = append(got, e.Kind, e.Node+e.Declaration)
			}
		}
		return fmt.Sprint(got) == fmt.Sprint(want)
	}, patience, 20*time.Millisecond, "want %v\ngot %v", want, &got)
}

func TestViewersReadAndGetNoContent(t *testing.T) {
	w := newWorld(t)
	alice, vera := w.operator("alice"), w.viewer("vera")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	ws1.report(1, report.Failed)

	var all wire.GetReply
	require.Eventually(t, func() bool {
		all, _ = w.pages(vera, wire.GetRequest{Kind: wire.Reports})
		return len(all.Reports) == 1
	}, patience, 10*time.Millisecond)
	require.Empty(t, all.Reports[0].Lines)
	require.Equal(t, report.Failed, all.Reports[0].Outcome)
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Reports})
	require.NotEmpty(t, all.Reports[0].Lines)

	all, _ = w.pages(vera, wire.GetRequest{Kind: wire.Declarations, Content: true})
	require.Len(t, all.Declarations, 1)
	require.Empty(t, all.Declarations[0].Canonical)
	progress, err := vera.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web"}})
	require.NoError(t, err)
	require.Len(t, progress.Names[0].Notable, 1)
	require.Empty(t, progress.Names[0].Notable[0].Lines)
	all, _ = w.pages(vera, wire.GetRequest{Kind: wire.Nodes})
	require.Equal(t, wire.Ready, all.Nodes[0].State)
	require.Equal(t, "257", all.Nodes[0].Profile.Systemd)
	require.Equal(t, 1, all.Nodes[0].Declared)

	for name, do := range map[string]func() error{
		"apply": func() error {
			_, err := vera.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service("x", "all: true", "1")}}, DryRun: true})
			return err
		},
		"withdraw": func() error {
			_, err := vera.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"web"}})
			return err
		},
		"settings": func() error {
			_, err := vera.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Remove: true, Yes: true})
			return err
		},
	} {
		require.True(t, fault.Is(do(), fault.Denied), "%s: %v", name, do())
	}
}

func TestOfTwoOperatorsAtOnceOneGetsAConflict(t *testing.T) {
	w := newWorld(t)
	alice, bob := w.operator("alice"), w.operator("bob")
	first := w.apply(alice, service("web", "all: true", "1"))
	seen := map[string]wire.Mark{"web": first.Changes[0].Mark}
	var group sync.WaitGroup
	replies := make([]wire.ChangeReply, 2)
	for i, who := range []*client.Client{alice, bob} {
		group.Go(func() {
			reply, err := who.Apply(w.within(patience), wire.ApplyRequest{
				Files: []wire.File{{Name: "a", Text: service("web", "all: true", fmt.Sprint(10+i))}}, Seen: seen, Epoch: first.Epoch,
			})
			if err == nil {
				replies[i] = reply
			}
		})
	}
	group.Wait()
	landed, held := replies[0], replies[1]
	if len(landed.Conflicts) > 0 {
		landed, held = held, landed
	}
	require.Empty(t, landed.Conflicts)
	require.Equal(t, first.Changes[0].Generation+1, landed.Changes[0].Generation)
	require.Len(t, held.Conflicts, 1)
	require.Equal(t, wire.Edited, held.Conflicts[0].How)
	require.Equal(t, landed.Changes[0].Mark, held.Conflicts[0].Mark)
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Equal(t, landed.Revision, all.Revision)
	require.Equal(t, all.Declarations[0].By, held.Conflicts[0].By)
}

func TestManyOperatorsAtOnceAllLandInSomeOrder(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	var group sync.WaitGroup
	for i := range 20 {
		c := w.operator(fmt.Sprintf("o%d", i))
		group.Go(func() {
			reply, err := c.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service(fmt.Sprintf("s%d", i), "all: true", "1")}}})
			if err != nil || len(reply.Changes) != 1 {
				t.Errorf("apply %d: %v %+v", i, err, reply)
			}
		})
	}
	group.Wait()
	all, _ := w.pages(w.operator("alice"), wire.GetRequest{Kind: wire.Declarations})
	require.Len(t, all.Declarations, 20)
}

func TestAnApplyOfSixteenMegabytesLandsInParts(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	const each = 60 << 10
	var files []wire.File
	total := 0
	for i := 0; ; i++ {
		text := service(fmt.Sprintf("s%d", i), "nodes: [ws1]", "1") + strings.Repeat("  # "+strings.Repeat("\"<&>\"", 39)+"\n", each/200)
		if total+len(text) > 16<<20 {
			break
		}
		total += len(text)
		files = append(files, wire.File{Name: fmt.Sprintf("s%d.yaml", i), Text: text})
	}
	require.Greater(t, total, 15<<20)
	start := time.Now()
	reply, err := alice.Apply(w.within(2*time.Minute), wire.ApplyRequest{Files: files})
	require.NoError(t, err)
	require.Empty(t, reply.Problems)
	t.Logf("%d declarations of %d bytes in %s", len(files), total, time.Since(start).Round(time.Millisecond))
	require.Len(t, reply.Changes, len(files))
	all, pages := w.pages(alice, wire.GetRequest{Kind: wire.Declarations, Content: true})
	require.Len(t, all.Declarations, len(files))
	require.Greater(t, pages, 20)
	require.Equal(t, reply.Revision, all.Revision)
}

func TestAskedForWhatThereIsNot(t *testing.T) {
	w := newWorld(t)
	alice := w.connect(identity.Operator, "alice")
	for name, c := range map[string]struct {
		class   subject.Class
		op      subject.Operation
		payload string
		want    fault.Class
	}{
		"no JSON":              {subject.Write, wire.Apply, "{", fault.Invalid},
		"another version":      {subject.Write, wire.Apply, `{"wire":99}`, fault.Unsupported},
		"no version":           {subject.Read, wire.Get, `{"kind":"nodes"}`, fault.Unsupported},
		"no such kind":         {subject.Read, wire.Get, `{"wire":1,"kind":"pods"}`, fault.Invalid},
		"too many names":       {subject.Read, wire.Progress, `{"wire":1,"names":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, fault.Invalid},
		"no such operation":    {subject.Write, "destroy", `{}`, fault.Unavailable},
		"writing among reads":  {subject.Read, wire.Apply, `{"wire":1}`, fault.Unavailable},
		"a revision far ahead": {subject.Read, wire.Progress, `{"wire":1,"names":["a"],"least":999999}`, fault.Timeout},
	} {
		_, err := alice.Call(w.within(patience), subject.ForOperation(c.class, c.op), []byte(c.payload))
		require.Equal(t, c.want, fault.ClassOf(err), "%s: %v", name, err)
	}
}

func TestWhoFollowsDoesNotHoldUpTheEnd(t *testing.T) {
	w := newWorld(t)
	vera := w.viewer("vera")
	ctx, cancel := context.WithCancel(t.Context())
	pages := make(chan uint64, 100)
	done := make(chan error, 1)
	go func() {
		done <- vera.Follow(ctx, wire.EventsRequest{Last: 1}, func(p wire.EventsReply) error {
			for _, e := range p.Events {
				if e.Kind == "apply" {
					pages <- e.Revision
				}
			}
			return nil
		}, func(error) {})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	alice := w.operator("alice")
	first := w.apply(alice, service("web", "all: true", "1"))
	require.Equal(t, first.Revision, <-pages)
	<-time.After(300 * time.Millisecond) // now it waits for the next one
	start := time.Now()
	w.end()
	require.Less(t, time.Since(start), 5*time.Second)
	w.start()
	second := w.apply(alice, service("web", "all: true", "2"))
	require.Equal(t, second.Revision, <-pages, "it goes on where it was")
}

// TestAWithdrawalIsDoneWhenItsNodesSaySo: that a node reports nothing of what was
// taken from it may be because it is about to start it.
func TestAWithdrawalIsDoneWhenItsNodesSaySo(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1, ws2, ws3 := w.join("ws1"), w.join("ws2"), w.join("ws3")
	_, err := alice.Settings(w.within(patience), wire.SettingsRequest{Node: "never", Add: true})
	require.NoError(t, err)
	leaving := func(least uint64) int {
		p, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web"}, Least: least})
		require.NoError(t, err)
		require.Empty(t, p.Names[0].Silent)
		return p.Names[0].Leaving
	}
	comes := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool { return leaving(0) == n }, patience, tick)
	}
	say := func(n *node, seq uint64) {
		t.Helper()
		if reply := n.sync(); reply.Same {
			n.same = reply.Since
		}
		n.report(seq, report.Converged)
	}
	say(ws1, 1)

	// Moved at once: ws2 and ws3 may have it, or get it, as long as they say nothing.
	w.apply(alice, service("web", "nodes: [never, ws1, ws2, ws3]", "1"))
	require.Equal(t, 2, leaving(w.apply(alice, service("web", "nodes: [ws1]", "1")).Revision))
	say(ws2, 1)
	comes(1)
	say(ws3, 1)
	comes(0)

	// Withdrawn before ws1 heard of anything: what it holds is the same as before.
	gone, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"web"}, Force: true})
	require.NoError(t, err)
	require.Equal(t, 3, leaving(gone.Revision), "it was theirs until a moment ago")
	require.True(t, ws1.sync().Same)
	for i, n := range []*node{ws1, ws2, ws3} {
		say(n, 2)
		comes(2 - i)
	}
	require.Equal(t, gone.Revision, ws1.same)

	// Declared anew elsewhere.
	again := w.apply(alice, service("web", "nodes: [ws2]", "1"))
	require.Equal(t, 1, leaving(again.Revision))
	say(ws1, 3)
	comes(0)
}

// TestTheLastWordOfASilentNodeIsNotHowItStands: nobody knows that of a node of
// which nothing is heard.
func TestTheLastWordOfASilentNodeIsNotHowItStands(t *testing.T) {
	w := newWorld(t)
	later := w.later()
	alice := w.operator("alice")
	ws1, ws2 := w.join("ws1"), w.join("ws2")
	w.apply(alice, service("web", "all: true", "1")+"---\n"+service("db", "nodes: [ws2]", "1"))
	for _, n := range []*node{ws1, ws2} {
		n.sync()
		n.report(1, report.Converged)
	}
	var now []wire.ProgressOfName
	stands := func() bool {
		p, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web", "db"}})
		require.NoError(t, err)
		now = p.Names
		return now[0].Outcomes[report.Converged] == 2
	}
	require.Eventually(t, stands, patience, tick)
	require.Empty(t, now[0].Silent)

	later(3 * time.Minute)
	ws1.sync()
	stands()
	require.Equal(t, map[report.Outcome]int{report.Converged: 1}, now[0].Outcomes)
	require.Equal(t, []string{"ws2"}, now[0].Silent)
	_, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"db"}, Force: true})
	require.NoError(t, err)
	stands()
	require.Equal(t, wire.ProgressOfName{Name: "db", Leaving: 1, Silent: []string{"ws2"}}, now[1])

	ws2.sync()
	require.True(t, stands(), "it is there again, and reports nothing since nothing changed")
}

// TestReportsOfBeforeAChangeDoNotSpeakOfIt: what was taken from a node and given
// back is not converged because it was so before.
func TestReportsOfBeforeAChangeDoNotSpeakOfIt(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	label := func(value *string) uint64 {
		r := wire.SettingsRequest{Node: "ws1", Yes: true, Labels: map[string]string{"role": "web"}}
		if value == nil {
			r.Labels, r.Unlabel = nil, []string{"role"}
		}
		reply, err := alice.Settings(w.within(patience), r)
		require.NoError(t, err)
		return reply.Revision
	}
	web := "web"
	label(&web)
	w.apply(alice, service("web", "labels: {role: web}", "1"))
	ws1.sync()
	ws1.report(1, report.Converged)
	stands := func(least uint64) wire.ProgressOfName {
		p, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"web"}, Least: least})
		require.NoError(t, err)
		return p.Names[0]
	}
	converged := func() bool { return stands(0).Outcomes[report.Converged] == 1 }
	require.Eventually(t, converged, patience, tick)

	label(nil)
	back := label(&web)
	require.Empty(t, stands(back).Outcomes)
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Empty(t, all.Declarations[0].Outcomes)
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Nodes})
	require.Equal(t, 1, all.Nodes[0].Declared)
	require.Empty(t, all.Nodes[0].Outcomes)

	reply := ws1.sync()
	require.True(t, reply.Same, "it never heard of the first one")
	require.Equal(t, back, reply.Since)
	ws1.same = reply.Since
	ws1.report(2, report.Converged)
	require.Eventually(t, converged, patience, tick)
	ws1.same = back + 1
	ws1.report(3, report.Converged)
	require.Eventually(t, func() bool { return !converged() }, patience, tick, "the store was rolled back, and nobody proved it yet")
}

// TestWhatIsKeptIsGivenUpWhenANodeSaysSo: a declaration of an epoch before that
// was withdrawn by name stands on the node until its host has heard of it.
func TestWhatIsKeptIsGivenUpWhenANodeSaysSo(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	ws1.sync()
	tell := func(seq uint64, revision uint64, kept []string, reports ...*report.Report) {
		var reply wire.ReportReply
		require.NoError(t, ws1.ask(subject.Report, wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: seq, Reports: reports,
			Source: wire.Source{Mesh: ws1.mesh, Epoch: ws1.held.Epoch, Revision: revision, Kept: kept}}, &reply))
	}
	leaving := func() int {
		p, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"old"}})
		require.NoError(t, err)
		return p.Names[0].Leaving
	}
	old := &report.Report{Name: "old", UID: "u", Generation: 1, Scope: "system", Unit: "old.service", Outcome: report.Converged, Since: time.Now(), Looked: time.Now()}
	tell(1, ws1.held.Revision, []string{"old"}, old)
	require.Never(t, func() bool { return leaving() > 0 }, time.Second, tick, "nobody wants it to go")
	gone, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"old"}})
	require.NoError(t, err)
	require.Empty(t, gone.Problems)
	require.Equal(t, 1, leaving())
	tell(2, gone.Revision, nil, old)
	require.Equal(t, 1, leaving(), "it is given up, and still being given back")
	tell(3, gone.Revision, nil)
	require.Eventually(t, func() bool { return leaving() == 0 }, patience, tick)
}
