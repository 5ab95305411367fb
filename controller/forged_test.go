package controller_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/host/fault"
	"stead/host/report"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// under is a world whose NATS server has another table of permissions.
func under(t *testing.T, table identity.Table) *world {
	t.Helper()
	m := meshtest.New(t)
	m.Update(table)
	w := &world{t: t, dir: filepath.Dir(m.Store), keys: m.Keys, urls: []string{"tls://" + m.Link.Address()}, log: &logs{}}
	w.start(func(o *controller.Options) { o.Servers, o.Listen = w.urls, "" })
	return w
}

// open is the table in which everybody who asks may ask everything.
func open() identity.Table {
	table := identity.Permissions()
	everything := []string{"node.v1.*.*", "mesh.v1.r.*", "mesh.v1.w.*"}
	askers := []identity.Account{identity.HOST, identity.OPS, identity.VIEW}
	for i, r := range table.Roles {
		if slices.Contains(askers, r.Account) {
			table.Roles[i].Publish, table.Roles[i].Deny = everything, nil
		}
	}
	for i, s := range table.Services {
		if s.From == identity.CTL {
			table.Services[i].To = askers
		}
	}
	return table
}

// call is a question that somebody asks, and the one who may.
type call struct {
	role    identity.Role
	name    string
	subject string
	request any
	by      identity.Role // who may
	as      string
	dropped bool // it is not even answered
}

func calls() []call {
	host, runtime, viewer, operator := identity.Host, identity.Runtime, identity.Viewer, identity.Operator
	sync, body := wire.SyncRequest{Wire: wire.Version}, wire.BodyRequest{Wire: wire.Version}
	batch := wire.ReportBatch{Wire: wire.Version, Run: "r", Seq: 1}
	event := wire.EventBatch{Wire: wire.Version, Events: []wire.Event{{ID: "e1", Kind: "started"}}}
	get := wire.GetRequest{Wire: wire.Version, Kind: wire.Declarations, Content: true}
	apply := wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a", Text: service("evil", "all: true", "1")}}, Yes: true}
	withdraw := wire.WithdrawRequest{Wire: wire.Version, Names: []string{"web"}, Yes: true, Force: true, DryRun: true}
	settings := wire.SettingsRequest{Wire: wire.Version, Node: "ws1", Labels: map[string]string{"role": "web"}}
	var all []call
	for topic, request := range map[subject.Topic]any{subject.Sync: sync, subject.Body: body, subject.Report: batch, subject.Profile: profile(), subject.Event: event} {
		of1, of2 := subject.ForNode("ws1", topic), subject.ForNode("ws2", topic)
		all = append(all,
			call{host, "ws1", of2, request, host, "ws2", false},
			call{runtime, "ws1", of2, request, host, "ws2", false},
			call{operator, "alice", of1, request, host, "ws1", true},
			call{viewer, "vera", of1, request, host, "ws1", true},
		)
		if topic != subject.Event { // which is the runtime's too
			all = append(all, call{runtime, "ws1", of1, request, host, "ws1", false})
		}
	}
	for operation, request := range map[subject.Operation]any{wire.Apply: apply, wire.Withdraw: withdraw, wire.Settings: settings, wire.Upload: struct{}{}} {
		of := subject.ForOperation(subject.Write, operation)
		all = append(all, call{viewer, "vera", of, request, operator, "alice", true}, call{host, "ws1", of, request, operator, "alice", true},
			call{runtime, "ws1", of, request, operator, "alice", true})
	}
	of := subject.ForOperation(subject.Read, wire.Get)
	return append(all, call{host, "ws1", of, get, operator, "alice", true}, call{runtime, "ws1", of, get, operator, "alice", true})
}

