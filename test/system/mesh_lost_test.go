package system

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/wire"
)

// keeps is a node that holds services, and a witness of what happens to them.
type keeps struct {
	*rig
	node  *machine
	heard *bus
	drift int // how often something drifted
}

// held are the names of the services. Each drifts once at most: a unit on which
// somebody insists is contested.
func held() []string { return []string{"s0", "s1", "s2", "s3", "s4"} }

// holding has the node ws1 of a mesh hold services.
func holding(t *testing.T, r *rig) *keeps {
	t.Helper()
	files := map[string]string{}
	for i, name := range held() {
		files[name] = addressed(name, []string{"all: true", "nodes: [ws1]"}[i%2], sleeper(i))
	}
	r.apply(files)
	k := &keeps{rig: r, node: r.nodes["ws1"]}
	k.heard = k.node.listen(t, nil)
	return k
}

func services() []string {
	var all []string
	for _, name := range held() {
		all = append(all, name+".service")
	}
	return all
}

// untouched checks that nothing was done to the services, and that their node still
// puts right what drifts.
func (k *keeps) untouched(when string) {
	k.Helper()
	require.Zero(k, k.heard.jobsOf(services()...), when)
	for i, unit := range services() {
		require.True(k, k.node.runs(unit, sleeper(i)), "%s %s", unit, when)
	}
	unit := services()[k.drift]
	k.node.Run(k.T, "systemctl", "stop", unit)
	k.node.until("drift is undone "+when, func() bool { return k.node.runs(unit, sleeper(k.drift)) })
	k.drift++
	k.heard.reset()
}

// says waits until the host of the node says why it accepts nothing, and gives it
// time to do something else about it.
func (k *keeps) says(words ...string) {
	k.Helper()
	last := ""
	k.node.until("the host says why", func() bool {
		st, err := k.node.status()
		if err != nil {
			return false
		}
		last = st.Source.Trouble
		for _, w := range words {
			if !strings.Contains(last, w) {
				return false
			}
		}
		return true
	}, &last)
	k.Logf("the host says: %s", last)
	time.Sleep(3 * time.Second)
}

// failing waits until the controller's unit does not start, and says why.
func (k *keeps) failing(words ...string) {
	k.Helper()
	last := ""
	k.ctl.until("the controller says why it does not start", func() bool {
		var err error
		last, err = k.ctl.Journal(k.Context(), "--output=cat", "--lines=20", "--unit="+controllerService)
		require.NoError(k, err)
		for _, w := range words {
			if !strings.Contains(last, w) {
				return false
			}
		}
		return true
	}, &last)
}

// beginEpoch starts the controller once with --begin-epoch, and then as always.
func (k *keeps) beginEpoch() {
	k.Helper()
	dropin := "/run/systemd/system/" + controllerService + ".d/begin.conf"
	require.NoError(k, k.ctl.WriteFile(dropin, []byte("[Service]\nExecStart=\nExecStart=/usr/local/bin/stead controller run --begin-epoch\n"), 0o644))
	k.ctl.Run(k.T, "sh", "-ec", "systemctl daemon-reload; systemctl restart "+controllerService+"; rm -r "+path.Dir(dropin)+"; systemctl daemon-reload")
	k.ctl.Run(k.T, "systemctl", "restart", controllerService)
}

// kept waits until the node says that it keeps these declarations of before.
func (k *keeps) kept(names ...string) {
	k.Helper()
	k.ctl.until("the node goes over", func() bool {
		for _, n := range k.get(wire.Nodes).Nodes {
			if n.Name == "ws1" && n.Source != nil {
				return strings.Join(n.Source.Kept, " ") == strings.Join(names, " ") && n.Source.Trouble == ""
			}
		}
		return false
	})
}

