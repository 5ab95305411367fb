package mesh_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

// reaches waits until a sink has taken some more.
func reaches(t *testing.T, dst *sink, more int64) {
	t.Helper()
	want := dst.got.Load() + more
	require.Eventually(t, func() bool { return dst.got.Load() >= want }, patience, time.Millisecond, "at %d of %d: %v", dst.got.Load(), want, dst.whys())
}

func TestNothingIsLostOrRepeatedWhateverBreaks(t *testing.T) {
	m := meshtest.New(t)
	tools, people := m.Way(), m.Way()
	tool, operator := m.ConnectBy(tools, identity.Tool, "ws1"), m.ConnectBy(people, identity.Operator, "olga")
	src, dst := newSource(), &sink{t: t}
	src.pause, src.pad = 50*time.Microsecond, 300
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	end := follows(t, operator, dst.options())
	reaches(t, dst, 100)
	for _, trouble := range []struct {
		name string
		make func()
	}{
		{"the caller's connection ends", people.Kill},
		{"the node's connection ends", tools.Kill},
		{"the caller's network is gone for a while", func() { people.Swallow(true); time.Sleep(1500 * time.Millisecond); people.Swallow(false) }},
		{"the node's network is gone for a while", func() { tools.Swallow(true); time.Sleep(1500 * time.Millisecond); tools.Swallow(false) }},
	} {
		before, start := dst.got.Load(), time.Now()
		trouble.make()
		reaches(t, dst, 500)
		t.Logf("%s: at %d, then 500 more within %s; %d resumptions so far", trouble.name, before, time.Since(start), dst.lost.Load())
	}
	require.Equal(t, fault.Canceled, fault.ClassOf(end()), "every number came once and in its turn")
	require.GreaterOrEqual(t, src.runs.Load(), int64(4))
}

func TestNothingIsLostOrRepeatedOverRestartsOfTheServer(t *testing.T) {
	m, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t}
	src.pause, src.pad = 50*time.Microsecond, 300
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	end := follows(t, operator, dst.options())
	reaches(t, dst, 100)
	for range 3 {
		start := time.Now()
		m.Stop()
		m.Start()
		reaches(t, dst, 500)
		t.Logf("500 more %s after the server went; at %d, %d resumptions", time.Since(start), dst.got.Load(), dst.lost.Load())
	}
	require.Equal(t, fault.Canceled, fault.ClassOf(end()))
	require.GreaterOrEqual(t, dst.lost.Load(), int64(3))
}

func TestStreamOfOneServiceGoesOnFromTheNext(t *testing.T) {
	_, tool, operator := node(t)
	src, dst := newSource(), &sink{t: t}
	src.pause = time.Millisecond
	_, stop := streams(t, tool, mesh.Endpoint{Stream: src.stream})
	end := follows(t, operator, dst.options())
	reaches(t, dst, 50)
	start := time.Now()
	require.NoError(t, stop())
	require.Less(t, time.Since(start), time.Second, "streams do not hold up the end of a service")
	require.Equal(t, fault.Canceled, fault.ClassOf(<-src.ended))
	time.Sleep(time.Second) // nobody serves it for a while
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	reaches(t, dst, 50)
	require.Equal(t, fault.Canceled, fault.ClassOf(end()))
	require.ErrorContains(t, dst.whys(), "nobody serves it")
}

