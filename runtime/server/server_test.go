package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/runtime/escalate"
	"stead/runtime/tool"
	"stead/seats"
	"stead/test/lab"
)

func TestVerbsOfAHeldSeatAreServedAndAudited(t *testing.T) {
	w := newWorld(t)
	w.background(w.server().Run)
	alice, bob := w.connect(identity.Operator, "alice"), w.connect(identity.Viewer, "bob")
	w.served(alice)
	reply, err := w.call(alice, subject.Write, seats.Restart, `{"unit":"a.service"}`)
	require.NoError(t, err)
	require.Contains(t, string(reply), `"restart"`)
	_, err = w.call(bob, subject.Read, seats.Status, `{"unit":"a.service"}`)
	require.NoError(t, err)
	_, err = w.call(bob, subject.Write, seats.Restart, `{"unit":"a.service"}`)
	require.Equal(t, fault.Denied, fault.ClassOf(err), "the server stops it")
	_, err = w.call(bob, subject.Read, seats.Journal, `{}`)
	require.Equal(t, fault.Denied, fault.ClassOf(err))
	_, err = w.call(alice, subject.Read, seats.Status, `{"unti":"a.service"}`)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	_, err = w.call(alice, subject.Read, seats.Restart, `{"unit":"a.service"}`)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "a verb of another class is nobody's")

	_, err = w.call(alice, subject.Write, seats.Stop, `{"unit":"`+strings.Repeat("x", tool.MaxArguments)+`"}`)
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.ErrorContains(t, err, "at most 65536")

	err = alice.Follow(t.Context(), subject.ForVerb(subject.Read, "ws1", seats.NodeServiceManager, seats.Units), mesh.FollowOptions{
		Request: func(string) []byte { return []byte(`{}`) }, Take: func(mesh.Chunk) error { return nil },
	})
	require.Equal(t, fault.Unsupported, fault.ClassOf(err), "%v", err)

	var e *wire.Event
	require.True(t, lab.Await(patience, func() bool { e = w.told("units"); return e != nil }))
	require.Equal(t, "unsupported", e.Call.Result, "what no tool was asked is on record too")
	require.True(t, e.Call.Streamed)
	require.True(t, lab.Await(patience, func() bool { e = w.told("stop"); return e != nil }))
	require.Equal(t, "invalid", e.Call.Result, "what is too large is on record too")
	require.True(t, lab.Await(patience, func() bool { e = w.told("restart"); return e != nil }))
	require.Equal(t, "operator alice", e.Who)
	require.Equal(t, "a.service", e.Unit)
	require.Equal(t, wire.CallDone, e.Call.Result)

	// Everybody is asked at once too.
	var from []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = alice.CallAll(ctx, subject.ForVerb(subject.Read, subject.All, seats.NodeServiceManager, seats.Units), []byte(`{}`), func(r mesh.Reply) bool {
		require.NoError(t, r.Err)
		from = append(from, r.From)
		return false
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ws1"}, from)
}

func TestWhoMayNotReadTheJournalIsShownNoneOfIt(t *testing.T) {
	w := newWorld(t)
	w.handlers[seats.Status] = func(ctx context.Context, _ json.RawMessage) (any, error) { return tool.MayReadLogs(ctx), nil }
	w.background(w.server().Run)
	alice, bob := w.connect(identity.Operator, "alice"), w.connect(identity.Viewer, "bob")
	w.served(alice)
	for who, may := range map[*mesh.Conn]string{alice: "true", bob: "false"} {
		reply, err := w.call(who, subject.Read, seats.Status, `{"unit":"a.service"}`)
		require.NoError(t, err)
		require.Equal(t, may, string(reply))
	}
}

func TestNodeIsDiscoverableByOperatorsAndViewers(t *testing.T) {
	w := newWorld(t)
	w.background(w.server().Run)
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	text, err := alice.Call(ctx, "$SRV.INFO.stead-node.ws1", nil)
	require.NoError(t, err)
	var info struct {
		Name, ID, Version, Description string
		Metadata                       map[string]string
		Endpoints                      []struct {
			Name, Subject string
			Metadata      map[string]string
		}
	}
	require.NoError(t, json.Unmarshal(text, &info))
	require.Equal(t, "stead-node", info.Name)
	require.Equal(t, "ws1", info.ID)
	require.Equal(t, "1.2.3", info.Version)
	require.NotEmpty(t, info.Description)
	require.Equal(t, "ws1", info.Metadata["node"])
	require.Len(t, info.Endpoints, 16, "eight verbs, of this node and of all")
	for _, e := range info.Endpoints {
		require.NotEmpty(t, e.Metadata["meaning"], e.Name)
		if e.Subject == "seat.v1.w.ws1.node-service-manager.restart" {
			require.Equal(t, "systemd", e.Metadata["module"])
			require.True(t, json.Valid([]byte(e.Metadata["arguments"])))
			require.Contains(t, e.Metadata["reply"], `"units"`)
		}
	}
	text, err = alice.Call(ctx, "$SRV.STATS.stead-node", nil)
	require.NoError(t, err)
	require.Contains(t, string(text), `"num_requests"`)
	bob := w.connect(identity.Viewer, "bob")
	for _, subject := range []string{"$SRV.PING", "$SRV.INFO.stead-node", "$SRV.STATS.stead-node.ws1"} {
		text, err := bob.Call(ctx, subject, nil)
		require.NoError(t, err, subject)
		require.Contains(t, string(text), `"stead-node"`)
	}
}

func TestItServesWhatItKeptWithoutControllers(t *testing.T) {
	w := newWorld(t)
	end := w.background(w.server().Run)
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	require.NoError(t, end())
	_, err := w.call(alice, subject.Read, seats.Status, `{"unit":"a.service"}`)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "and nothing was done")

	w.with(func() { w.silent, w.events = true, nil })
	w.background(w.server().Run)
	w.served(alice)
	// What was called meanwhile is told when somebody takes it.
	_, err = w.call(alice, subject.Write, seats.Stop, `{"unit":"a.service"}`)
	require.NoError(t, err)
	w.mesh.Stop()
	w.with(func() { w.silent = false })
	w.mesh.Start()
	require.True(t, lab.Await(3*patience, func() bool { return w.told("stop") != nil }))
	w.served(alice)
}

