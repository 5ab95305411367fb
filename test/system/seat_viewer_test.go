package system

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/seats"
)

// bareViewer is a viewer with a NATS client that knows nothing of stead.
type bareViewer struct {
	*testing.T
	nc   *nats.Conn
	errs chan error // what the server says of this connection
}

func newBareViewer(t *testing.T, file string) bareViewer {
	t.Helper()
	who, err := identity.ReadCredentials(file)
	require.NoError(t, err)
	tls, err := who.TLS()
	require.NoError(t, err)
	v := bareViewer{T: t, errs: make(chan error, 16)}
	v.nc, err = nats.Connect(who.URLs[0], nats.UserJWTAndSeed(who.JWT, string(who.Seed)), nats.Secure(tls), nats.CustomInboxPrefix(who.Inbox()),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { v.errs <- err }))
	require.NoError(t, err)
	t.Cleanup(v.nc.Close)
	return v
}

// stopped asks for what the server itself must stop, and says so on this
// connection. Nobody answers.
func (v bareViewer) stopped(to, arguments string, header nats.Header) {
	v.Helper()
	inbox, err := v.nc.SubscribeSync(v.nc.NewInbox())
	require.NoError(v, err)
	require.NoError(v, v.nc.PublishMsg(&nats.Msg{Subject: to, Reply: inbox.Subject, Data: []byte(arguments), Header: header}))
	select {
	case err := <-v.errs:
		require.ErrorIs(v, err, nats.ErrPermissionViolation, to)
		require.ErrorContains(v, err, fmt.Sprintf("Permissions Violation for Publish to %q", to))
	case <-time.After(patience):
		require.Fail(v, "the server lets it pass", to)
	}
	require.NoError(v, v.nc.Flush())
	_, err = inbox.NextMsg(20 * time.Millisecond)
	require.ErrorIs(v, err, nats.ErrTimeout, "somebody answers %s", to)
}

// requests are how many calls each endpoint of each node was given, by its own
// statistics.
func (p person) requests(nodes int) map[string]int {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	all, from := map[string]int{}, 0
	require.NoError(p, p.conn.CallAll(ctx, "$SRV.STATS.stead-node", nil, func(r mesh.Reply) bool {
		require.NoError(p, r.Err)
		var stats struct {
			ID        string
			Endpoints []struct {
				Name     string
				Requests int `json:"num_requests"`
			}
		}
		require.NoError(p, json.Unmarshal(r.Payload, &stats))
		for _, e := range stats.Endpoints {
			all[stats.ID+" "+e.Name] += e.Requests
		}
		from++
		return from < nodes
	}))
	require.Len(p, all, 16*nodes, "eight verbs, of a node and of all")
	return all
}

// viewing has a viewer ask for everything that a viewer may not.
func viewing(t *testing.T, alice, vera person) {
	bare := newBareViewer(t, "/root/vera.json")
	before, told := alice.requests(2), len(events(t, "vera"))
	tried := 0
	for _, node := range []subject.Node{"ws1", subject.All} {
		for _, verb := range []subject.Verb{seats.Start, seats.Stop, seats.Restart, seats.Enable, seats.Disable} {
			bare.stopped(verbOf(node, verb), `{"unit":"`+bystander+`"}`, nil)
			tried++
		}
		bare.stopped(verbOf(node, seats.Journal), `{}`, nil)
		bare.stopped(verbOf(node, seats.Journal), `{"follow":true}`, nats.Header{"Stead-Stream": {"0123456789abcdef"}, "Stead-Grant": {"100000"}})
		tried += 2
	}
	for _, verb := range []subject.Verb{seats.Stop, seats.Journal} {
		_, err := vera.ask("ws1", verb, seats.ActArguments{Unit: bystander})
		require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
		// The name of a verb that acts is nobody's among those that read.
		to := subject.ForVerb(subject.Read, "ws1", seats.NodeServiceManager, seats.Stop)
		_, err = bare.nc.Request(to, []byte(`{"unit":"`+bystander+`"}`), patience)
		require.ErrorIs(t, err, nats.ErrNoResponders)
		tried += 2
	}
	require.Equal(t, before, alice.requests(2), "a runtime was reached")

	// What a viewer may is answered, without lines of the journal.
	text, err := vera.ask("ws1", seats.Status, seats.StatusArguments{Unit: runtimeService})
	require.NoError(t, err)
	var s seats.StatusReply
	require.NoError(t, json.Unmarshal(text, &s))
	require.Equal(t, "active", s.Units[0].Active)
	require.Empty(t, s.Units[0].Lines)
	require.Equal(t, "log lines are for who may read the journal", s.Units[0].LinesError)
	text, err = alice.ask("ws1", seats.Status, seats.StatusArguments{Unit: runtimeService})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s))
	require.NotEmpty(t, s.Units[0].Lines, "there are some")

	until(t, "what the viewer asked for is on record", func() bool { return len(events(t, "vera")) > told })
	for _, e := range events(t, "vera") {
		require.Equal(t, "status", e.Kind, "%+v", e)
		require.Equal(t, "viewer vera", e.Who)
	}
	require.Len(t, events(t, "vera"), told+1)
	t.Logf("%d calls that a viewer may not make: all stopped by the server, none reached a runtime or its audit", tried)
}
