package admit

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/host/shape"
	"stead/mesh/wire"
)

func TestAWithdrawalSaysForWhomItIs(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(w *world)
		force   bool
		uid     string
		writes  bool
	}{
		"it stands":                         {func(w *world) { w.landed(service("web", "nodes: [web1]")) }, false, "uid1", true},
		"it stands, and is kept somewhere":  {func(w *world) { w.landed(service("web", "nodes: [web1]")); w.kept["web"] = []string{"web2"} }, false, wire.AnyUID, true},
		"it is kept alone":                  {func(w *world) { w.kept["web"] = []string{"web2"} }, false, wire.AnyUID, true},
		"it may be kept":                    {func(*world) {}, true, wire.AnyUID, true},
		"it was withdrawn":                  {func(w *world) { w.landed(service("web", "nodes: [web1]")); w.line([]string{"withdrawn", "web"}) }, false, "uid1", false},
		"it was withdrawn, and is kept yet": {func(w *world) { w.kept["web"] = []string{"web2"}; w.line([]string{"withdrawn", "web"}) }, false, wire.AnyUID, true},
		"it was withdrawn, and may be kept": {func(w *world) { w.landed(service("web", "nodes: [web1]")); w.line([]string{"withdrawn", "web"}) }, true, wire.AnyUID, true},
		"it cannot be read":                 {func(w *world) { w.state.UnreadableDeclarations["web"] = "why" }, true, wire.AnyUID, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).node("web1").node("web2")
			c.prepare(w)
			d := w.withdraw(wire.WithdrawRequest{Names: []string{"web", "web"}, Force: c.force, Yes: true})
			require.Empty(t, d.Reply.Problems)
			require.Equal(t, c.writes, len(d.Writes) == 1)
			stands := w.state.Declarations["web"]
			require.True(t, stands.Withdrawn)
			require.Equal(t, c.uid, stands.UID)
			require.Empty(t, w.state.UnreadableDeclarations)
			require.Len(t, d.Reply.Changes, 1)
			require.Empty(t, d.Reply.Changes[0].Mark)
		})
	}
}

func TestAWithdrawalIsBounded(t *testing.T) {
	w := newWorld(t).node("web1")
	var names []string
	for i := range shape.MaxDeclarations + 1 {
		names = append(names, fmt.Sprintf("d%d", i))
	}
	d := w.withdraw(wire.WithdrawRequest{Names: names, Force: true})
	require.Equal(t, "1001 declarations are named; at most 1000 are withdrawn at once", d.Reply.Problems[0].Rule)
	d = w.withdraw(wire.WithdrawRequest{Names: names[1:], Force: true})
	require.Len(t, d.Writes, 1000)

	d = w.withdraw(wire.WithdrawRequest{Names: []string{strings.Repeat("a", 2000), "a\nb", "a.b"}, Force: true})
	require.Len(t, d.Reply.Problems, 3, "no key is made of what is no name")
	checkReply(t, d)
}

// TestSureAsksWhereMuchIsTaken walks along both sides of each bound.
func TestSureAsksWhereMuchIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		nodes, everywhere, onFirst int // declarations on all nodes, and on the first alone
		take                       []string
		want                       string
	}{
		"one of many on ten nodes":    {10, 3, 0, []string{"all0"}, ""},
		"one of many on eleven nodes": {11, 3, 0, []string{"all0"}, "1 declaration would be taken from 11 nodes\n  all0  11 nodes  n0, n1, n10 and 8 more"},
		"six of two on five nodes":    {5, 6, 0, []string{"all0", "all1"}, ""},
		"three of five on four nodes": {4, 5, 0, []string{"all0", "all1", "all2"}, "3 declarations would be taken from 4 nodes\n" +
			"  all0  4 nodes  n0, n1, n2 and 1 more\n  all1  4 nodes  n0, n1, n2 and 1 more\n  all2  4 nodes  n0, n1, n2 and 1 more"},
		"all of a node, two":           {2, 0, 2, []string{"one0", "one1"}, "2 declarations would be taken from node \"n0\", and that is all there is: one0, one1"},
		"the only one of one node":     {2, 0, 1, []string{"one0"}, ""},
		"all of a node, two of others": {2, 1, 2, []string{"one0", "one1"}, ""},
		"four of twenty":               {1, 0, 20, []string{"one0", "one1", "one2", "one3"}, ""},
		"five of twenty-five":          {1, 0, 25, []string{"one0", "one1", "one2", "one3", "one4"}, ""},
		"five of twenty-four": {1, 0, 24, []string{"one0", "one1", "one2", "one3", "one4"},
			"5 declarations would be taken from node \"n0\": one0, one1, one2, one3, one4\n  n0 would lose 5 of its 24"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for i := range c.nodes {
				w.node(fmt.Sprintf("n%d", i))
			}
			for i := range c.everywhere {
				w.landed(service(fmt.Sprintf("all%d", i), "all: true"))
			}
			for i := range c.onFirst {
				w.landed(service(fmt.Sprintf("one%d", i), "nodes: [n0]"))
			}
			r := wire.WithdrawRequest{Names: c.take}
			d := w.withdraw(r)
			require.Equal(t, c.want, d.Reply.Sure)
			require.Equal(t, c.want != "", len(d.Writes) == 0)
			r.Yes = true
			require.Equal(t, c.want != "", len(w.withdraw(r).Writes) == len(c.take), "and Yes agrees to it")
		})
	}
}

func TestSureIsShort(t *testing.T) {
	w := newWorld(t)
	for i := range 30 {
		w.node(fmt.Sprintf("n%02d", i))
	}
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("d%02d", i))
		w.landed(service(names[i], "all: true"))
	}
	d := w.withdraw(wire.WithdrawRequest{Names: names})
	lines := strings.Split(d.Reply.Sure, "\n")
	require.Len(t, lines, 1+11+11)
	require.Equal(t, "40 declarations would be taken from 30 nodes, and that is all there is", lines[0])
	require.Equal(t, "  d00  30 nodes  n00, n01, n02 and 27 more", lines[1])
	require.Equal(t, "  and 30 further declarations", lines[11])
	require.Equal(t, "  n00 would be left with none of its 40", lines[12])
	require.Equal(t, "  and 20 further nodes would lose as much", lines[22])

	w.kept["old"] = []string{"n00", "n01"}
	d = w.withdraw(wire.WithdrawRequest{Names: []string{"old"}})
	require.Empty(t, d.Reply.Sure, "there is more than that")
	require.Equal(t, 2, d.Reply.Changes[0].Loses)
	require.Equal(t, []*assign.Declaration{{Name: "old", UID: wire.AnyUID, Withdrawn: true, By: "operator alice", At: w.now.Add(26 * 3600e9)}}, d.Writes)
}
