package mesh_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// raw is the NATS connection below c.
func raw(t *testing.T, c *mesh.Conn) *nats.Conn {
	t.Helper()
	s, err := c.Session(t.Context())
	require.NoError(t, err)
	return s.NATS()
}

// overheard is the control subject of the next stream of ws1, as the node sees it.
func overheard(t *testing.T, tool *mesh.Conn) (next func() string) {
	t.Helper()
	sub, err := raw(t, tool).SubscribeSync("seat.v1.r.ws1.*.*")
	require.NoError(t, err)
	require.NoError(t, raw(t, tool).Flush())
	return func() string {
		for {
			m, err := sub.NextMsg(patience)
			require.NoError(t, err)
			if m.Subject != journal1 {
				return m.Subject
			}
		}
	}
}

// stalled is a stream of ws1 whose caller grants one chunk and is then silent
// but for signs of life, as long as the test lets it.
func stalled(t *testing.T, m *meshtest.Mesh, tool, caller *mesh.Conn) (src *source, control string, s *mesh.Service) {
	t.Helper()
	src = newSource()
	src.pad = 1000
	s, _ = streams(t, tool, mesh.Endpoint{Stream: src.stream})
	next := overheard(t, tool)
	block := make(chan struct{})
	dst := &sink{t: t}
	o := dst.options()
	o.Window = 1
	o.Take = func(mesh.Chunk) error { <-block; return errEnough }
	end := follows(t, caller, o)
	t.Cleanup(func() { close(block); _ = end() })
	control = next()
	require.Eventually(t, func() bool { return src.last.Load() == 1 }, patience, time.Millisecond)
	return src, control, s
}

