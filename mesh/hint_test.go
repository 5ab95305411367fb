package mesh_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

// listen hands the hints on what changed for node ws1 to take, until the test
// ends.
func listen(t *testing.T, c *mesh.Conn, accounts []identity.Account, take func(mesh.Hint)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Listen(ctx, subject.ForNode("ws1", subject.Changed), accounts, take) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
}

func TestHintsReachWhoListens(t *testing.T) {
	m := meshtest.New(t)
	controller, listener := m.Connect(identity.Controller, "c1"), m.Connect(identity.Listener, "ws1")
	heard, deaf := make(chan mesh.Hint, 64), make(chan mesh.Hint, 64)
	listen(t, listener, []identity.Account{identity.CTL}, func(h mesh.Hint) { heard <- h })
	listen(t, listener, []identity.Account{identity.OPS}, func(h mesh.Hint) { deaf <- h })
	var got mesh.Hint
	require.Eventually(t, func() bool {
		require.NoError(t, controller.Publish(subject.ForNode("ws1", subject.Changed), []byte("7")))
		select {
		case got = <-heard:
			return true
		case <-time.After(20 * time.Millisecond):
			return false
		}
	}, patience, time.Millisecond)
	require.Equal(t, "7", string(got.Payload))
	require.Equal(t, identity.CTL, got.Caller.Account)
	require.Equal(t, "c1", got.Caller.Name)
	require.Empty(t, deaf, "an account that may not is not heard")
}

func TestListenerThatIsSlowLosesHintsAndNothingElse(t *testing.T) {
	m := meshtest.New(t)
	controller, listener := m.Connect(identity.Controller, "c1"), m.Connect(identity.Listener, "ws1")
	first, release, heard := make(chan struct{}, 1<<12), make(chan struct{}), make(chan string, 1<<12)
	listen(t, listener, []identity.Account{identity.CTL}, func(h mesh.Hint) {
		first <- struct{}{}
		<-release
		heard <- string(h.Payload)
	})
	publish := func(text string) {
		require.NoError(t, controller.Publish(subject.ForNode("ws1", subject.Changed), []byte(text)))
	}
	require.Eventually(t, func() bool { publish("first"); return len(first) > 0 }, patience, 10*time.Millisecond)
	for i := range 1000 {
		publish(fmt.Sprint(i))
	}
	require.NoError(t, raw(t, controller).Flush())
	require.NoError(t, raw(t, listener).Flush()) // all of them have come, or were dropped
	close(release)
	require.Eventually(t, func() bool {
		publish("last")
		for len(heard) > 0 {
			if <-heard == "last" {
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond)
	require.Less(t, len(first), 500, "they were not all kept")
	require.True(t, listener.State().Connected)
}

func TestClosedConnectionEndsWhoUsesIt(t *testing.T) {
	m, controller, host := pair(t)
	s, _ := serve(t, controller, mesh.Endpoint{Handler: echo})
	_ = s
	listener := m.Connect(identity.Listener, "ws1")
	done := make(chan error, 1)
	go func() {
		done <- listener.Listen(t.Context(), subject.ForNode("ws1", subject.Changed), []identity.Account{identity.CTL}, func(mesh.Hint) {})
	}()
	listener.Close()
	listener.Close()
	select {
	case err := <-done:
		require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	case <-time.After(patience):
		t.Fatal("it goes on listening")
	}
	host.Close()
	_, err := host.Call(t.Context(), sync1, nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.Equal(t, fault.Unavailable, fault.ClassOf(host.Wait(t.Context())))
}