// TestAControllerThatLostItsStoreTakesNothingAway removes the controller's store.
// It does not start on an empty one; when it is told to begin anew, the node keeps
// what it holds until somebody says otherwise by name.
func TestAControllerThatLostItsStoreTakesNothingAway(t *testing.T) {
	k := holding(t, startMesh(t, "ws1"))
	k.ctl.Run(t, "systemctl", "stop", controllerService)
	k.ctl.Run(t, "rm", "-r", controllerState+"/store")
	k.ctl.Run(t, "systemctl", "start", "--no-block", controllerService)
	k.failing("the store is empty", "--begin-epoch")
	k.says("not connected")
	k.untouched("without a controller")

	k.beginEpoch()
	k.kept(held()...)
	k.untouched("in a new epoch that knows of nothing")
	require.Contains(t, k.node.Run(t, "sh", "-c", "stead host status || [ $? = 3 ]"), "stead withdraw", "what is kept is shown with its cure")

	k.write(map[string]string{"s4": ""})
	k.done("apply", "-f", declared, "--wait=1m")
	k.kept("s4")
	k.untouched("declared again")
	k.done("withdraw", "s4")
	k.kept()
	k.node.until("what was withdrawn by name goes", func() bool { return k.node.absent("s4.service") })
	k.reports("ws1 s0 1", "ws1 s1 1", "ws1 s2 1", "ws1 s3 1")
	require.Zero(t, k.heard.jobsOf(services()[:4]...))
}

// TestAnotherMeshAtTheAddressTakesNothingAway puts a controller with keys of its
// own in the place of the one that the node knows.
func TestAnotherMeshAtTheAddressTakesNothingAway(t *testing.T) {
	k := holding(t, startMesh(t, "ws1"))
	address := k.net.Address(k.ctl.Node)
	k.ctl.Run(t, "systemctl", "stop", controllerService)
	k.ctl.Run(t, "rm", "-r", controllerState)
	k.ctl.Run(t, "systemctl", "start", controllerService)
	k.says("certificate")
	k.untouched("with a controller that lost its keys")

	require.NoError(t, k.ctl.Down(t.Context()))
	k.ctl = bring(t, "ctl", k.net)
	require.Equal(t, address, k.net.Address(k.ctl.Node))
	k.ctl.Run(t, "systemctl", "enable", "--now", controllerService)
	k.says("certificate")
	k.untouched("with another machine at the address")

	// It is a mesh, and nothing of it reaches the node.
	k.operator("alice")
	k.done("node", "add", "ws1")
	k.ctl.Run(t, "mkdir", declared)
	k.write(map[string]string{"s0": addressed("s0", "all: true", sleeper(66))})
	k.done("apply", "-f", declared)
	time.Sleep(2 * time.Second)
	k.untouched("declared otherwise by another mesh")
	require.Nil(t, k.get(wire.Nodes).Nodes[0].Profile, "the node spoke to it")
}

// TestAnOldCopyOfTheStateTakesNothingAway puts all that the controller has back to
// how it was earlier. The controller cannot know; the node does, and proves it.
func TestAnOldCopyOfTheStateTakesNothingAway(t *testing.T) {
	r := startMesh(t, "ws1")
	r.done("node", "label", "ws1", "since=then")
	r.ctl.Run(t, "systemctl", "stop", controllerService)
	r.ctl.Run(t, "cp", "-a", controllerState, "/root/copy")
	r.ctl.Run(t, "systemctl", "start", controllerService)
	k := holding(t, r)

	k.ctl.Run(t, "systemctl", "stop", controllerService)
	k.ctl.Run(t, "sh", "-ec", "rm -r "+controllerState+"; cp -a /root/copy "+controllerState)
	k.ctl.Run(t, "systemctl", "start", controllerService)
	k.says("rolled back")
	k.untouched("with an old copy of the state")
	require.Contains(t, k.stead("get", "declarations").Stderr, "rolled back", "people are told too")
	out := k.stead("apply", "-f", declared)
	require.Equal(t, 1, out.Code, out.Stdout)
	require.Contains(t, out.Stderr, "--begin-epoch")

	k.beginEpoch()
	k.kept(held()...)
	k.done("apply", "-f", declared, "--wait=1m")
	k.kept()
	k.untouched("declared again")
	require.Equal(t, map[string]string{"since": "then"}, k.get(wire.Nodes).Nodes[0].Labels)
	k.reports("ws1 s0 1", "ws1 s1 1", "ws1 s2 1", "ws1 s3 1", "ws1 s4 1")
}