func TestStreamIsRenewedBeforeItsLifeIsOver(t *testing.T) {
	t.Parallel()
	m, tool, operator := node(t)
	table := identity.Permissions()
	for i := range table.Roles {
		if table.Roles[i].Role == identity.Tool {
			table.Roles[i].Answer = 3 * time.Second
		}
	}
	m.Update(table)
	require.NoError(t, tool.Wait(within(t, patience)))
	src, dst := newSource(), &sink{t: t}
	src.pause = 2 * time.Millisecond
	_, stop := streams(t, tool, mesh.Endpoint{Stream: src.stream, Life: 1500 * time.Millisecond})
	end := follows(t, operator, dst.options())
	require.Eventually(t, func() bool { return src.runs.Load() == 4 }, patience, time.Millisecond)
	require.Equal(t, fault.Canceled, fault.ClassOf(end()))
	require.Zero(t, dst.lost.Load(), "a renewal is no loss: %v", dst.whys())
	require.NoError(t, stop())

	// One that goes on for longer than the server lets it answer falls silent, and
	// is asked for again.
	src, dst = newSource(), &sink{t: t}
	src.pause = 2 * time.Millisecond
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	end = follows(t, operator, dst.options())
	require.Eventually(t, func() bool { return src.runs.Load() == 2 }, patience, time.Millisecond)
	require.Equal(t, fault.Canceled, fault.ClassOf(end()))
	require.ErrorContains(t, dst.whys(), "nothing was heard for 3.5s")
}

func TestPatienceIsOver(t *testing.T) {
	_, tool, operator := node(t)
	dst := &sink{t: t}
	o := dst.options()
	o.Patience = time.Second
	start := time.Now()
	err := operator.Follow(t.Context(), journal1, o)
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "nobody serves it")
	require.Less(t, time.Since(start), 500*time.Millisecond, "the first attempt is told at once")

	src := newSource()
	src.pause = time.Millisecond
	_, stop := streams(t, tool, mesh.Endpoint{Stream: src.stream})
	done := make(chan error, 1)
	go func() { done <- operator.Follow(t.Context(), journal1, o) }()
	reaches(t, dst, 10)
	require.NoError(t, stop())
	start = time.Now()
	err = <-done
	require.Equal(t, fault.Unavailable, fault.ClassOf(err))
	require.ErrorContains(t, err, "nobody serves it")
	require.InDelta(t, 1.5, time.Since(start).Seconds(), 1.5)
}

func TestErrorsOfAStreamReachItsCaller(t *testing.T) {
	m, tool, operator := node(t)
	release := make(chan struct{})
	defer close(release)
	var ctxs atomic.Int64
	s, _ := streams(t, tool, mesh.Endpoint{Streams: 2, Stream: func(ctx context.Context, r mesh.Request, st *mesh.Stream) error {
		switch string(r.Payload) {
		case "bad":
			return fault.New(fault.Invalid, "read", "journal", errors.New("since: no time")).WithHint("give a time")
		case "late":
			if err := st.Send([]byte("one"), "1"); err != nil {
				return err
			}
			return fault.New(fault.Failed, "read", "journal", errors.New("it broke"))
		case "panic":
			panic("a defect")
		case "no cursor":
			return st.Send(nil, "")
		case "odd cursor":
			return st.Send(nil, "a\r\nb: c")
		case "large":
			return st.Send(make([]byte, identity.MaxPayload), "1")
		case "hang":
			ctxs.Add(1)
			<-release
		}
		return nil
	}})
	var got int
	follow := func(ctx context.Context, c *mesh.Conn, what string) error {
		got = 0
		return c.Follow(ctx, journal1, mesh.FollowOptions{
			Request: func(string) []byte { return []byte(what) }, Take: func(mesh.Chunk) error { got++; return nil },
		})
	}
	err := follow(t.Context(), operator, "bad")
	require.Equal(t, fault.Invalid, fault.ClassOf(err))
	require.ErrorContains(t, err, "read: journal: since: no time")
	require.Equal(t, "give a time", fault.HintOf(err))
	err = follow(t.Context(), operator, "late")
	require.Equal(t, fault.Failed, fault.ClassOf(err))
	require.Equal(t, 1, got)
	for what, class := range map[string]fault.Class{
		"panic": fault.Internal, "no cursor": fault.Internal, "odd cursor": fault.Internal, "large": fault.Failed,
	} {
		require.Equal(t, class, fault.ClassOf(follow(t.Context(), operator, what)), what)
	}
	for range 2 {
		_ = follow(within(t, 300*time.Millisecond), operator, "hang")
	}
	require.EqualValues(t, 2, ctxs.Load())
	err = follow(t.Context(), operator, "bad")
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "hung handlers keep their places")
	require.ErrorContains(t, err, "busy: 2 streams run")
	require.Equal(t, 2, s.Statistics()["journal"].Streams)
	require.Equal(t, 1, s.Statistics()["journal"].Busy)

	reply, err := operator.Call(t.Context(), journal1, []byte("a call"))
	require.NoError(t, err)
	require.Equal(t, "a call", string(reply), "calls are answered besides")

	err = follow(within(t, time.Second), m.Connect(identity.Viewer, "vera"), "bad")
	require.Equal(t, fault.Denied, fault.ClassOf(err), "%v", err)
}

