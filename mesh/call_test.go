package mesh_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

func TestCallReachesAHandlerWhoKnowsTheCaller(t *testing.T) {
	_, controller, host := pair(t)
	var got mesh.Request
	serve(t, controller, mesh.Endpoint{Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
		got = r
		return []byte("same"), nil
	}})
	reply, err := host.Call(t.Context(), syncOf("ws1"), []byte("digest"))
	require.NoError(t, err)
	require.Equal(t, "same", string(reply))
	require.Equal(t, syncOf("ws1"), got.Subject)
	require.Equal(t, "digest", string(got.Payload))
	require.Equal(t, identity.HOST, got.Caller.Account)
	require.Equal(t, identity.Host, got.Caller.Role)
	require.Equal(t, "ws1", got.Caller.Name)
}

func TestErrorsOfAHandlerArriveWhole(t *testing.T) {
	_, controller, host := pair(t)
	var answer error
	serve(t, controller, mesh.Endpoint{Handler: func(context.Context, mesh.Request) ([]byte, error) { return nil, answer }})
	for _, class := range []fault.Class{fault.Invalid, fault.NotFound, fault.Refused, fault.Conflict, fault.Denied,
		fault.Unsupported, fault.Unavailable, fault.Timeout, fault.Canceled, fault.Failed, fault.Internal} {
		answer = fault.New(class, "apply", `"a b"`, errors.New("line one\r\nX-Forged: yes\nline “two”")).WithHint("try again")
		_, err := host.Call(t.Context(), syncOf("ws1"), nil)
		var f *fault.Error
		require.ErrorAs(t, err, &f)
		require.Equal(t, class, f.Class)
		require.Equal(t, answer.Error(), f.Error())
		require.Equal(t, "try again", f.Hint)
	}
	answer = fault.New("novel", "apply", "", nil)
	_, err := host.Call(t.Context(), syncOf("ws1"), nil)
	require.Equal(t, fault.Failed, fault.ClassOf(err), "a class of a newer version is failed")

	answer = errors.New(strings.Repeat("ü", 80<<10))
	_, err = host.Call(t.Context(), syncOf("ws1"), nil)
	require.Equal(t, fault.Internal, fault.ClassOf(err))
	require.LessOrEqual(t, len(err.Error()), 64<<10, "a long text is cut")
}

func TestCallsThatCannotArriveEndAtOnce(t *testing.T) {
	m, controller, host := pair(t)
	viewer := m.Connect(identity.Viewer, "vera")
	serve(t, controller, mesh.Endpoint{Handler: echo})
	at := func(class fault.Class, words string, call func() error) {
		t.Helper()
		start := time.Now()
		err := call()
		require.Equal(t, class, fault.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, words)
		require.Less(t, time.Since(start), 2*time.Second)
	}
	to := func(c *mesh.Conn, subject string, payload []byte) func() error {
		return func() error { _, err := c.Call(t.Context(), subject, payload); return err }
	}
	verb := subject.ForVerb(subject.Read, "ws9", "node-service-manager", "status")
	at(fault.Unavailable, verb+": nobody serves it", to(viewer, verb, nil))
	at(fault.Denied, "this user may not", to(viewer, subject.ForOperation(subject.Write, "apply"), nil))
	at(fault.Denied, "this user may not", to(host, syncOf("ws2"), nil))
	at(fault.Invalid, "maximum payload", to(host, syncOf("ws1"), bytes.Repeat([]byte("x"), identity.MaxPayload+1)))
	at(fault.Canceled, "canceled", func() error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := host.Call(ctx, syncOf("ws1"), nil)
		return err
	})
	_, err := host.Call(t.Context(), syncOf("ws1"), []byte("one refusal does not harm other calls"))
	require.NoError(t, err)
	m.Stop()
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	at(fault.Unavailable, "connect: ", to(host, syncOf("ws1"), nil))
	at(fault.Unavailable, "connect: ", func() error { return host.Publish(syncOf("ws1"), nil) })
}

func TestCallWithoutAnAnswerIsATimeout(t *testing.T) {
	_, controller, host := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: func(ctx context.Context, _ mesh.Request) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx := within(t, 300*time.Millisecond)
	_, err := host.Call(ctx, syncOf("ws1"), nil)
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "may")
}

func TestCallInFlightEndsWithTheConnection(t *testing.T) {
	m, controller, host := pair(t)
	inside, free := make(chan struct{}), make(chan struct{})
	defer close(free)
	serve(t, controller, mesh.Endpoint{Handler: func(ctx context.Context, _ mesh.Request) ([]byte, error) {
		close(inside)
		<-free
		return nil, nil
	}})
	done := make(chan error, 1)
	go func() { _, err := host.Call(t.Context(), syncOf("ws1"), nil); done <- err }()
	<-inside
	m.Link.Kill()
	select {
	case err := <-done:
		require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
		require.ErrorContains(t, err, "it may have been done")
	case <-time.After(5 * time.Second):
		t.Fatal("the call goes on waiting")
	}
}

func TestCallAllHearsEverybodyAndNamesThem(t *testing.T) {
	m := meshtest.New(t)
	operator := m.Connect(identity.Operator, "olga")
	all := subject.ForVerb(subject.Read, subject.All, "node-service-manager", "units")
	for _, node := range []string{"ws1", "ws2", "ws3"} {
		tool := m.Connect(identity.Tool, node)
		run(t, tool, mesh.ServiceOptions{Name: "runtime", Version: "1.0.0", Node: node, Endpoints: []mesh.Endpoint{{
			Name: "units", Subject: all, Accounts: []identity.Account{identity.OPS},
			Handler: func(ctx context.Context, _ mesh.Request) ([]byte, error) {
				switch node {
				case "ws2":
					return nil, fault.New(fault.Unsupported, "units", node, nil)
				case "ws3": // silent for longer than anybody waits
					select {
					case <-ctx.Done():
					case <-t.Context().Done():
					}
				}
				return []byte(node), nil
			},
		}}})
	}
	got := map[string]mesh.Reply{}
	start := time.Now()
	err := operator.CallAll(within(t, time.Second), all, nil, func(r mesh.Reply) bool {
		got[r.From] = r
		return true
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 900*time.Millisecond, "it waits for those who are silent")
	require.Equal(t, "ws1", string(got["ws1"].Payload))
	require.NoError(t, got["ws1"].Err)
	require.Equal(t, fault.Unsupported, fault.ClassOf(got["ws2"].Err))

	start, n := time.Now(), 0
	err = operator.CallAll(within(t, patience), all, nil, func(mesh.Reply) bool { n++; return n < 2 })
	require.NoError(t, err)
	require.Less(t, time.Since(start), 5*time.Second, "it ends when the caller has heard enough")

	nobody := subject.ForVerb(subject.Read, subject.All, "node-service-manager", "status")
	err = operator.CallAll(t.Context(), nobody, nil, func(mesh.Reply) bool { return true })
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	viewer := m.Connect(identity.Viewer, "vera")
	write := subject.ForVerb(subject.Write, subject.All, "node-service-manager", "stop")
	err = viewer.CallAll(t.Context(), write, nil, func(mesh.Reply) bool { return true })
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
}
