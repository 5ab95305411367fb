package mesh_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

// works waits until a call is answered, and returns how long that took.
func works(t *testing.T, host *mesh.Conn) time.Duration {
	t.Helper()
	start := time.Now()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := host.Call(ctx, sync1, []byte("?"))
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	return time.Since(start)
}

func TestEverythingComesBackAfterTheServer(t *testing.T) {
	m, controller, host := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: echo})
	wake, stop := host.Notify()
	defer stop()
	<-wake
	for _, down := range []time.Duration{0, 3 * time.Second} {
		before := host.State().Session
		m.Stop()
		time.Sleep(down)
		m.Start()
		took := works(t, host)
		t.Logf("down %s: answered again after %s", down, took)
		require.Less(t, took, 6*time.Second)
		require.Greater(t, host.State().Session, before)
		select {
		case <-wake:
		default:
			t.Fatal("nobody was woken")
		}
	}
}

func TestEverythingComesBackAfterTheConnectionWasKilled(t *testing.T) {
	m, controller, host := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: echo})
	for range 3 {
		before := host.State().Session
		m.Link.Kill()
		require.Less(t, works(t, host), 5*time.Second)
		require.Eventually(t, func() bool { return host.State().Session > before }, patience, time.Millisecond)
	}
}

func TestSilentConnectionIsFoundOutByACall(t *testing.T) {
	m, controller, _ := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: echo})
	way := m.Way()
	host := m.ConnectBy(way, identity.Host, "ws1")
	works(t, host)
	way.Swallow(true)
	_, err := host.Call(within(t, 500*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	start := time.Now()
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, 10*time.Millisecond)
	require.Less(t, time.Since(start), 4*time.Second, "it is asked, and given up after two seconds")
	time.Sleep(4 * time.Second) // some attempts end in the hole
	way.Swallow(false)
	took := works(t, host)
	t.Logf("answered %s after the network was back", took)
	require.Less(t, took, 6*time.Second)
}

func TestSilentConnectionIsFoundOutByItself(t *testing.T) {
	m := meshtest.New(t)
	way := m.Way()
	who := m.Credentials(identity.Host, "ws1", way)
	host := m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return who, nil }, Ping: 300 * time.Millisecond})
	way.Swallow(true)
	require.Eventually(t, func() bool { return !host.State().Connected }, 5*time.Second, 10*time.Millisecond)
	way.Swallow(false)
	require.NoError(t, host.Wait(within(t, patience)))
}

func TestRefusedCredentialsDoNotEndTheClient(t *testing.T) {
	m, controller, _ := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: echo})
	who := m.Credentials(identity.Host, "ws1", m.Link)
	host := m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return who, nil }})
	works(t, host)
	dialed := m.Link.Dialed()
	m.Update(identity.Permissions(), identity.Revocation{Account: identity.HOST, User: who.PublicKey(), Before: time.Now()})
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	// Twice the same refusal is where nats.go gives up by default.
	require.Eventually(t, func() bool { return m.Link.Dialed() >= dialed+4 }, patience, 10*time.Millisecond)
	_, err := host.Call(t.Context(), sync1, nil)
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	require.Equal(t, fault.Denied, fault.ClassOf(host.Wait(within(t, 50*time.Millisecond))))
	m.Update(identity.Permissions())
	require.Less(t, works(t, host), 5*time.Second)
}

func TestClientThatGaveUpIsReplaced(t *testing.T) {
	m, controller, host := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: echo})
	for _, c := range []*mesh.Conn{host, controller} {
		session, err := c.Session(t.Context())
		require.NoError(t, err)
		session.NATS().Close() // as nats.go does after errors that it does not know
		works(t, host)
	}
	heard := make(chan string, 8)
	listener := m.Connect(identity.Listener, "ws1")
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	changed := subject.ForNode("ws1", subject.Changed)
	wait.Go(func() {
		_ = listener.Listen(ctx, changed, []identity.Account{identity.CTL}, func(h mesh.Hint) { heard <- string(h.Payload) })
	})
	hears := func(text string) {
		require.Eventually(t, func() bool {
			_ = controller.Publish(changed, []byte(text))
			select {
			case got := <-heard:
				return got == text
			case <-time.After(10 * time.Millisecond):
				return false
			}
		}, patience, 10*time.Millisecond)
	}
	hears("one")
	session, err := listener.Session(t.Context())
	require.NoError(t, err)
	session.NATS().Close()
	hears("two")
	m.Link.Kill()
	hears("three")
}

func TestRenewedCredentialsAreTakenUp(t *testing.T) {
	m, controller, _ := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
		return []byte(r.Caller.User), nil
	}})
	var now atomic.Pointer[identity.Credentials]
	first, second := m.Credentials(identity.Host, "ws1", m.Link), m.Credentials(identity.Host, "ws1", m.Link)
	now.Store(&first)
	host := m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return *now.Load(), nil }})
	user, err := host.Call(t.Context(), sync1, nil)
	require.NoError(t, err)
	require.Equal(t, first.PublicKey(), string(user))
	now.Store(&second)
	// The old user ends, as one whose credentials run out does.
	m.Update(identity.Permissions(), identity.Revocation{Account: identity.HOST, User: first.PublicKey(), Before: time.Now()})
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	works(t, host)
	user, err = host.Call(t.Context(), sync1, nil)
	require.NoError(t, err)
	require.Equal(t, second.PublicKey(), string(user))
}

func TestWhatIsOutOfReachIsNamed(t *testing.T) {
	m := meshtest.New(t)
	other := meshtest.New(t)
	try := func(who identity.Credentials) error {
		c, err := mesh.Connect(t.Context(), mesh.Options{Name: "host ws1", Logger: slog.New(slog.DiscardHandler),
			Credentials: func() (identity.Credentials, error) { return who, nil }})
		require.NoError(t, err)
		defer c.Close()
		return c.Wait(within(t, time.Second))
	}
	err := try(m.Credentials(identity.Host, "ws1", other.Link))
	require.Equal(t, fault.Denied, fault.ClassOf(err), "a server of another mesh: %v", err)
	require.ErrorContains(t, err, "certificate")
	m.Stop()
	err = try(m.Credentials(identity.Host, "ws1", m.Link))
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "connect: host ws1: ")

	_, err = mesh.Connect(t.Context(), mesh.Options{Name: "host ws1", Logger: slog.New(slog.DiscardHandler),
		Credentials: func() (identity.Credentials, error) { return identity.ReadCredentials("nowhere") }})
	require.Equal(t, fault.NotFound, fault.ClassOf(err))
}
