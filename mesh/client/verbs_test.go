package client

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/subject"
)

// nodes answer as a test tells them to, by node.
type nodes struct {
	one func(node, subject string) ([]byte, error)
	all []mesh.Reply
	err error
	log []string
}

func (n *nodes) Insist(_ context.Context, to string, payload []byte) ([]byte, error) {
	return n.one(strings.Split(to, ".")[3], to)
}

func (n *nodes) CallAll(_ context.Context, to string, payload []byte, take func(mesh.Reply) bool) error {
	n.log = append(n.log, to+" "+string(payload))
	for _, r := range n.all {
		if !take(r) {
			return nil
		}
	}
	return n.err
}

func (n *nodes) Follow(ctx context.Context, to string, o mesh.FollowOptions) error {
	for _, r := range n.all {
		n.log = append(n.log, string(o.Request(r.From)))
		if err := o.Take(mesh.Chunk{Payload: r.Payload}); err != nil {
			return err
		}
	}
	if o.Patience >= 0 {
		return errors.New("it would give up")
	}
	if n.err == nil {
		return ctx.Err()
	}
	return n.err
}

func reading() Verb { return Verb{subject.Read, "node-service-manager", "units"} }

func TestEachNodeIsCalledAndHandedOverOnce(t *testing.T) {
	busy := fault.New(fault.Unavailable, "call", "units", errors.New("busy"))
	late := fault.New(fault.Timeout, "wait for job", "web.service", errors.New("job 5 goes on"))
	s := NewVerbs(&nodes{one: func(node, to string) ([]byte, error) {
		switch node {
		case "n1":
			return []byte(`{"a":1}`), nil
		case "n2":
			return nil, fault.New(fault.Timeout, "call", to, errors.New("late"))
		case "n3":
			return nil, fault.New(fault.Unavailable, "call", to, errors.New("nobody serves it"))
		case "n4":
			return nil, busy
		case "n6":
			return nil, late
		}
		return []byte("{"), nil
	}})
	got := map[subject.Node]Answer{}
	acting := Verb{subject.Write, "node-service-manager", "stop"}
	s.CallEach(t.Context(), acting, []subject.Node{"n1", "n2", "n3", "n4", "n5", "n6"}, struct{}{}, func(a Answer) { got[a.Node] = a })
	require.Equal(t, Answer{Node: "n1", Reply: json.RawMessage(`{"a":1}`)}, got["n1"])
	require.Equal(t, Answer{Node: "n2", Silent: "no answer in time; it may have been done"}, got["n2"])
	require.Equal(t, Answer{Node: "n3", Silent: "nobody serves it"}, got["n3"])
	require.Equal(t, Answer{Node: "n4", Err: busy}, got["n4"], "who answers that it is busy is not silent")
	require.Equal(t, Answer{Node: "n6", Err: late}, got["n6"], "a tool that says so is an answer")
	require.True(t, fault.Is(got["n5"].Err, fault.Internal))
	require.Equal(t, "no answer in time", s.Call(t.Context(), reading(), "n2", nil).Silent)
	require.Equal(t, fault.Internal, fault.ClassOf(s.Call(t.Context(), reading(), "n1", func() {}).Err))
}

func TestGatheringNamesWhoIsSilent(t *testing.T) {
	failed := fault.New(fault.Failed, "units", "", errors.New("no bus"))
	n := &nodes{all: []mesh.Reply{
		{From: "n2", Payload: []byte(`{}`)}, {From: "stranger", Payload: []byte(`{}`)}, {From: "n2", Payload: []byte(`{"again":1}`)}, {From: "n4", Err: failed},
		{From: "n5", Err: fault.New(fault.Timeout, "call", "units-all", errors.New("not done"))},
	}}
	var got []Answer
	take := func(a Answer) { got = append(got, a) }
	require.NoError(t, NewVerbs(n).Gather(t.Context(), reading(), []subject.Node{"n1", "n2", "n3", "n4", "n5"}, map[string]string{"k": "<v>"}, take))
	require.Equal(t, []Answer{{Node: "n2", Reply: json.RawMessage(`{}`)}, {Node: "n4", Err: failed}, {Node: "n5", Silent: "no answer in time"}, {Node: "n1", Silent: "no answer in time"}, {Node: "n3", Silent: "no answer in time"}}, got)
	require.Equal(t, []string{`seat.v1.r._all.node-service-manager.units {"k":"<v>"}`}, n.log)

	got = nil
	require.NoError(t, NewVerbs(n).Gather(t.Context(), reading(), nil, nil, take))
	require.Empty(t, got)

	n = &nodes{err: fault.New(fault.Unavailable, "call", reading().On(subject.All), errors.New("nobody serves it"))}
	require.NoError(t, NewVerbs(n).Gather(t.Context(), reading(), []subject.Node{"n1"}, nil, take))
	require.Equal(t, []Answer{{Node: "n1", Silent: "nobody serves it"}}, got)

	n.err = fault.New(fault.Unavailable, "connect", "stead", errors.New("no connection yet"))
	require.ErrorIs(t, NewVerbs(n).Gather(t.Context(), reading(), []subject.Node{"n1"}, nil, take), n.err)
	require.Len(t, got, 1, "nobody was asked")
	require.True(t, fault.Is(NewVerbs(n).Gather(t.Context(), reading(), []subject.Node{"n1"}, func() {}, take), fault.Internal))
}

func TestFollowingTellsHowItEnded(t *testing.T) {
	var got []string
	of := Stream{Node: "n1", Arguments: func(cursor string) any { return map[string]string{"cursor": cursor} },
		Take: func(reply json.RawMessage) error { got = append(got, string(reply)); return nil }}
	n := &nodes{all: []mesh.Reply{{Payload: []byte("1")}, {From: "c1", Payload: []byte("2")}}}
	require.Equal(t, Answer{Node: "n1"}, NewVerbs(n).Follow(t.Context(), reading(), of))
	require.Equal(t, []string{"1", "2"}, got)
	require.Equal(t, []string{`{"cursor":""}`, `{"cursor":"c1"}`}, n.log)

	n.err = fault.New(fault.Unavailable, "call", reading().On("n1"), errors.New("nobody serves it"))
	require.Equal(t, Answer{Node: "n1", Silent: "nobody serves it"}, NewVerbs(n).Follow(t.Context(), reading(), of))
	n.err = fault.New(fault.Refused, "journal", "", errors.New("no"))
	require.Equal(t, Answer{Node: "n1", Err: n.err}, NewVerbs(n).Follow(t.Context(), reading(), of))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.err = fault.New(fault.Canceled, "follow", reading().On("n1"), ctx.Err())
	require.Equal(t, Answer{Node: "n1"}, NewVerbs(n).Follow(ctx, reading(), of))
	of.Arguments = func(string) any { return func() {} }
	require.True(t, fault.Is(NewVerbs(n).Follow(ctx, reading(), of).Err, fault.Internal))
}
