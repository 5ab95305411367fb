package system

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
	"stead/mesh/wire"
)

// TestNobodyDeclaresInTheNameOfAnOperator has a thief call the controllers from
// within their own account, where the server does not say who calls: under an
// operator's name, with what operators signed for other calls, and with a whole
// call of an operator's from before. Whoever is an operator is heard.
func TestNobodyDeclaresInTheNameOfAnOperator(t *testing.T) {
	t.Parallel()
	s := besiege(t, "ws1")
	ws1 := s.hosts[0]
	var heard []*nats.Msg // what alice asked
	ear, err := s.nc.SubscribeSync("mesh.v1.w.*")
	require.NoError(t, err)
	require.NoError(t, s.nc.Flush())
	s.apply(s.alice, sleeping("web", "all: true", 1000))
	s.runs(ws1, "web")
	s.apply(s.alice, sleeping("web", "all: true", 2000))
	for range 2 {
		m, err := ear.NextMsg(patience)
		require.NoError(t, err)
		heard = append(heard, m)
	}
	require.NoError(t, ear.Unsubscribe())
	s.until("web is the newer one", func() bool { return strings.Contains(ws1.picture(), "try-restart web.service") })
	s.runs(ws1, "web")
	before := s.pictures()

	evil, err := json.Marshal(wire.ApplyRequest{Wire: wire.Version, Files: []wire.File{{Name: "a", Text: sleeping("evil", "all: true", 66)}}, Force: true, Yes: true})
	require.NoError(t, err)
	gone, err := json.Marshal(wire.WithdrawRequest{Wire: wire.Version, Names: []string{"web"}, Force: true, Yes: true})
	require.NoError(t, err)
	own := nats.NewMsg("mesh.v1.w.apply")
	own.Data = evil
	thief, err := s.keys.Mint(identity.Request{Role: identity.Controller, Name: "thief", URLs: s.urls})
	require.NoError(t, err)
	require.NoError(t, thief.Sign(own, time.Now()))
	viewer, err := s.keys.Mint(identity.Request{Role: identity.Viewer, Name: "alice", URLs: s.urls})
	require.NoError(t, err)
	seen := nats.NewMsg("mesh.v1.w.apply")
	seen.Data = evil
	require.NoError(t, viewer.Sign(seen, time.Now()))
	// What the server said of alice, which whoever owns it can say again.
	stamp := nats.Header{identity.CallerHeader: heard[0].Header[identity.CallerHeader]}
	with := func(m *nats.Msg) nats.Header {
		h := nats.Header{identity.CallerHeader: stamp[identity.CallerHeader]}
		for key, values := range m.Header {
			h[key] = slices.Clone(values)
		}
		return h
	}
	for name, m := range map[string]*nats.Msg{
		"under her name":                   {Subject: "mesh.v1.w.apply", Header: stamp, Data: evil},
		"under no name":                    {Subject: "mesh.v1.w.apply", Data: evil},
		"a withdrawal under her name":      {Subject: "mesh.v1.w.withdraw", Header: stamp, Data: gone},
		"a node's settings under her name": {Subject: "mesh.v1.w.node", Header: stamp, Data: []byte(`{"wire":1,"node":"ws1","remove":true,"yes":true}`)},
		"an upload under her name":         {Subject: "mesh.v1.w.upload", Header: stamp, Data: []byte(`{}`)},
		"what she signed, of another call": {Subject: "mesh.v1.w.apply", Header: heard[1].Header, Data: evil},
		"what she signed, sent elsewhere":  {Subject: "mesh.v1.w.withdraw", Header: heard[1].Header, Data: heard[1].Data},
		"her call of before":               {Subject: "mesh.v1.w.apply", Header: heard[0].Header, Data: heard[0].Data},
		"her last call again":              {Subject: "mesh.v1.w.apply", Header: heard[1].Header, Data: heard[1].Data},
		"signed by the thief":              {Subject: "mesh.v1.w.apply", Header: with(own), Data: evil},
		"signed by a viewer of her name":   {Subject: "mesh.v1.w.apply", Header: with(seen), Data: evil},
	} {
		answer, err := s.nc.RequestMsgWithContext(s.within(time.Second), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		if err == nil {
			require.Equal(t, "denied", answer.Header.Get(micro.ErrorCodeHeader), "%s: %s", name, answer.Data)
		} else {
			require.ErrorIs(t, err, s.within(0).Err(), name)
		}
	}
	s.deafen()
	s.stopController()
	s.startController()
	s.listen()
	answer, err := s.nc.RequestMsgWithContext(s.within(patience), &nats.Msg{Subject: "mesh.v1.w.apply", Header: heard[0].Header, Data: heard[0].Data})
	require.NoError(t, err)
	require.Equal(t, "unavailable", answer.Header.Get(micro.ErrorCodeHeader), "her call of before, to a controller that remembers nothing: %s", answer.Data)
	s.well()
	require.Equal(t, before, s.pictures())

	s.apply(s.alice, sleeping("web", "all: true", 1000)) // the same as before, and hers
	s.until("web is as she says", func() bool { return strings.Contains(ws1.picture(), "sleep 1000") })
}
