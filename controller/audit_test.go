package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/wire"
)

// stream is an audit stream that can fail.
type stream struct {
	mu     sync.Mutex
	fails  int
	blind  bool
	events []wire.Event
}

func (s *stream) Append(_ context.Context, events ...wire.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		return fault.New(fault.Unavailable, "append", "", errors.New("out of reach"))
	}
	s.events = append(s.events, events...)
	return nil
}

// Page has two events on a page.
func (s *stream) Page(_ context.Context, r wire.EventsRequest) (wire.EventsReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blind {
		return wire.EventsReply{}, fault.New(fault.Unavailable, "page", "", errors.New("out of reach"))
	}
	end := min(len(s.events), int(r.After)+2)
	return wire.EventsReply{Events: s.events[r.After:end], Next: uint64(end), More: end < len(s.events)}, nil
}

func (s *stream) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.events)
}

func TestEventsAreStoredBehindTheAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{fails: 2}
		a := newAudit(s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.run(ctx, &assign.State{}) }()
		start := time.Now()
		a.add(ctx, wire.Event{ID: "1"})
		require.Equal(t, start, time.Now(), "whoever commits does not wait")
		time.Sleep(3 * auditPause)
		require.Equal(t, 1, s.len())

		for range auditQueue {
			a.add(ctx, wire.Event{ID: "2"})
		}
		cancel()
		require.NoError(t, <-done)
		require.Len(t, s.events, 1+auditQueue, "those that wait are stored at the end")

		full, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		for range auditQueue + 1 { // nobody takes them any more
			a.add(full, wire.Event{ID: "3"})
		}
		require.Error(t, full.Err(), "who has too many waits, and not for ever")
	})
}

func TestAnEndThatCannotStoreEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stream{fails: 1000}
		a := newAudit(s, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- a.run(ctx, &assign.State{}) }()
		a.add(ctx, wire.Event{ID: "1"})
		a.add(ctx, wire.Event{ID: "2"})
		synctest.Wait()
		cancel()
		start := time.Now()
		require.NoError(t, <-done)
		require.LessOrEqual(t, time.Since(start), 2*auditFor+auditPause)
	})
}

func TestEventsAreMadeOfWhatWasCommitted(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	before := &assign.State{Epoch: "e", Revision: 10,
		Declarations: map[string]*assign.Declaration{
			"same": {Name: "same", Generation: 1, Revision: 4, At: now.Add(-time.Hour)}, "old": {Name: "old", Generation: 2, Revision: 5},
		},
		Nodes: map[string]*assign.Node{"ws1": {Name: "ws1", Revision: 3, Linger: "auto", Labels: map[string]string{"a": "1", "b": "1"}}, "ws3": {Name: "ws3", Revision: 3, Account: "opal"}},
	}
	after := &assign.State{Epoch: "e", Revision: 15,
		Declarations: map[string]*assign.Declaration{
			"same": before.Declarations["same"], "old": {Name: "old", Generation: 2, Revision: 11, Withdrawn: true, By: "operator bob", At: now},
			"web": {Name: "web", Generation: 7, Revision: 12, By: "operator alice", At: now},
		},
		Nodes: map[string]*assign.Node{
			"ws1": {Name: "ws1", Revision: 13, Linger: "on", Account: "opal", Labels: map[string]string{"a": "2", "c": "1"}, At: now},
			"ws2": {Name: "ws2", Revision: 14, At: now},
			"ws3": {Name: "ws3", Revision: 15, At: now},
		},
	}
	events := auditOf(before, after, []wire.Change{{Name: "web", How: wire.Edited, Fields: []string{"content", "ensure"}}})
	require.Equal(t, []wire.Event{
		{ID: "e.11", At: now, Source: "controller", Who: "operator bob", Kind: "withdraw", Declaration: "old", Generation: 2, Revision: 11, Text: "withdrawn"},
		{ID: "e.12", At: now, Source: "controller", Who: "operator alice", Kind: "apply", Declaration: "web", Generation: 7, Revision: 12, Text: "changed: content, ensure"},
		{ID: "e.13", At: now, Source: "controller", Kind: "node", Node: "ws1", Revision: 13, Text: `label a=2, label c=1, no label b, account "opal", linger on`},
		{ID: "e.14", At: now, Source: "controller", Kind: "node", Node: "ws2", Revision: 14, Text: "known"},
		{ID: "e.15", At: now, Source: "controller", Kind: "node", Node: "ws3", Revision: 15, Text: "no account"},
	}, events)
}

func TestEventsOfAKilledControllerAreFoundAgain(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	st := &assign.State{Epoch: "e", Revision: 9, Nodes: map[string]*assign.Node{"ws1": {Name: "ws1", Revision: 9, At: now}},
		Declarations: map[string]*assign.Declaration{
			"a": {Name: "a", Revision: 5, At: now.Add(-2 * auditBack)}, "b": {Name: "b", Revision: 6, At: now.Add(-time.Minute)},
			"c": {Name: "c", Revision: 7, At: now.Add(-time.Minute)}, "d": {Name: "d", Revision: 8, At: now},
		}}
	s := &stream{events: []wire.Event{{ID: "host/e.8", Source: "host"}, {ID: "x", Source: "host"}, {ID: "e.7", Source: "controller"}, {ID: "e.8", Source: "host"}}}
	log := slog.New(slog.DiscardHandler)
	newAudit(s, log).catchUp(t.Context(), st)
	var ids []string
	for _, e := range s.events[4:] {
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"e.6", "e.8", "e.9"}, ids, "in their order; what was long before is stored long since")
	newAudit(s, log).catchUp(t.Context(), st)
	require.Len(t, s.events, 7, "nothing twice")

	blind := &stream{blind: true}
	newAudit(blind, log).catchUp(t.Context(), st)
	require.Empty(t, blind.events)
}
