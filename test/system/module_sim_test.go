package system

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/client"
	"stead/mesh/wire"
	"stead/modules"
	"stead/test/lab"
)

// desk is a module without a line of code: it declares a unit where there is a
// service manager.
func desk(seconds string) []modules.Manifest {
	return append(modules.Catalogue(), modules.Manifest{Name: "desk", Version: 1, Meaning: "m", Requires: wire.ServiceManager,
		Declarations: []string{"shape: service\nname: watch\nensure: running\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep " + seconds + "\n"}})
}

// standing waits until the node reports a declaration of that generation as
// converged.
func (s *simulation) standing(c *client.Client, name string, generation uint64) {
	s.t.Helper()
	require.True(s.t, lab.Await(patience, func() bool {
		p, err := c.Progress(s.within(patience), wire.ProgressRequest{Wire: wire.Version, Names: []string{name}})
		return err == nil && p.Names[0].Generation == generation && p.Names[0].Outcomes[report.Converged] == 1
	}), "%s does not converge", name)
}

// TestWhatAModuleDeclaresIsAppliedAndGoesWithIt on a real host: it is a declaration
// like any other, and no restart of either side takes it for gone.
func TestWhatAModuleDeclaresIsAppliedAndGoesWithIt(t *testing.T) {
	s := newSimulation(t)
	alice := s.operator("alice")
	n := s.node("n1")
	n.start()
	require.True(t, lab.Await(patience, func() bool { return s.nodes(alice, wire.Ready) == 1 }))
	file := filepath.Join(n.etc(), "watch.service")
	bring := func(all []modules.Manifest) {
		s.stopController()
		s.modules = all
		s.startController()
	}

	bring(desk("100"))
	s.standing(alice, "desk.watch", 1)
	require.FileExists(t, file)
	n.drift("watch.service")

	bring(desk("200"))
	s.standing(alice, "desk.watch", 2)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "sleep 200")

	uid := s.uid(alice, "desk.watch")
	for range 3 { // its host says what the node can before and after its manager answers
		n.stop()
		n.start()
		require.Never(t, func() bool { _, err := os.Stat(file); return err != nil }, 300*time.Millisecond, 10*time.Millisecond)
	}
	require.Equal(t, uid, s.uid(alice, "desk.watch"))
	s.standing(alice, "desk.watch", 2)

	bring(nil)
	require.True(t, lab.Await(patience, func() bool { _, err := os.Stat(file); return os.IsNotExist(err) }), "it is withdrawn")
	require.Empty(t, s.uid(alice, "desk.watch"))
}

// uid is that of a declaration, "" for none.
func (s *simulation) uid(c *client.Client, name string) string {
	s.t.Helper()
	uid := ""
	require.NoError(s.t, c.Get(s.within(patience), wire.GetRequest{Wire: wire.Version, Kind: wire.Declarations, Names: []string{name}}, func(p wire.GetReply) error {
		for _, d := range p.Declarations {
			uid = d.UID
		}
		return nil
	}))
	return uid
}