func TestWhatCannotBeFollowedIsNamed(t *testing.T) {
	_, tool, operator := node(t)
	streams(t, tool, mesh.Endpoint{})
	follow := func(subject string) error {
		return operator.Follow(t.Context(), subject, (&sink{t: t}).options())
	}
	err := follow(journal1)
	require.Equal(t, fault.Unsupported, fault.ClassOf(err))
	require.ErrorContains(t, err, "it cannot be followed")
	require.Equal(t, fault.Invalid, fault.ClassOf(follow("seat.v1.r._all.node-service-manager.journal")))
	require.Equal(t, fault.Invalid, fault.ClassOf(follow("mesh.v1.r.get")))
	require.Equal(t, fault.Internal, fault.ClassOf(operator.Follow(t.Context(), journal1, mesh.FollowOptions{})))
}

func TestHungStreamDoesNotHoldUpTheEndOfAService(t *testing.T) {
	_, tool, operator := node(t)
	release, inside := make(chan struct{}), make(chan struct{}, 8)
	defer close(release)
	_, stop := streams(t, tool, mesh.Endpoint{Stream: func(context.Context, mesh.Request, *mesh.Stream) error {
		inside <- struct{}{}
		<-release
		return nil
	}})
	o := (&sink{t: t}).options()
	o.Patience = time.Millisecond
	done := make(chan error, 1)
	go func() { done <- operator.Follow(t.Context(), journal1, o) }()
	<-inside
	start := time.Now()
	require.ErrorContains(t, stop(), "1 handlers do not end")
	require.Less(t, time.Since(start), 2*time.Second)
	require.Equal(t, fault.Unavailable, fault.ClassOf(<-done))
}

func TestConnectionFollowsSoManyStreams(t *testing.T) {
	_, tool, operator := node(t)
	s, _ := streams(t, tool, mesh.Endpoint{Streams: 300, Stream: func(ctx context.Context, _ mesh.Request, _ *mesh.Stream) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	for range 256 {
		follows(t, operator, (&sink{t: t}).options())
	}
	require.Eventually(t, func() bool { return s.Statistics()["journal"].Streams == 256 }, patience, 10*time.Millisecond)
	err := operator.Follow(t.Context(), journal1, (&sink{t: t}).options())
	require.Equal(t, fault.Refused, fault.ClassOf(err), "%v", err)
	_, err = operator.Call(t.Context(), journal1, nil)
	require.NoError(t, err)
}

func TestFollowEndsWithItsConnection(t *testing.T) {
	m, tool, _ := node(t)
	src, dst := newSource(), &sink{t: t}
	src.pause = time.Millisecond
	streams(t, tool, mesh.Endpoint{Stream: src.stream})
	operator := m.Connect(identity.Operator, "otto")
	o := dst.options()
	o.Patience = -1
	done := make(chan error, 1)
	go func() { done <- operator.Follow(t.Context(), journal1, o) }()
	reaches(t, dst, 10)
	operator.Close()
	select {
	case err := <-done:
		require.Error(t, err)
	case <-time.After(5 * time.Second):
		t.Fatal("it goes on without a connection")
	}
}