func TestOnlyTheCallerOfAStreamGrantsAndCancels(t *testing.T) {
	m, tool, olga := node(t)
	src, control, s := stalled(t, m, tool, olga)
	grant := []byte(`{"grant":1000000}`)
	cancel := []byte(`{"grant":1000000,"cancel":true}`)
	forged := func(who string) *nats.Msg {
		msg := nats.NewMsg(control)
		msg.Header.Set(identity.CallerHeader, who)
		msg.Data = cancel
		return msg
	}
	attackers := map[string]*mesh.Conn{
		"another operator":              m.Connect(identity.Operator, "otto"),
		"another key of the same name":  m.Connect(identity.Operator, "olga"),
		"a viewer":                      m.Connect(identity.Viewer, "vera"),
		"a viewer of the caller's name": m.Connect(identity.Viewer, "olga"),
		"a controller":                  m.Connect(identity.Controller, "c1"),
		"a host":                        m.Connect(identity.Host, "ws1"),
		"another node's runtime":        m.Connect(identity.Tool, "ws2"),
		"the node's own runtime":        m.Connect(identity.Tool, "ws1"),
	}
	for _, c := range attackers {
		nc := raw(t, c)
		for _, data := range [][]byte{grant, cancel, nil, []byte("x"), []byte(`{"grant":-1}`)} {
			require.NoError(t, nc.Publish(control, data))
		}
		require.NoError(t, nc.PublishMsg(forged(`{"acc":"OPS","name_tag":"olga"}`)))
		require.NoError(t, nc.PublishRequest(control, journal1, cancel))
		require.NoError(t, nc.Flush())
	}
	time.Sleep(1500 * time.Millisecond) // longer than a caller may be silent for
	require.EqualValues(t, 1, src.last.Load(), "nobody else grants")
	require.EqualValues(t, 1, src.runs.Load(), "nobody else cancels")
	require.GreaterOrEqual(t, s.Statistics()["journal"].Dropped, 4*6, "those whom the server lets through are heard and dropped")

	// What the caller itself says wrong changes nothing either.
	own := raw(t, olga)
	for _, data := range []string{"", "x", `{"grant":-5}`, `{"grant":99999999999999999999}`, `{"grant":"1"}`, fmt.Sprintf(`{"grant":5,"x":%q}`, make([]byte, 1000))} {
		require.NoError(t, own.Publish(control, []byte(data)))
	}
	require.NoError(t, own.Flush())
	time.Sleep(200 * time.Millisecond)
	require.EqualValues(t, 1, src.last.Load())
	// It may grant as much as it likes, and is not sent more than the node's own
	// bound ahead.
	require.NoError(t, own.Publish(control, []byte(`{"grant":1000000000000}`)))
	require.Eventually(t, func() bool { return src.last.Load() > 5000 }, patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	require.Less(t, src.last.Load(), int64(8<<20/1500+3))
	require.NoError(t, own.Publish(control, cancel))
	require.Equal(t, fault.Canceled, fault.ClassOf(<-src.ended))
}

func TestStreamsWithOneTokenAreApart(t *testing.T) {
	m, tool, olga := node(t)
	src, control, s := stalled(t, m, tool, olga)
	otto := raw(t, m.Connect(identity.Operator, "otto"))
	call := func(token string) *nats.Msg {
		inbox := otto.NewInbox()
		sub, err := otto.SubscribeSync(inbox)
		require.NoError(t, err)
		msg := &nats.Msg{Subject: journal1, Reply: inbox, Data: []byte("0"), Header: nats.Header{"Stead-Stream": {token}, "Stead-Grant": {"2000"}}}
		require.NoError(t, otto.PublishMsg(msg))
		reply, err := sub.NextMsg(patience)
		require.NoError(t, err)
		return reply
	}
	token := control[len("seat.v1.r.ws1.node-service-manager.ctl-"):]
	require.Equal(t, "beat", call(token).Header.Get("Stead-Kind"), "it is taken, and is otto's own")
	require.Eventually(t, func() bool { return s.Statistics()["journal"].Streams == 2 }, patience, time.Millisecond)
	require.NoError(t, otto.Publish(control, []byte(`{"grant":1000000,"cancel":true}`)))
	require.Eventually(t, func() bool { return s.Statistics()["journal"].Streams == 1 }, patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	require.EqualValues(t, 2, src.runs.Load(), "olga's goes on")
	for _, bad := range []string{"x", "stop", "aaaaaaaaaaaaaaaa.>", "*", "aaaaaaaaaaaaaaa*", token + ".stop"} {
		require.Equal(t, "invalid", call(bad).Header.Get("Nats-Service-Error-Code"), bad)
	}
}

// liar serves the journal of ws1 without any of the rules.
func liar(t *testing.T, tool *mesh.Conn, answer func(say func(kind string, seq int, cursor string, size int))) *atomic.Int64 {
	t.Helper()
	asked := &atomic.Int64{}
	_, err := raw(t, tool).Subscribe(journal1, func(m *nats.Msg) {
		asked.Add(1)
		answer(func(kind string, seq int, cursor string, size int) {
			_ = m.RespondMsg(&nats.Msg{Data: make([]byte, size), Header: nats.Header{
				"Stead-Kind": {kind}, "Stead-Seq": {strconv.Itoa(seq)}, "Stead-Cursor": {cursor},
			}})
		})
	})
	require.NoError(t, err)
	require.NoError(t, raw(t, tool).Flush())
	return asked
}

func TestNodeThatBreaksTheRulesIsNotFollowed(t *testing.T) {
	type say = func(kind string, seq int, cursor string, size int)
	for name, c := range map[string]struct {
		answer func(say)
		class  fault.Class
		text   string
	}{
		"that floods": {func(s say) {
			for i := range 3000 {
				s("chunk", i, "c", 1000)
			}
		}, fault.Failed, "breaks the rules of a stream"},
		"that gives no cursor":   {func(s say) { s("chunk", 0, "", 10) }, fault.Failed, "breaks the rules"},
		"that gives a bad one":   {func(s say) { s("chunk", 0, "a b", 10) }, fault.Failed, "breaks the rules"},
		"that speaks otherwise":  {func(s say) { s("", 0, "", 10) }, fault.Unsupported, "no stream"},
		"that does not count":    {func(s say) { s("chunk", -1, "c", 10) }, fault.Unsupported, "no stream"},
		"that ends in a new way": {func(s say) { s("beat", 0, "", 0); s("dawn", 0, "", 0) }, fault.Unsupported, `of the kind "dawn"`},
		"that begins too late":   {func(s say) { s("chunk", 7, "c", 10) }, fault.Unavailable, "7 chunks were lost"},
	} {
		t.Run(name, func(t *testing.T) {
			_, tool, operator := node(t)
			liar(t, tool, c.answer)
			err := operator.Follow(within(t, 10*time.Second), journal1, mesh.FollowOptions{
				Window: 64 << 10, Request: func(string) []byte { return nil },
				Take: func(mesh.Chunk) error { time.Sleep(10 * time.Millisecond); return nil },
			})
			require.Equal(t, c.class, fault.ClassOf(err), "%v", err)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestNodeThatAlwaysWantsToBeAskedAgainIsAskedSlowly(t *testing.T) {
	_, tool, operator := node(t)
	asked := liar(t, tool, func(s func(string, int, string, int)) { s("again", 0, "", 0) })
	err := operator.Follow(within(t, 2*time.Second), journal1, (&sink{t: t}).options())
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Less(t, asked.Load(), int64(40))
	require.Greater(t, asked.Load(), int64(2))
}

func TestCallerWithoutAReplySubjectIsNotStreamedTo(t *testing.T) {
	_, tool, operator := node(t)
	s, _ := streams(t, tool, mesh.Endpoint{Stream: func(ctx context.Context, _ mesh.Request, st *mesh.Stream) error {
		return st.Send([]byte("x"), "1")
	}})
	nc := raw(t, operator)
	require.NoError(t, nc.PublishMsg(&nats.Msg{Subject: journal1, Header: nats.Header{"Stead-Stream": {"aaaaaaaaaaaaaaaaaaaa"}, "Stead-Grant": {"1000"}}}))
	require.NoError(t, nc.Flush())
	require.Eventually(t, func() bool { return s.Statistics()["journal"].Calls == 1 }, patience, time.Millisecond)
	require.Zero(t, s.Statistics()["journal"].Streams)
}