func TestWhatIsNoLongerHeldIsServedByNobody(t *testing.T) {
	w := newWorld(t)
	s := w.server()
	w.background(s.Run)
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	require.Len(t, s.serving.Units(), 1)
	changed := func(f func(t *wire.Tools)) {
		w.with(func() { f(&w.tools); w.tools.Revision++ })
		require.NoError(t, w.connect(identity.Controller, "c2").Publish(subject.ForNode("ws1", subject.Changed), fmt.Appendf(nil, `{"revision":%d}`, w.tools.Revision)))
	}
	changed(func(t *wire.Tools) { t.Modules, t.Held, t.Units = nil, nil, nil })
	require.True(t, lab.Await(patience, func() bool {
		_, err := w.call(alice, subject.Read, seats.Status, `{"unit":"a.service"}`)
		return fault.Is(err, fault.Unavailable)
	}))
	require.Empty(t, s.serving.Units())
	changed(func(t *wire.Tools) { t.Modules = modules.Catalogue() })
	w.served(alice)
}

func TestEndAnswersTheCallsThatRun(t *testing.T) {
	w := newWorld(t)
	began := make(chan struct{})
	w.handlers[seats.Restart] = func(ctx context.Context, _ json.RawMessage) (any, error) {
		close(began)
		select {
		case <-time.After(300 * time.Millisecond):
			return map[string]string{"it": "is done"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	end := w.background(w.server().Run)
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	type answer struct {
		text []byte
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		text, err := w.call(alice, subject.Write, seats.Restart, `{"unit":"a.service"}`)
		got <- answer{text, err}
	}()
	<-began
	require.NoError(t, end())
	a := <-got
	require.NoError(t, a.err)
	require.JSONEq(t, `{"it":"is done"}`, string(a.text))
}

func TestStreamReachesItsCaller(t *testing.T) {
	w := newWorld(t)
	w.streamer = func(_ context.Context, _ json.RawMessage, s tool.Stream) error {
		for n := range 100 {
			if err := s.Send(fmt.Appendf(nil, "%d", n), fmt.Sprint("c", n)); err != nil {
				return err
			}
		}
		return nil
	}
	w.background(w.server().Run)
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := alice.Follow(ctx, subject.ForVerb(subject.Read, "ws1", seats.NodeServiceManager, seats.Journal), mesh.FollowOptions{
		Request: func(string) []byte { return []byte(`{"follow":true}`) },
		Take:    func(c mesh.Chunk) error { got = append(got, string(c.Payload)); return nil },
	})
	require.NoError(t, err)
	require.Len(t, got, 100)
	require.Equal(t, "99", got[99])
}

func TestAModuleOfFewerVerbsServesNoneOfItsSeat(t *testing.T) {
	all := func() []tool.Tool {
		var list []tool.Tool
		for _, is := range modules.Catalogue()[0].Tools {
			list = append(list, tool.Tool{Module: modules.Systemd, Seat: seats.NodeServiceManager, Is: is})
		}
		return list
	}
	held := wire.Tools{Node: "ws1", Modules: modules.Catalogue(), Seats: seats.Seeded(),
		Held: []seats.Holder{{Seat: seats.NodeServiceManager, Node: "ws1", Module: modules.Systemd}}}
	tools, troubles := built{modules.Systemd: all()}.held(&held)
	require.Len(t, tools, 8)
	require.Empty(t, troubles)
	other := all()
	other[0].Is.Class = "r"
	other[5].Is.Class = "w"
	for name, c := range map[string]struct {
		brings built
		change func(t *wire.Tools)
		says   string
	}{
		"a verb is missing":   {built{modules.Systemd: all()[1:]}, nil, "is not served"},
		"another class":       {built{modules.Systemd: other}, nil, "of class"},
		"an unknown module":   {built{}, nil, "does not bring the module"},
		"an unknown seat":     {built{modules.Systemd: all()}, func(t *wire.Tools) { t.Seats = nil }, "node-service-manager"},
		"another node's seat": {built{modules.Systemd: all()}, func(t *wire.Tools) { t.Node = "ws2" }, ""},
		"not assigned":        {built{modules.Systemd: all()}, func(t *wire.Tools) { t.Modules = nil }, ""},
	} {
		one := held
		if c.change != nil {
			c.change(&one)
		}
		tools, troubles := c.brings.held(&one)
		require.Empty(t, tools, name)
		if c.says == "" {
			require.Empty(t, troubles, name)
			continue
		}
		require.Len(t, troubles, 1, name)
		require.ErrorContains(t, troubles[0], c.says, name)
	}
}

func TestCredentialsOfAnotherNodeEndTheRuntime(t *testing.T) {
	w := newWorld(t)
	done := make(chan error, 1)
	s := w.server()
	w.background(func(ctx context.Context) error { err := s.Run(ctx); done <- err; return err })
	alice := w.connect(identity.Operator, "alice")
	w.served(alice)
	for _, role := range []identity.Role{identity.Runtime, identity.Tool} { // renewed: taken up, without a word
		w.mint(role, "ws1")
	}
	w.mesh.Link.Kill()
	w.served(alice)
	w.mint(identity.Tool, "ws2")
	w.mesh.Link.Kill()
	select {
	case err := <-done:
		require.ErrorContains(t, err, `of node "ws2"`)
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
}

func TestCredentialsThatCannotBeUsedAreNamed(t *testing.T) {
	w := newWorld(t)
	try := func() error {
		_, err := New(Options{Credentials: w.dir, Logger: w.server().log})
		return err
	}
	require.NoError(t, try())
	file := filepath.Join(w.dir, "tool.json")
	require.NoError(t, identity.WriteCredentials(file, w.credentials(identity.Tool, "ws2")))
	_, err := New(Options{Credentials: w.dir, Logger: nil})
	require.Equal(t, fault.Internal, fault.ClassOf(err))
	_, err = readPair(w.dir)
	require.ErrorContains(t, err, `tool.json of node "ws2"`)
	require.NoError(t, identity.WriteCredentials(file, w.credentials(identity.Host, "ws1")))
	_, err = readPair(w.dir)
	require.ErrorContains(t, err, `of role "host", and "tool" is wanted`)
	require.NoError(t, os.Remove(file))
	_, err = readPair(w.dir)
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
	require.Contains(t, fault.HintOf(err), "stead credentials node")
}

func TestLateEndIsToldAsWhatItBecame(t *testing.T) {
	began := time.Now()
	e := lateEvent("ws1", escalate.Late{ID: "i", Act: escalate.Restart, Unit: "a.service", For: "operator alice", Began: began,
		Outcome: escalate.Outcome{Result: unit.JobFailed, Took: 2 * time.Second, Note: "as the unit stands"}})
	require.Equal(t, wire.Event{ID: "i.late", At: began.Add(2 * time.Second), Source: "runtime", Node: "ws1", Who: "operator alice", Kind: "restart",
		Unit: "a.service", Scope: "system", Outcome: "failed", Text: "ended after its call: failed in 2.0 s; as the unit stands"}, e)
	require.Equal(t, "user", lateEvent("ws1", escalate.Late{ID: "i", Act: escalate.Restart, Unit: "a.service", Scope: unit.User}).Scope)
	e = lateEvent("ws1", escalate.Late{ID: "i", Act: escalate.Enable, Unit: "a.service", Err: fault.New(fault.NotFound, "enable", "a.service", os.ErrNotExist)})
	require.Equal(t, "not_found", e.Reason)
	require.Contains(t, e.Text, "ended after its call: ")
}

func TestVersionIsOneOfANATSService(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "1.2.3", "1.2.3-4-gabc-dirty": "1.2.3-4-gabc-dirty", "abc123": "0.0.0", "": "0.0.0", "1.2": "0.0.0", "1..3": "0.0.0",
		// Clients would pass over a service with one of these.
		"v1.2.3-beta_1": "0.0.0", "v01.2.3": "0.0.0", "1.2.3-rc.01": "0.0.0", "1.2.3-": "0.0.0", "1.2.3\n": "0.0.0",
		"v1.2.3-rc.1-4-gabc": "1.2.3-rc.1-4-gabc", "1.2.3+b": "1.2.3+b"} {
		require.Equal(t, want, semantic(version), version)
	}
}
