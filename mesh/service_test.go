package mesh_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

func TestHandlerThatFailsCostsOneCall(t *testing.T) {
	_, controller, host := pair(t)
	release := make(chan struct{})
	var nothing []int
	turned := make(chan string, 10)
	s, end := serve(t, controller, mesh.Endpoint{
		Turned: func(r mesh.Request, streamed bool, err error) {
			turned <- fmt.Sprintf("%s %d %t %s", r.Caller.Name, len(r.Payload), streamed, fault.ClassOf(err))
		},
		Timeout: 300 * time.Millisecond, Together: 2, MaxRequest: 100, MaxReply: 100,
		Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
			switch string(r.Payload) {
			case "panic":
				panic("a defect")
			case "out of range":
				_ = nothing[0]
			case "hang":
				<-release // without looking at its context
			case "much":
				return bytes.Repeat([]byte("x"), 101), nil
			}
			return []byte("fine"), nil
		},
	})
	call := func(payload string) error {
		_, err := host.Call(t.Context(), sync1, []byte(payload))
		return err
	}
	require.Equal(t, fault.Internal, fault.ClassOf(call("panic")))
	require.Equal(t, fault.Internal, fault.ClassOf(call("out of range")))
	require.ErrorContains(t, call("much"), "answer of 101 bytes; at most 100")
	require.Equal(t, fault.Invalid, fault.ClassOf(call(string(make([]byte, 101)))))
	require.ErrorContains(t, call("hang"), "not done by the deadline")
	require.NoError(t, call("ok"), "one slot is left")
	require.Equal(t, fault.Timeout, fault.ClassOf(call("hang")))
	err := call("ok")
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "hung handlers keep their slots")
	require.ErrorContains(t, err, "busy: 2 calls run")
	require.Equal(t, "ws1 101 false invalid", <-turned, "calls that reach no handler are told")
	require.Equal(t, "ws1 2 false unavailable", <-turned)
	require.Empty(t, turned)
	close(release)
	require.Eventually(t, func() bool { return call("ok") == nil }, patience, 10*time.Millisecond)

	n := s.Statistics()["sync"]
	require.GreaterOrEqual(t, n.Calls, 9)
	require.GreaterOrEqual(t, n.Failed, 7)
	require.Zero(t, n.Running)
	require.NoError(t, end())
}

const sync1 = "node.v1.ws1.sync"

func TestAnswerLargerThanTheServerCarriesIsAnError(t *testing.T) {
	_, controller, host := pair(t)
	serve(t, controller, mesh.Endpoint{Handler: func(context.Context, mesh.Request) ([]byte, error) {
		return make([]byte, identity.MaxPayload+1), nil
	}})
	_, err := host.Call(t.Context(), sync1, nil)
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	require.ErrorContains(t, err, "answer of 1048577 bytes; at most")
}

func TestSlowHandlersDoNotHoldUpOthers(t *testing.T) {
	_, controller, host := pair(t)
	release := make(chan struct{})
	var most, now atomic.Int64
	serve(t, controller, mesh.Endpoint{
		Together: 4, Waiting: 4,
		Handler: func(_ context.Context, r mesh.Request) ([]byte, error) {
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			defer now.Add(-1)
			if string(r.Payload) == "slow" {
				<-release
			}
			return nil, nil
		},
	})
	var wait sync.WaitGroup
	var ok, busy atomic.Int64
	slow := func() {
		_, err := host.Call(t.Context(), sync1, []byte("slow"))
		switch {
		case err == nil:
			ok.Add(1)
		case fault.Is(err, fault.Unavailable):
			busy.Add(1)
		}
	}
	for range 3 {
		wait.Go(slow)
	}
	require.Eventually(t, func() bool { return now.Load() == 3 }, patience, time.Millisecond)
	start := time.Now()
	_, err := host.Call(t.Context(), sync1, []byte("quick"))
	require.NoError(t, err)
	require.Less(t, time.Since(start), time.Second)
	for range 17 {
		wait.Go(slow)
	}
	// 4 run, 4 wait, 12 are turned away at once.
	require.Eventually(t, func() bool { return busy.Load() == 12 }, patience, time.Millisecond)
	close(release)
	wait.Wait()
	require.EqualValues(t, 8, ok.Load())
	require.LessOrEqual(t, most.Load(), int64(4))
}

