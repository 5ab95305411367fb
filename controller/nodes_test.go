package controller_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func publicOf(key crypto.PublicKey) ed25519.PublicKey { return key.(ed25519.PublicKey) }

func TestANodeGetsItsBodiesAndNoOthers(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1, ws2 := w.join("ws1"), w.join("ws2")
	big := func(name, node string) string {
		return service(name, "nodes: ["+node+"]", "1") + "  #" + strings.Repeat("x", 63<<10) + "\n---\n"
	}
	var mine, others string
	for i := range 15 {
		mine += big(fmt.Sprintf("a%d", i), "ws1")
	}
	others = big("b", "ws2")
	w.apply(alice, mine+others)
	ws1.sync()
	ws2.sync()
	require.Len(t, ws1.held.Entries, 15)

	var digests []string
	for _, e := range ws1.held.Entries {
		digests = append(digests, e.Digest)
	}
	ask := append([]string{ws2.held.Entries[0].Digest}, digests...)
	got := map[string]bool{}
	rounds := 0
	for ; len(ask) > 0; rounds++ {
		require.Less(t, rounds, 10)
		var reply wire.BodyReply
		require.NoError(t, ws1.ask(subject.Body, wire.BodyRequest{Wire: wire.Version, Digests: ask}, &reply))
		if rounds == 0 {
			require.Equal(t, ask[:1], reply.Missing, "a body of another node")
		}
		require.NotEmpty(t, reply.Bodies)
		for _, body := range reply.Bodies {
			sum := sha256.Sum256(body)
			got[hex.EncodeToString(sum[:])] = true
		}
		var left []string
		for _, digest := range ask {
			if !got[digest] && digest != ws2.held.Entries[0].Digest {
				left = append(left, digest)
			}
		}
		ask = left
	}
	require.Greater(t, rounds, 1, "more than one message")
	require.Len(t, got, 15)
}

func TestANodeSpeaksForItselfAlone(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	w.join("ws2")
	for _, role := range []identity.Role{identity.Host, identity.Runtime} {
		conn := w.connect(role, "ws1")
		for _, topic := range subject.HostTopics() {
			_, err := conn.Call(w.within(3*time.Second), subject.ForNode("ws2", topic), []byte(`{"wire":1}`))
			require.True(t, fault.Is(err, fault.Denied) || fault.Is(err, fault.Timeout), "%s %s: %v", role, topic, err)
		}
	}
	require.NotContains(t, w.log.String(), "handler panicked")
}

func TestEventsOfANodeBearItsName(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	b := wire.EventBatch{Wire: wire.Version, Events: []wire.Event{{
		ID: "1", At: time.Now(), Source: "controller", Node: "ws2", Who: "operator alice", Kind: "started",
		Unit: "web.service", Declaration: "web", Text: strings.Repeat("é", 4<<10),
	}}}
	var reply wire.EventReply
	require.NoError(t, ws1.ask(subject.Event, b, &reply))
	require.NoError(t, ws1.ask(subject.Event, b, &reply), "a batch may be sent again")
	page, err := alice.Events(w.within(patience), wire.EventsRequest{Unit: "web.service", Last: 10})
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
	e := page.Events[0]
	require.Equal(t, []string{"host", "ws1", "", "started"}, []string{e.Source, e.Node, e.Who, e.Kind})
	require.Less(t, len(e.Text), 4<<10)
	require.Equal(t, e.Text, strings.ToValidUTF8(e.Text, "?"))

	b.Events[0].ID = ""
	require.True(t, fault.Is(ws1.ask(subject.Event, b, &reply), fault.Invalid))
	b.Events = make([]wire.Event, 1001)
	require.True(t, fault.Is(ws1.ask(subject.Event, b, &reply), fault.Invalid))
}