// TestWhoMayNotIsRefusedTwice has everybody ask what is not theirs. The server
// does not let it through; and where it does, since the table is opened, the
// controller does not answer it, or says no. Whoever may is answered.
func TestWhoMayNotIsRefusedTwice(t *testing.T) {
	strict, opened := newWorld(t), under(t, open())
	for _, w := range []*world{strict, opened} {
		w.join("ws1")
		w.join("ws2")
		w.apply(w.operator("alice"), service("web", "all: true", "1"))
	}
	conns := map[string]*mesh.Conn{}
	ask := func(w *world, role identity.Role, name string, c call) error {
		key := fmt.Sprint(w == strict, role, name)
		if conns[key] == nil {
			conns[key] = w.connect(role, name)
		}
		payload, err := json.Marshal(c.request)
		require.NoError(t, err)
		wait := patience
		if c.dropped && w == opened && role != c.by {
			wait = 100 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		_, err = conns[key].Call(ctx, c.subject, payload)
		return err
	}
	for _, c := range calls() {
		is := fmt.Sprintf("%s %s asks %s", c.role, c.name, c.subject)
		err := ask(strict, c.role, c.name, c)
		require.True(t, fault.Is(err, fault.Denied), "%s: %v", is, err)
		require.ErrorContains(t, err, "ermissions", "%s: the server refuses it", is)
		err = ask(opened, c.role, c.name, c)
		if c.dropped {
			require.True(t, fault.Is(err, fault.Timeout), "%s: %v", is, err)
		} else {
			require.True(t, fault.Is(err, fault.Denied), "%s: %v", is, err)
			require.ErrorContains(t, err, "may not", "%s: the controller refuses it", is)
		}
		for _, w := range []*world{strict, opened} {
			require.NoError(t, ask(w, c.by, c.as, c), "%s, which %s %s may", is, c.by, c.as)
		}
	}
	t.Logf("%d calls, each refused by the server and by the controller, and answered to whoever may", len(calls()))
	require.GreaterOrEqual(t, len(calls()), 38)
	all, _ := opened.pages(opened.operator("eve"), wire.GetRequest{Kind: wire.Declarations})
	require.Equal(t, "operator alice", all.Declarations[0].By)
}

// TestABodyIsOfTheSetOfNow asks for bodies by their digests, which are no secret: of
// what is another node's, was moved away, and was withdrawn.
func TestABodyIsOfTheSetOfNow(t *testing.T) {
	w := newWorld(t)
	alice, ws1, ws2 := w.operator("alice"), w.join("ws1"), w.join("ws2")
	w.apply(alice, service("own", "nodes: [ws1]", "1")+"---\n"+service("others", "nodes: [ws2]", "1")+"---\n"+service("moved", "all: true", "1")+"---\n"+service("gone", "all: true", "1"))
	w.apply(alice, service("moved", "nodes: [ws2]", "1"))
	_, err := alice.Withdraw(w.within(patience), wire.WithdrawRequest{Names: []string{"gone"}, Force: true})
	require.NoError(t, err)
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	digests := map[string]string{"gone": canonicalDigest(t, service("gone", "all: true", "1"))}
	for _, d := range all.Declarations {
		digests[d.Name] = d.Digest
	}
	fetch := func(n *node, names ...string) wire.BodyReply {
		r := wire.BodyRequest{Wire: wire.Version}
		for _, name := range names {
			r.Digests = append(r.Digests, digests[name])
		}
		var reply wire.BodyReply
		require.NoError(t, n.ask(subject.Body, r, &reply))
		return reply
	}
	reply := fetch(ws1, "others", "own", "moved", "gone")
	require.Len(t, reply.Bodies, 1)
	require.Contains(t, string(reply.Bodies[0]), `"own"`)
	require.Equal(t, []string{digests["others"], digests["moved"], digests["gone"]}, reply.Missing)
	reply = fetch(ws2, "others", "own", "moved", "gone")
	require.Len(t, reply.Bodies, 2, "they are there, for whoever has them")
	require.Equal(t, []string{digests["own"], digests["gone"]}, reply.Missing)
}

func canonicalDigest(t *testing.T, text string) string {
	t.Helper()
	sum := sha256.Sum256(canonicalOf(t, text))
	return hex.EncodeToString(sum[:])
}

// TestANodeReportsForItselfAlone has ws1 report what is declared for ws2, in the
// run and with the numbers of ws2's own batches.
func TestANodeReportsForItselfAlone(t *testing.T) {
	w := newWorld(t)
	alice, ws1, ws2 := w.operator("alice"), w.join("ws1"), w.join("ws2")
	w.apply(alice, service("others", "nodes: [ws2]", "1"))
	ws1.sync()
	ws2.sync()
	ws1.held.Entries = ws2.held.Entries // uid and generation as they are
	require.False(t, ws1.report(1, report.Failed).Full)
	outcomes := func() (map[report.Outcome]int, int) {
		p, err := alice.Progress(w.within(patience), wire.ProgressRequest{Names: []string{"others"}})
		require.NoError(t, err)
		return p.Names[0].Outcomes, len(p.Names[0].Notable)
	}
	stored := func() map[string]report.Outcome {
		all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Reports})
		of := map[string]report.Outcome{}
		for _, r := range all.Reports {
			of[r.Node+" "+r.Name] = r.Outcome
		}
		return of
	}
	require.Eventually(t, func() bool { return stored()["ws1 others"] == report.Failed }, patience, tick)
	got, notable := outcomes()
	require.Empty(t, got, "another node's word counts for nothing")
	require.Zero(t, notable)
	require.False(t, ws2.report(1, report.Converged).Full, "batch 1 of run r1 is its own")
	require.Eventually(t, func() bool { o, _ := outcomes(); return o[report.Converged] == 1 }, patience, tick)
	require.Equal(t, map[string]report.Outcome{"ws1 others": report.Failed, "ws2 others": report.Converged}, stored())
}

