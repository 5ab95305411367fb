package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestToolsAreForTheRuntimeOfTheNodeAlone(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	w.join("ws2")
	for role, name := range map[identity.Role]string{identity.Host: "ws1", identity.Runtime: "ws2", identity.Operator: "alice"} {
		conn := w.connect(role, name)
		for _, topic := range []subject.Topic{subject.Tools, subject.Claim} {
			_, err := conn.Call(w.within(3*time.Second), subject.ForNode("ws1", topic), []byte(`{"wire":1}`))
			require.True(t, fault.Is(err, fault.Denied) || fault.Is(err, fault.Timeout) || fault.Is(err, fault.Unavailable), "%s %s: %v", role, topic, err)
		}
	}
	// The same from inside, where no permission of the server holds: it is not who it
	// says that it is for.
	conn := w.connect(identity.Controller, "thief")
	_, err := conn.Call(w.within(3*time.Second), subject.ForNode("ws1", subject.Tools), []byte(`{"wire":1}`))
	require.Error(t, err)
}

func TestARuntimeIsHintedAtWhatConcernsIt(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	w.join("ws2")
	run := w.agent("ws1")
	run.sync()
	hints := make(chan wire.Changed, 100)
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	conn := w.connect(identity.Tool, "ws1")
	group.Go(func() {
		_ = conn.Listen(ctx, subject.ForNode("ws1", subject.Changed), []identity.Account{identity.CTL}, func(h mesh.Hint) {
			var c wire.Changed
			if json.Unmarshal(h.Payload, &c) == nil {
				hints <- c
			}
		})
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	hinted := func(what string) {
		t.Helper()
		select {
		case c := <-hints:
			require.NotNil(t, run.sync(c.Revision).Signed, what)
			require.GreaterOrEqual(t, run.held.Revision, c.Revision, what)
		case <-time.After(patience):
			t.Fatal(what)
		}
		for len(hints) > 0 {
			<-hints
		}
	}
	require.Eventually(t, func() bool { // it listens from some moment on
		w.apply(alice, service("web", "nodes: [ws1]", fmt.Sprint(time.Now().UnixNano())))
		<-time.After(50 * time.Millisecond)
		return len(hints) > 0
	}, patience, time.Millisecond)
	hinted("a declared unit")
	require.Len(t, run.held.Units, 1)
	require.Equal(t, []string{""}, run.claim(claimOf("ws1", "systemd", verbs())))
	hinted("a claim")
	ws1.tells(can())
	hinted("a module that is no longer assigned")
	require.Empty(t, run.modules())
	w.apply(alice, service("web", "nodes: [ws2]", "1"))
	hinted("a declaration that moves away")
	<-time.After(200 * time.Millisecond)
	require.Empty(t, hints)
	w.apply(alice, service("other", "nodes: [ws2]", "1"))
	require.Equal(t, []string{""}, w.agent("ws2").claim(claimOf("ws2", "systemd", verbs())))
	<-time.After(200 * time.Millisecond)
	require.Empty(t, hints, "another node's")
}

// TestARuntimeIsNotToldOfAnEarlierRevision: of a store that was rolled back it
// hears nothing; the host proves it, and an epoch that follows goes on.
func TestARuntimeIsNotToldOfAnEarlierRevision(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	ws1, run := w.join("ws1"), w.agent("ws1")
	run.sync()
	w.end()
	aside := filepath.Join(t.TempDir(), "mesh")
	put(t, w.dir, aside)
	w.start()
	w.apply(alice, service("web", "all: true", "1"))
	ws1.sync()
	run.sync()
	require.Len(t, run.held.Units, 1)
	w.end()
	put(t, aside, w.dir)
	w.start()
	refused := func(why string, class fault.Class) {
		t.Helper()
		payload, err := json.Marshal(run.request())
		require.NoError(t, err)
		require.Eventually(t, func() bool { // it may still be connecting anew
			_, err = run.conn.Call(w.within(patience), subject.ForNode("ws1", subject.Tools), payload)
			return err != nil && strings.Contains(err.Error(), why)
		}, patience, tick, "%v", &err)
		require.Equal(t, class, fault.ClassOf(err), "%v", err)
	}
	refused(fmt.Sprintf("and revision %d is held", run.held.Revision), fault.Unavailable)
	ask := ws1.request()
	ask.Proof = ws1.sent
	require.Error(t, ws1.ask(subject.Sync, ask, &wire.SyncReply{}))
	refused("rolled back", fault.Failed)

	w.end()
	w.start(func(o *controller.Options) { o.BeginEpoch = true })
	old := run.held.Epoch
	require.NotNil(t, run.sync().Signed)
	require.Contains(t, run.held.Follows, old)
	require.Equal(t, []string{"systemd"}, run.modules())
}

func TestEventsOfARuntimeNameWhoCalled(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	run := w.agent("ws1")
	var reply wire.EventReply
	require.NoError(t, run.ask(subject.Event, wire.EventBatch{Wire: wire.Version, Events: []wire.Event{{
		ID: "1", At: time.Now(), Source: "controller", Node: "ws2", Who: "operator bob", Kind: "restarted", Unit: "web.service", Text: "restarted",
	}}}, &reply))
	page, err := alice.Events(w.within(patience), wire.EventsRequest{Unit: "web.service", Last: 10})
	require.NoError(t, err)
	require.Len(t, page.Events, 1)
	e := page.Events[0]
	require.Equal(t, []string{"runtime", "ws1", "operator bob", "restarted"}, []string{e.Source, e.Node, e.Who, e.Kind})

	// A runtime that is heard of says nothing of the host.
	_, err = alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws3", Add: true})
	require.NoError(t, err)
	require.NoError(t, w.agent("ws3").ask(subject.Tools, wire.ToolsRequest{Wire: wire.Version, Mesh: w.keys.ID()}, &wire.ToolsReply{}))
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Nodes, Nodes: []string{"ws3"}})
	require.Equal(t, wire.Unknown, all.Nodes[0].State)
}