func TestARemovedNodeIsRefusedByName(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	ws1.report(1, report.Converged)
	_, err := alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Remove: true, Yes: true})
	require.NoError(t, err)

	var reply wire.SyncReply
	err = ws1.ask(subject.Sync, ws1.request(), &reply)
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	require.ErrorContains(t, err, "removed from the mesh by operator alice")
	require.Equal(t, "stead node add ws1", fault.HintOf(err))
	var told wire.ProfileReply
	require.NoError(t, ws1.ask(subject.Profile, profile(), &told))
	require.Contains(t, told.Removed, "operator alice")
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Nodes})
	require.Empty(t, all.Nodes)
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Nodes, Nodes: []string{"ws1"}})
	require.Equal(t, wire.Removed, all.Nodes[0].State)

	_, err = alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Add: true})
	require.NoError(t, err)
	require.True(t, ws1.sync().Profile, "what it is was forgotten with it")
	var again wire.ProfileReply
	require.NoError(t, ws1.ask(subject.Profile, profile(), &again))
	require.Empty(t, again.Removed)
	require.Eventually(t, func() bool { return !ws1.sync().Profile }, patience, tick)
	require.Equal(t, []string{"web"}, ws1.names())
}

func TestAHintGoesToTheNodesConcerned(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	ws2 := w.join("ws2")
	hints := make(chan string, 100)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for _, name := range []string{"ws1", "ws2"} {
		conn := w.connect(identity.Listener, name)
		group.Go(func() {
			_ = conn.Listen(ctx, subject.ForNode(subject.Node(name), subject.Changed), []identity.Account{identity.CTL}, func(h mesh.Hint) {
				hints <- name + string(h.Payload)
			})
		})
	}
	t.Cleanup(func() { cancel(); group.Wait() })
	var reply wire.ChangeReply
	require.Eventually(t, func() bool { // the listeners listen from some moment on
		reply = w.apply(alice, service("web", "nodes: [ws1]", fmt.Sprint(time.Now().UnixNano())))
		select {
		case got := <-hints:
			require.Equal(t, fmt.Sprintf(`ws1{"revision":%d}`, reply.Revision), got)
			return true
		case <-time.After(time.Second):
			return false
		}
	}, patience, time.Millisecond)
	require.Empty(t, hints)

	// A node that keeps a name of an epoch before has it in no set, and waits for
	// somebody to withdraw it.
	var stored wire.ReportReply
	require.NoError(t, ws2.ask(subject.Report, wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: 1, Source: wire.Source{Mesh: ws2.mesh, Kept: []string{"old"}}}, &stored))
	require.Eventually(t, func() bool { // what a node reports is known from some moment on
		var err error
		reply, err = alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"old"}})
		require.NoError(t, err)
		return len(reply.Problems) == 0
	}, patience, time.Millisecond)
	select {
	case got := <-hints:
		require.Equal(t, fmt.Sprintf(`ws2{"revision":%d}`, reply.Revision), got)
	case <-time.After(patience):
		require.Fail(t, "the node that keeps it is not told")
	}
}

func TestADryRunAsksTheNodes(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	w.join("ws2")
	conn := w.connect(identity.Listener, "ws1")
	service1, err := mesh.NewService(conn, mesh.ServiceOptions{Name: "host", Version: "1.0.0", Logger: quiet(), Endpoints: []mesh.Endpoint{{
		Name: "plan", Subject: subject.ForNode("ws1", subject.Plan), Accounts: []identity.Account{identity.CTL},
		Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
			var ask wire.PlanRequest
			if err := json.Unmarshal(r.Payload, &ask); err != nil {
				return nil, err
			}
			var reply wire.PlanReply
			for range ask.Declarations {
				reply.Plans = append(reply.Plans, wire.Plan{Name: "web", Unit: "web.service", Steps: []wire.PlanStep{{Action: "start", Object: "web.service", Reason: "it is to run"}}})
			}
			return json.Marshal(reply)
		},
	}}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- service1.Run(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	<-service1.Ready()

	before, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	reply, err := alice.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service("web", "all: true", "1")}}, DryRun: true})
	require.NoError(t, err)
	require.Len(t, reply.Changes, 1)
	require.Len(t, reply.Plans, 1)
	require.Equal(t, "ws1", reply.Plans[0].Node)
	require.Equal(t, "start", reply.Plans[0].Steps[0].Action)
	require.Equal(t, map[string]string{"ws2": "it is not connected"}, reply.Unplanned)
	_, err = alice.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a", Text: service("web", "all: true", "1")}}, DryRun: true, Nodes: []string{"ws1", "ws3"}})
	require.True(t, fault.Is(err, fault.NotFound), "%v", err)
	require.ErrorContains(t, err, `"ws3": this mesh knows no such node`)
	after, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Equal(t, before.Revision, after.Revision)
	require.Empty(t, after.Declarations)
}