// TestANodeTellsEventsOfItselfAlone has ws1 tell events under the ids of others,
// and in the name of others.
func TestANodeTellsEventsOfItselfAlone(t *testing.T) {
	w := newWorld(t)
	alice, ws1, ws2 := w.operator("alice"), w.join("ws1"), w.join("ws2")
	runtime := &node{w: w, name: "ws1", conn: w.connect(identity.Runtime, "ws1"), mesh: w.keys.ID()}
	now := w.apply(alice, service("web", "all: true", "1"))
	next := fmt.Sprintf("%s.%d", now.Epoch, now.Revision+1) // of the controller's event to come
	tell := func(n *node, events ...wire.Event) {
		require.NoError(t, n.ask(subject.Event, wire.EventBatch{Wire: wire.Version, Events: events}, &wire.EventReply{}))
	}
	lie := wire.Event{ID: "1", Kind: "apply", Node: "ws2", Source: "controller", Who: "operator alice", Text: "a lie"}
	tell(ws1, lie, wire.Event{ID: next, Kind: "apply", Source: "controller"}, wire.Event{ID: "/" + next, Kind: "apply"}, wire.Event{ID: "ws2/host/2", Kind: "started"})
	tell(runtime, wire.Event{ID: "1", Kind: "stopped"}, wire.Event{ID: "2", Kind: "stopped"})
	tell(ws2, wire.Event{ID: "1", Kind: "started"}, wire.Event{ID: "2", Kind: "started"})
	w.apply(alice, service("web", "all: true", "2"))
	var all []wire.Event
	count := func(is func(wire.Event) bool) (n int) {
		for _, e := range all {
			if is(e) {
				n++
			}
		}
		return n
	}
	require.Eventually(t, func() bool {
		page, err := alice.Events(w.within(patience), wire.EventsRequest{Last: 100})
		require.NoError(t, err)
		all = page.Events
		return count(func(e wire.Event) bool {
			return e.Revision == now.Revision+1 && e.Source == "controller" && e.Who == "operator alice"
		}) == 1
	}, patience, tick, "the controller's own event is there")
	require.Equal(t, 2, count(func(e wire.Event) bool { return e.Node == "ws2" && e.Kind == "started" }), "and those of ws2")
	require.Equal(t, 4, count(func(e wire.Event) bool { return e.Node == "ws1" && e.Source == "host" }))
	require.Equal(t, 2, count(func(e wire.Event) bool { return e.Node == "ws1" && e.Source == "runtime" }))
	require.Zero(t, count(func(e wire.Event) bool { return e.Source == "host" && e.Who != "" }), "a host speaks for nobody")
	require.Zero(t, count(func(e wire.Event) bool { return e.Text == "a lie" && e.Node != "ws1" }))
}
