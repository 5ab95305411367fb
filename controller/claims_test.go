package controller_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/report"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// TestPartsAreTheirSendersAlone has bob and others send parts of what alice uploads.
func TestPartsAreTheirSendersAlone(t *testing.T) {
	w := under(t, open())
	w.join("ws1")
	alice := w.connect(identity.Operator, "alice")
	call := func(c *mesh.Conn, to subject.Operation, request, reply any) error {
		payload, err := json.Marshal(request)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		answer, err := c.Call(ctx, subject.ForOperation(subject.Write, to), payload)
		if err == nil {
			require.NoError(t, json.Unmarshal(answer, reply))
		}
		return err
	}
	var up wire.UploadReply
	require.NoError(t, call(alice, wire.Upload, struct{}{}, &up))
	whole, err := json.Marshal(wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a", Text: service("web", "all: true", "1")}}})
	require.NoError(t, err)
	half := len(whole) / 2
	first := wire.PartRequest{Upload: up.Upload, Operation: wire.Apply, Part: 1, Of: 2, Data: whole[:half]}
	second := wire.PartRequest{Upload: up.Upload, Operation: wire.Apply, Part: 2, Of: 2, Data: whole[half:]}
	var none struct{}
	require.NoError(t, call(alice, up.Operation, first, &none))
	evil := second
	evil.Data = []byte(strings.Repeat("x", half))
	for name, c := range map[string]*mesh.Conn{"bob": w.connect(identity.Operator, "bob"), "another alice": w.connect(identity.Operator, "alice")} {
		require.True(t, fault.Is(call(c, up.Operation, evil, &none), fault.Unavailable), name)
		require.True(t, fault.Is(call(c, up.Operation, first, &none), fault.Unavailable), name)
	}
	for role, c := range map[identity.Role]*mesh.Conn{identity.Viewer: w.connect(identity.Viewer, "alice"), identity.Host: w.connect(identity.Host, "ws1")} {
		require.Error(t, call(c, up.Operation, evil, &none), "%s, where the server lets it through", role)
	}
	for _, to := range []subject.Operation{wire.Get, wire.Upload, up.Operation, "part-x"} {
		other := second
		other.Operation = to
		require.True(t, fault.Is(call(alice, up.Operation, other, &none), fault.Invalid), "parts of %s", to)
	}
	var reply wire.ChangeReply
	require.NoError(t, call(alice, up.Operation, second, &reply), "it goes on as if nobody had been there")
	require.Len(t, reply.Changes, 1)
	require.True(t, fault.Is(call(alice, up.Operation, second, &reply), fault.Unavailable), "and is done once")
}

// TestWhatANodeClaimsOfItselfChangesNothing has a node ask for its index with
// everything that it could say to get another's, or to stop the mesh.
func TestWhatANodeClaimsOfItselfChangesNothing(t *testing.T) {
	w := newWorld(t)
	alice, ws1, ws2 := w.operator("alice"), w.join("ws1"), w.join("ws2")
	now := w.apply(alice, service("web", "all: true", "1")+"---\n"+service("others", "nodes: [ws2]", "1"))
	ws1.sync()
	ws2.sync()
	of := func(change func(r *wire.SyncRequest)) (wire.SyncReply, error) {
		r := ws1.request()
		change(&r)
		var reply wire.SyncReply
		err := ws1.ask(subject.Sync, r, &reply)
		return reply, err
	}
	for name, change := range map[string]func(r *wire.SyncRequest){
		"another mesh":     func(r *wire.SyncRequest) { r.Mesh = "elsewhere" },
		"nothing held":     func(r *wire.SyncRequest) { r.Epoch, r.Revision, r.Digest = "", 0, "" },
		"another's digest": func(r *wire.SyncRequest) { r.Digest = ws2.held.Digest() },
		"another's proof":  func(r *wire.SyncRequest) { r.Digest, r.Proof = "", ws2.sent },
		"another's withheld": func(r *wire.SyncRequest) {
			r.Kept, r.KeptUIDs, r.Digest = []string{"others"}, []string{ws2.held.Entries[0].UID}, ""
		},
	} {
		reply, err := of(change)
		require.NoError(t, err, name)
		require.NotNil(t, reply.Signed, name)
		ws1.take(reply.Signed)
		require.Equal(t, "ws1", ws1.held.Node, name)
		require.Equal(t, []string{"web"}, ws1.names(), name)
		require.Empty(t, ws1.held.Withdrawn, name)
	}
	for name, change := range map[string]func(r *wire.SyncRequest){
		"a revision to come":       func(r *wire.SyncRequest) { r.Revision = now.Revision + 1000 },
		"an epoch that is unknown": func(r *wire.SyncRequest) { r.Epoch = "x" },
	} {
		reply, err := of(change)
		require.NoError(t, err, name)
		require.True(t, reply.Prove, name)
		require.Nil(t, reply.Signed, name)
	}
	for what, proof := range map[string]*wire.Signed{
		"of another node": ws2.sent, "of nothing": {}, "that is changed": {Index: append([]byte(" "), ws1.sent.Index...), Signature: ws1.sent.Signature},
	} {
		_, err := of(func(r *wire.SyncRequest) { r.Epoch, r.Proof = "x", proof })
		require.True(t, fault.Is(err, fault.Refused), "a proof %s: %v", what, err)
	}
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Declarations})
	require.Empty(t, all.Trouble, "no claim stops the mesh")
	w.apply(alice, service("web", "all: true", "2"))
}