func TestManyNewNodesTakeFewCommits(t *testing.T) {
	w := newWorld(t)
	const n = 100
	conns := make([]*node, n)
	for i := range conns {
		name := fmt.Sprintf("n%d", i)
		conns[i] = &node{w: w, name: name, conn: w.connect(identity.Host, name), mesh: w.keys.ID()}
	}
	var group sync.WaitGroup
	start := time.Now()
	for _, one := range conns {
		group.Go(func() {
			var reply wire.SyncReply
			if err := one.ask(subject.Sync, one.request(), &reply); err != nil || reply.Signed == nil {
				t.Errorf("%s: %v %+v", one.name, err, reply)
			}
		})
	}
	group.Wait()
	t.Logf("%d nodes in %s", n, time.Since(start).Round(time.Millisecond))
	all, _ := w.pages(w.operator("alice"), wire.GetRequest{Kind: wire.Nodes})
	require.Len(t, all.Nodes, n)
	require.Less(t, strings.Count(w.log.String(), "mesh state changed"), n/3)
}

// TestTwoMachinesWithOneNodesCredentialsAreSeen: a copied disk, or a folder of
// credentials that was brought to two machines.
func TestTwoMachinesWithOneNodesCredentialsAreSeen(t *testing.T) {
	w := newWorld(t)
	later := w.later()
	alice := w.operator("alice")
	now := func() wire.Node {
		t.Helper()
		all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Nodes, Nodes: []string{"ws1"}})
		return all.Nodes[0]
	}
	ws1 := w.join("ws1")
	asked := func(host, machine, boot string) bool {
		t.Helper()
		r := ws1.request()
		r.Machine, r.Boot = machine, boot
		var reply wire.SyncReply
		require.NoError(t, ws1.ask(subject.Sync, r, &reply))
		if reply.Profile {
			p := profile()
			p.Host, p.Machine, p.Boot = host, machine, boot
			require.NoError(t, ws1.ask(subject.Profile, p, &wire.ProfileReply{}))
		}
		return reply.Profile
	}
	require.False(t, asked("old", "m", "b"))
	require.True(t, asked("old", "m", "b2"), "it was started anew")
	require.True(t, asked("new", "n", "b3"), "and reinstalled")
	require.Eventually(t, func() bool { return !asked("new", "n", "b3") }, patience, tick)
	require.Equal(t, wire.Ready, now().State)
	later(time.Hour)
	asked("old", "m", "b2") // it is taken out of its box again, long after
	require.Empty(t, now().Trouble)

	// A copied disk, machine-id and all: two boots of it, one after the other.
	asked("old", "m", "b4")
	asked("old", "m", "b2")
	require.Eventually(t, func() bool { return now().State == wire.Double }, patience, tick)
	asked("copy", "m", "b4")
	require.Eventually(t, func() bool {
		return strings.Contains(now().Trouble, "copy (machine m, boot b4) and old (machine m, boot b2)")
	}, patience, tick)
	require.Contains(t, now().Trouble, "stead credentials node NAME")
	w.wantDoubles(alice, 1)

	later(6 * time.Minute) // one of them has others now
	ws1.sync()
	require.Eventually(t, func() bool { return now().Trouble == "" && now().State == wire.Ready }, patience, tick)
}

// wantDoubles waits for that many events of it.
func (w *world) wantDoubles(c *client.Client, want int) {
	w.t.Helper()
	n := 0
	require.Eventually(w.t, func() bool {
		page, err := c.Events(w.within(patience), wire.EventsRequest{Node: "ws1", Last: 100})
		require.NoError(w.t, err)
		n = 0
		for _, e := range page.Events {
			if e.Kind == "double" {
				n++
				require.Contains(w.t, e.Text, "two machines")
			}
		}
		return n == want
	}, patience, tick)
}
