package system

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/wire"
	"stead/test/lab"
)

// simulatedHosts is how many hosts of one process share a mesh.
const simulatedHosts = 200

// TestManyHostsTakeOneApply shows that one apply reaches every node and every
// report comes back, on real hosts, connections, and a real controller; only the
// service managers are fakes.
func TestManyHostsTakeOneApply(t *testing.T) {
	s := newSimulation(t)
	alice := s.operator("alice")
	before := inUse()
	begun := time.Now()
	nodes := make([]*simulated, simulatedHosts)
	for i := range nodes {
		nodes[i] = s.node(fmt.Sprintf("sim-%03d", i))
		nodes[i].start()
	}
	require.True(t, lab.Await(2*patience, func() bool { return s.nodes(alice, wire.Ready) == simulatedHosts }), "%d are ready", s.nodes(alice, wire.Ready))
	t.Logf("%d hosts started and known: %v", simulatedHosts, time.Since(begun).Round(time.Millisecond))

	first := s.rollout(t, "first apply", sleeping("web", "all: true", 1000))
	second := s.rollout(t, "second apply", sleeping("web", "all: true", 2000))
	require.Greater(t, second, first)
	t.Logf("memory: %.0f MiB for all, server and controller too; %.2f MiB for each host", float64(inUse())/(1<<20),
		float64(inUse()-before)/(1<<20)/simulatedHosts)
	for _, n := range nodes {
		st := n.host.Status()
		require.Equal(t, second, st.Source.Mesh.Revision, n.name)
		require.True(t, st.Source.Mesh.Connected)
		require.Empty(t, st.Source.Trouble)
		text, err := os.ReadFile(filepath.Join(n.etc(), "web.service"))
		require.NoError(t, err)
		require.Contains(t, string(text), "sleep 2000")
	}
}

// rollout applies text and waits until every node has reported that it converged.
// The second in which a unit must stay up before it counts is in the time.
func (s *simulation) rollout(t *testing.T, what, text string) uint64 {
	t.Helper()
	c := s.operator("bob")
	begun := time.Now()
	reply := s.apply(c, text)
	landed := time.Since(begun)
	var p wire.ProgressOfName
	require.True(t, lab.Await(2*patience, func() bool {
		all, err := c.Progress(s.within(patience), wire.ProgressRequest{Wire: wire.Version, Names: []string{"web"}, Least: reply.Revision})
		require.NoError(t, err)
		p = all.Names[0]
		return p.Nodes == simulatedHosts && p.Outcomes[report.Converged] == simulatedHosts
	}), "%+v", &p)
	t.Logf("%s: stored in %v, every report in after %v", what, landed.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	return reply.Revision
}

// inUse is what the process holds in memory, after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestWhatHappenedWhileNobodyListenedIsToldOnce stops the controller, lets a unit
// drift, starts the host anew in between, and reads the audit stream afterwards.
func TestWhatHappenedWhileNobodyListenedIsToldOnce(t *testing.T) {
	s := newSimulation(t)
	alice := s.operator("alice")
	n := s.node("web1")
	n.start()
	require.True(t, lab.Await(patience, func() bool { return s.nodes(alice, wire.Ready) == 1 }))
	s.apply(alice, sleeping("web", "nodes: [web1]", 1000))
	told := func(kind string) (all []wire.Event) {
		reply, err := alice.Events(s.within(patience), wire.EventsRequest{Wire: wire.Version, Node: "web1", Declaration: "web", Last: 100})
		require.NoError(t, err)
		for _, e := range reply.Events {
			if e.Kind == kind {
				all = append(all, e)
			}
		}
		return all
	}
	require.True(t, lab.Await(patience, func() bool { return len(told("outcome")) == 1 }))
	require.Len(t, told("started"), 1)

	s.stopController()
	var undone []time.Time
	for i := range 2 {
		n.drift("web.service")
		undone = append(undone, time.Now())
		require.True(t, lab.Await(patience, func() bool { return n.host.Status().Source.Mesh.Events == i+1 }))
		n.stop()
		n.start()
		require.True(t, lab.Await(patience, func() bool { return len(n.host.Status().Reports) == 1 }))
	}
	require.Equal(t, 2, n.host.Status().Source.Mesh.Events, "they wait, and nothing is told anew")
	s.startController()
	require.True(t, lab.Await(patience, func() bool { return len(told("started")) == 3 }))
	for i, e := range told("started")[1:] {
		require.WithinDuration(t, undone[i], e.At, time.Second, "when it happened, not when it was heard of")
	}
	require.True(t, lab.Await(patience, func() bool { return n.host.Status().Source.Mesh.Events == 0 }))
	require.Len(t, told("started"), 3)
	require.Len(t, told("outcome"), 1, "it converged once, and has been so since")
}