func TestCallerWithLittlePatienceIsNotWorkedForLonger(t *testing.T) {
	_, controller, host := pair(t)
	ended := make(chan time.Duration, 1)
	serve(t, controller, mesh.Endpoint{Handler: func(ctx context.Context, _ mesh.Request) ([]byte, error) {
		start := time.Now()
		<-ctx.Done()
		ended <- time.Since(start)
		return nil, ctx.Err()
	}})
	_, err := host.Call(within(t, 200*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.Less(t, <-ended, 2*time.Second)
}

func TestCallsThatMayNotAreDropped(t *testing.T) {
	m, controller, host := pair(t)
	// The runtime lives in the same account as the host, a tool in none that may call.
	s, _ := serve(t, controller, mesh.Endpoint{Accounts: []identity.Account{identity.OPS}, Handler: echo})
	_, err := host.Call(within(t, 300*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "a call from an account that may not is not answered")

	// Inside the account of controllers nothing says who publishes.
	other := m.Connect(identity.Controller, "c2")
	_, err = other.Call(within(t, 300*time.Millisecond), sync1, nil)
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "a call without a caller is not answered")

	session, err := host.Session(t.Context())
	require.NoError(t, err)
	for _, forged := range []string{"", "{}", "not json", `{"acc":"OPS","name_tag":"olga"}`} {
		msg := nats.NewMsg(sync1)
		msg.Header.Set(identity.CallerHeader, forged)
		ctx := within(t, 200*time.Millisecond)
		_, err := session.NATS().RequestMsgWithContext(ctx, msg)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.Equal(t, 6, s.Statistics()["sync"].Dropped)
	require.Zero(t, s.Statistics()["sync"].Calls)
}

func TestServiceThatEndsAnswersWhatItTook(t *testing.T) {
	_, controller, host := pair(t)
	inside := make(chan struct{}, 8)
	_, end := serve(t, controller, mesh.Endpoint{Together: 2, Handler: func(context.Context, mesh.Request) ([]byte, error) {
		inside <- struct{}{}
		time.Sleep(300 * time.Millisecond)
		return []byte("done"), nil
	}})
	var wait sync.WaitGroup
	var done atomic.Int64
	for range 6 { // two run, four wait
		wait.Go(func() {
			if reply, err := host.Call(t.Context(), sync1, nil); err == nil && string(reply) == "done" {
				done.Add(1)
			}
		})
	}
	<-inside
	<-inside
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, end())
	wait.Wait()
	require.EqualValues(t, 6, done.Load())
	_, err := host.Call(t.Context(), sync1, nil)
	require.ErrorContains(t, err, "nobody serves it")
}

func TestServiceThatEndsDoesNotWaitForHungHandlers(t *testing.T) {
	_, controller, host := pair(t)
	release, inside := make(chan struct{}), make(chan struct{}, 1)
	defer close(release)
	_, end := run(t, controller, mesh.ServiceOptions{Name: "controller", Version: "1.0.0", Drain: 300 * time.Millisecond,
		Endpoints: []mesh.Endpoint{{Name: "sync", Subject: sync1, Accounts: []identity.Account{identity.HOST},
			Handler: func(context.Context, mesh.Request) ([]byte, error) {
				inside <- struct{}{}
				<-release
				return nil, nil
			}}}})
	answer := make(chan error, 1)
	go func() { _, err := host.Call(t.Context(), sync1, nil); answer <- err }()
	<-inside
	start := time.Now()
	err := end()
	require.ErrorContains(t, err, "1 handlers do not end")
	require.Less(t, time.Since(start), 3*time.Second)
	err = <-answer
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "stopping")
}

func TestServiceDiscoveryIsThatOfNATS(t *testing.T) {
	m := meshtest.New(t)
	tool, operator := m.Connect(identity.Tool, "ws1"), m.Connect(identity.Operator, "olga")
	verb := subject.ForVerb(subject.Read, "ws1", "node-service-manager", "status")
	run(t, tool, mesh.ServiceOptions{Name: "runtime", Description: "what it is", Version: "1.2.3", Node: "ws1", Discover: []identity.Account{identity.OPS},
		Endpoints: []mesh.Endpoint{{Name: "status", Subject: verb, Accounts: []identity.Account{identity.OPS}, Handler: echo}}})
	_, err := operator.Call(t.Context(), verb, nil)
	require.NoError(t, err)
	ask := func(subject string, into any) {
		reply, err := operator.Call(t.Context(), subject, nil)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(reply, into))
	}
	var ping micro.Ping
	ask("$SRV.PING", &ping)
	require.Equal(t, micro.PingResponseType, ping.Type)
	require.Equal(t, "1.2.3", ping.Version)
	require.Equal(t, "ws1", ping.Metadata["node"])
	require.Equal(t, "ws1", ping.ID)
	var info micro.Info
	ask("$SRV.INFO.runtime.ws1", &info)
	require.Equal(t, "what it is", info.Description)
	require.Equal(t, verb, info.Endpoints[0].Subject)
	var stats micro.Stats
	ask("$SRV.STATS.runtime", &stats)
	require.Equal(t, 1, stats.Endpoints[0].NumRequests)
	require.Equal(t, 0, stats.Endpoints[0].NumErrors)
}