// TestAViewerReadsNoContentByAnyOperation looks for a secret in everything that a
// viewer is answered. An operator finds it.
func TestAViewerReadsNoContentByAnyOperation(t *testing.T) {
	const secret = "s3cret"
	w := newWorld(t)
	alice, ws1 := w.operator("alice"), w.join("ws1")
	w.apply(alice, service("web", "all: true", "1 "+secret))
	ws1.sync()
	b := wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: 1, Source: wire.Source{Mesh: ws1.mesh, Epoch: ws1.held.Epoch, Revision: ws1.held.Revision}, Reports: []*report.Report{{
		Name: "web", UID: ws1.held.Entries[0].UID, Generation: 1, Outcome: report.Failed, Lines: []string{"the password is " + secret},
		Warnings: []string{"/etc/systemd/system/web.service:3: Invalid syntax, ignoring: \"PASSWORD is " + secret, "and another"}}}}
	require.NoError(t, ws1.ask(subject.Report, b, &wire.ReportReply{}))
	require.NoError(t, ws1.ask(subject.Event, wire.EventBatch{Wire: wire.Version, Events: []wire.Event{{ID: "1", Kind: "started", Declaration: "web"}}}, &wire.EventReply{}))
	conns := map[identity.Role]*mesh.Conn{identity.Viewer: w.connect(identity.Viewer, "vera"), identity.Operator: w.connect(identity.Operator, "bob")}
	read := func(role identity.Role, op subject.Operation, text string) string {
		answer, err := conns[role].Call(w.within(patience), subject.ForOperation(subject.Read, op), []byte(text))
		require.NoError(t, err, "%s %s", op, text)
		return string(answer)
	}
	require.Eventually(t, func() bool {
		return strings.Contains(read(identity.Operator, wire.Get, `{"wire":1,"kind":"reports"}`), secret)
	}, patience, tick)
	tries, found := 0, 0
	for op, texts := range map[subject.Operation][]string{
		wire.Get: {
			`{"wire":1,"kind":"declarations","content":true}`, `{"wire":1,"kind":"declarations","content":true,"names":["web"]}`,
			`{"wire":1,"kind":"declarations","content":true,"nodes":["ws1"]}`, `{"wire":1,"kind":"declarations","Content":true,"CONTENT":true,"content":true}`,
			`{"wire":1,"kind":"declarations","content":true,"after":"a"}`, `{"wire":1,"kind":"nodes","content":true}`,
			`{"wire":1,"kind":"reports","content":true}`, `{"wire":1,"kind":"reports","content":true,"names":["web"],"nodes":["ws1"]}`, `{"wire":1,"kind":"reports","content":true,"after":"ws0/"}`,
		},
		wire.Progress: {`{"wire":1,"names":["web"]}`, `{"wire":1,"names":["web","web"],"content":true}`},
		wire.Events:   {`{"wire":1,"last":1000}`, `{"wire":1,"last":1000,"declaration":"web","content":true}`, `{"wire":1,"since":"2000-01-01T00:00:00Z"}`},
	} {
		for _, text := range texts {
			tries++
			require.NotContains(t, read(identity.Viewer, op, text), secret, "%s %s", op, text)
			if strings.Contains(read(identity.Operator, op, text), secret) {
				found++
			}
		}
	}
	require.Contains(t, read(identity.Viewer, wire.Get, `{"wire":1,"kind":"reports"}`), "operators read: 2")
	t.Logf("a viewer asks in %d ways and reads nothing; an operator reads it in %d of them", tries, found)
	require.Equal(t, 10, found)
}
