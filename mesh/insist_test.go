package mesh_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// insist calls in the background; what it returns waits for the answer.
func insist(t *testing.T, c *mesh.Conn, payload string) func() (string, error) {
	t.Helper()
	type answer struct {
		reply []byte
		err   error
	}
	done := make(chan answer, 1)
	ctx := within(t, patience)
	go func() {
		reply, err := c.Insist(ctx, sync1, []byte(payload))
		done <- answer{reply, err}
	}()
	return func() (string, error) {
		a := <-done
		return string(a.reply), a.err
	}
}

func TestInsistingWaitsForWhoeverServes(t *testing.T) {
	m, controller, host := pair(t)
	got := insist(t, host, "nobody serves")
	time.Sleep(200 * time.Millisecond) // it is asked in vain
	var asked atomic.Int64
	_, end := serve(t, controller, mesh.Endpoint{Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
		asked.Add(int64(r.Asked))
		return r.Payload, nil
	}})
	reply, err := got()
	require.NoError(t, err)
	require.Equal(t, "nobody serves", reply)

	m.Stop()
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	got = insist(t, host, "no server")
	m.Start()
	reply, err = got()
	require.NoError(t, err)
	require.Equal(t, "no server", reply)
	require.Zero(t, asked.Load(), "nothing that was asked in vain can have been done")

	require.NoError(t, end())
	_, err = host.Insist(within(t, 700*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.EqualError(t, err, "call: "+sync1+": nobody serves it")
	m.Stop()
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	_, err = host.Insist(within(t, 300*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "connect: ")
}

func TestInsistingGivesUpWhereNobodyComes(t *testing.T) {
	m := meshtest.New(t)
	host := m.Dial(mesh.Options{Name: "host ws1", Absence: 300 * time.Millisecond, Credentials: func() (identity.Credentials, error) {
		return m.Credentials(identity.Host, "ws1", m.Link), nil
	}})
	_, err := host.Insist(within(t, time.Hour), sync1, nil)
	require.EqualError(t, err, "call: "+sync1+": nobody serves it")
	m.Stop()
	require.Eventually(t, func() bool { return !host.State().Connected }, patience, time.Millisecond)
	_, err = host.Insist(within(t, time.Hour), sync1, nil)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "connect: ")
}

// TestACallThatIsAskedAgainIsMadeOnce asks across the loss of the caller's
// connection, and for longer than a call is silent.
func TestACallThatIsAskedAgainIsMadeOnce(t *testing.T) {
	m, controller, host := pair(t)
	inside, free := make(chan struct{}, 10), make(chan struct{})
	s, _ := serve(t, controller, mesh.Endpoint{Together: 1, Waiting: 1, Handler: func(context.Context, mesh.Request) ([]byte, error) {
		inside <- struct{}{}
		<-free
		return []byte("done"), nil
	}})
	got := insist(t, host, "")
	<-inside
	m.Link.Kill()
	time.Sleep(2 * time.Second) // it is asked again and again, and takes no second place
	close(free)
	reply, err := got()
	require.NoError(t, err)
	require.Equal(t, "done", reply)
	require.Empty(t, inside, "it was made again")
	require.Equal(t, 1, s.Statistics()["sync"].Calls)
}

// TestACallThatMayHaveBeenDoneSaysSoToWhoeverServesNext loses whoever had it in
// hand, without a word.
func TestACallThatMayHaveBeenDoneSaysSoToWhoeverServesNext(t *testing.T) {
	m, first, host := pair(t)
	var mu sync.Mutex
	var seen []mesh.Request
	inside := make(chan struct{}, 10)
	handler := func(last bool) mesh.Handler {
		return func(ctx context.Context, r mesh.Request) ([]byte, error) {
			mu.Lock()
			seen = append(seen, r)
			mu.Unlock()
			inside <- struct{}{}
			if !last {
				<-ctx.Done()
			}
			return []byte("done"), nil
		}
	}
	serve(t, first, mesh.Endpoint{Handler: handler(false)})
	got := insist(t, host, "act")
	<-inside
	first.Close()
	time.Sleep(300 * time.Millisecond)
	serve(t, m.Connect(identity.Controller, "c2"), mesh.Endpoint{Handler: handler(true)})
	reply, err := got()
	require.NoError(t, err)
	require.Equal(t, "done", reply)
	require.Len(t, seen, 2)
	require.NotEmpty(t, seen[0].Call)
	require.Equal(t, seen[0].Call, seen[1].Call)
	require.Zero(t, seen[0].Asked)
	require.GreaterOrEqual(t, seen[1].Asked, 300*time.Millisecond)
	require.Equal(t, seen[0].Payload, seen[1].Payload)
	_, err = host.Insist(t.Context(), sync1, nil)
	require.NoError(t, err)
	require.NotEqual(t, seen[0].Call, seen[2].Call, "another call has another name")
	require.Zero(t, seen[2].Asked)
}

func TestAServiceThatHasToEndSendsItsCallsToTheNextOne(t *testing.T) {
	m, first, host := pair(t)
	inside := make(chan struct{}, 10)
	hang := func(ctx context.Context, _ mesh.Request) ([]byte, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return nil, fault.New(fault.Canceled, "act", "", ctx.Err())
	}
	e := mesh.Endpoint{Name: "sync", Queue: "q", Subject: sync1, Accounts: []identity.Account{identity.HOST}, Handler: hang}
	_, end := run(t, first, mesh.ServiceOptions{Name: "controller", Version: "1.0.0", Drain: 50 * time.Millisecond, Endpoints: []mesh.Endpoint{e}})
	got := insist(t, host, "again")
	<-inside
	_ = end()
	serve(t, m.Connect(identity.Controller, "c2"), mesh.Endpoint{Handler: echo})
	reply, err := got()
	require.NoError(t, err)
	require.Equal(t, "again", reply)
}

func TestInsistingTakesNoForAnAnswerAndBusyForNone(t *testing.T) {
	_, controller, host := pair(t)
	busy := fault.New(fault.Unavailable, "act", "web.service", errors.New("the helper is not there"))
	var calls atomic.Int64
	hung := make(chan struct{})
	defer close(hung)
	serve(t, controller, mesh.Endpoint{Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
		switch n := calls.Add(1); {
		case string(r.Payload) == "no":
			return nil, fault.New(fault.Refused, "act", "web.service", errors.New("never"))
		case string(r.Payload) == "hang":
			<-hung
			return nil, nil
		case string(r.Payload) == "never" || n < 3:
			return nil, busy
		}
		return r.Payload, nil
	}})
	reply, err := host.Insist(t.Context(), sync1, []byte("soon"))
	require.NoError(t, err)
	require.Equal(t, "soon", string(reply))
	require.EqualValues(t, 3, calls.Load())

	_, err = host.Insist(t.Context(), sync1, []byte("no"))
	require.Equal(t, fault.Refused, fault.ClassOf(err))
	require.EqualValues(t, 4, calls.Load(), "asked once")
	_, err = host.Insist(within(t, time.Second), sync1, []byte("never"))
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.EqualError(t, err, busy.Error(), "the handler's own")
	_, err = host.Insist(within(t, time.Second), sync1, []byte("hang"))
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "may")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = host.Insist(ctx, sync1, []byte("hang"))
	require.Equal(t, fault.Canceled, fault.ClassOf(err), "%v", err)
	_, err = host.Insist(t.Context(), syncOf("ws2"), nil)
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
	_, err = host.Insist(t.Context(), sync1, make([]byte, identity.MaxPayload+1))
	require.Equal(t, fault.Invalid, fault.ClassOf(err), "%v", err)
}
