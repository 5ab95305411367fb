package mesh_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

func TestACallThatMustBeSignedIsAnsweredOnce(t *testing.T) {
	m := meshtest.New(t)
	const apply = "mesh.v1.w.apply"
	endpoint := mesh.Endpoint{Subject: apply, Accounts: []identity.Account{identity.OPS}, Handler: echo, Signed: true}
	first := m.Connect(identity.Controller, "c1")
	_, end := serve(t, first, endpoint)
	who, bob := m.Credentials(identity.Operator, "alice", m.Link), m.Credentials(identity.Operator, "bob", m.Link)
	alice := m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return who, nil }})
	for range 2 {
		answer, err := alice.Call(t.Context(), apply, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, "x", string(answer))
	}
	bare := func(sign func(*nats.Msg)) *nats.Msg {
		msg := &nats.Msg{Subject: apply, Data: []byte("x"), Header: nats.Header{}}
		sign(msg)
		return msg
	}
	by := func(c identity.Credentials) func(*nats.Msg) {
		return func(m *nats.Msg) { require.NoError(t, c.Sign(m, time.Now())) }
	}
	session, err := alice.Session(t.Context())
	require.NoError(t, err)
	send := func(m *nats.Msg) (class, text string) {
		answer, err := session.NATS().RequestMsgWithContext(within(t, patience), &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		require.NoError(t, err)
		return answer.Header.Get(micro.ErrorCodeHeader), string(answer.Data)
	}
	class, text := send(bare(func(*nats.Msg) {}))
	require.Equal(t, "denied", class)
	require.Contains(t, text, "did not sign it")
	class, text = send(bare(by(bob)))
	require.Equal(t, "denied", class)
	require.Contains(t, text, "operator bob signed it, and operator alice sent it")
	once := bare(by(who))
	class, text = send(once)
	require.Empty(t, class)
	require.Equal(t, "x", text)
	class, text = send(once)
	require.Equal(t, "denied", class)
	require.Contains(t, text, "was made before")

	require.NoError(t, end())
	serve(t, first, endpoint)
	class, text = send(once)
	require.Equal(t, "unavailable", class, "to a service that does not remember it")
	require.Contains(t, text, "before this service began")
	_, err = alice.Call(t.Context(), apply, []byte("x"))
	require.NoError(t, err)
}

// TestOnlyWhatChangesIsSigned: a signature costs those who read, and nobody asks
// for it.
func TestOnlyWhatChangesIsSigned(t *testing.T) {
	m := meshtest.New(t)
	alice, ws1 := m.Connect(identity.Operator, "alice"), m.Connect(identity.Tool, "ws1")
	signed := make(chan bool, 1)
	session, err := ws1.Session(t.Context())
	require.NoError(t, err)
	for to, want := range map[string]bool{"seat.v1.r.ws1.node-service-manager.status": false, "seat.v1.w.ws1.node-service-manager.stop": true} {
		sub, err := session.NATS().Subscribe(to, func(m *nats.Msg) {
			signed <- m.Header.Get("Stead-Signature") != ""
			_ = m.Respond([]byte("x"))
		})
		require.NoError(t, err)
		require.NoError(t, session.NATS().Flush())
		for _, call := range []func(ctx context.Context, subject string, payload []byte) ([]byte, error){alice.Call, alice.Insist} {
			_, err = call(within(t, patience), to, nil)
			require.NoError(t, err)
			require.Equal(t, want, <-signed, to)
		}
		require.NoError(t, sub.Unsubscribe())
	}
}
