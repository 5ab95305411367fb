package system

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/mesh/wire"
	"stead/test/lab"
)

const (
	// declared is the folder from which operators apply, on the controller's node.
	declared = "/root/mesh"
	// controllerState is the controller's folder. The account that it belongs to is
	// nobody's while the controller does not run.
	controllerState = "/var/lib/private/stead-controller"
)

// rig is a mesh on a network of its own: the node ctl with a controller, from
// which the operator alice gives her commands, and nodes with hosts.
type rig struct {
	*testing.T
	net   *lab.Network
	ctl   *machine
	nodes map[string]*machine
}

// startMesh boots a mesh with these nodes. It makes the test parallel.
func startMesh(t *testing.T, nodes ...string) *rig {
	t.Helper()
	return startMeshWith(t, 0, nodes...)
}

// startMeshWith boots a mesh with these nodes, that so many will join later.
func startMeshWith(t *testing.T, later int, nodes ...string) *rig {
	t.Helper()
	t.Parallel()
	reserve(t, int64(1+len(nodes)+later))
	r := &rig{T: t, net: lab.StartNetwork(t, lab.NetworkOptions{}), nodes: map[string]*machine{}}
	r.ctl = bring(t, "ctl", r.net)
	r.ctl.Run(t, "systemctl", "enable", "--now", controllerService)
	r.ctl.Run(t, "mkdir", declared)
	r.operator("alice")
	for _, name := range nodes {
		r.join(name)
	}
	return r
}

// operator makes credentials of another operator, and has root on the
// controller's node take them over as a context of that name.
func (r *rig) operator(name string) {
	r.Helper()
	file := "/root/" + name + ".json"
	r.ctl.Run(r.T, "stead", "credentials", "operator", name, "--out", file)
	r.ctl.Run(r.T, "stead", "context", "add", file)
}

// join boots another node of the mesh; it returns when the mesh knows it.
func (r *rig) join(name string) *machine {
	r.Helper()
	m := bring(r.T, name, r.net)
	r.nodes[name] = m
	r.ctl.Run(r.T, "stead", "credentials", "node", name, "--out", "/root/"+name)
	for file := range strings.FieldsSeq(r.ctl.Run(r.T, "ls", "/root/"+name)) {
		data, err := r.ctl.ReadFile(path.Join("/root", name, file))
		require.NoError(r, err)
		require.NoError(r, m.WriteFile("/etc/stead/credentials/"+file, data, 0o600))
	}
	m.Run(r.T, "systemctl", "enable", "--now", service)
	m.until("the mesh knows "+name, func() bool {
		return slices.ContainsFunc(r.get(wire.Nodes).Nodes, func(n wire.Node) bool { return n.Name == name && n.Profile != nil })
	})
	return m
}

// stead gives a command, as alice unless it names another context.
func (r *rig) stead(args ...string) lab.Output {
	r.Helper()
	out, err := r.ctl.Exec(r.Context(), append([]string{"stead"}, args...)...)
	require.NoError(r, err)
	return out
}

// done gives a command that must be done.
func (r *rig) done(args ...string) string {
	r.Helper()
	out := r.stead(args...)
	require.Zero(r, out.Code, "stead %q: %s%s", args, out.Stdout, out.Stderr)
	return out.Stdout
}

// refused gives a command that must be refused with this exit code, and say all of
// these words. The mesh must be as it was.
func (r *rig) refused(code int, args []string, words ...string) {
	r.Helper()
	before := r.revision()
	out := r.stead(args...)
	require.Equal(r, code, out.Code, "stead %q: %s%s", args, out.Stdout, out.Stderr)
	for _, w := range words {
		require.Contains(r, out.Stderr, w, "stead %q", args)
	}
	require.Contains(r, out.Stderr, "error: ", "stead %q", args)
	require.Regexp(r, `\nhint: .|\n  .*; .`, out.Stderr, "stead %q: the cure", args)
	require.Equal(r, before, r.revision(), "stead %q changed something", args)
}

// write puts files of declarations into the folder; "" removes one.
func (r *rig) write(files map[string]string) {
	r.Helper()
	for name, docs := range files {
		to := path.Join(declared, name+".yaml")
		if docs == "" {
			require.NoError(r, r.ctl.Remove(to))
		} else {
			require.NoError(r, r.ctl.WriteFile(to, []byte(docs), 0o644))
		}
	}
}

// apply writes files and applies the folder; it returns when all is converged.
func (r *rig) apply(files map[string]string) {
	r.Helper()
	r.write(files)
	r.done("apply", "-f", declared, "--wait=1m")
}

// get asks the mesh for all of one kind.
func (r *rig) get(kind string, args ...string) wire.GetReply {
	r.Helper()
	var reply wire.GetReply
	out := r.done(append([]string{"get", kind, "-o", "json"}, args...)...)
	require.NoError(r, json.Unmarshal([]byte(out), &reply), out)
	return reply
}

func (r *rig) revision() uint64 {
	r.Helper()
	return r.get(wire.Declarations).Revision
}

// events are all that the mesh was told of.
func (r *rig) events(args ...string) []wire.Event {
	r.Helper()
	var all []wire.Event
	out := r.done(append([]string{"events", "--since", "1h", "-o", "json"}, args...)...)
	require.NoError(r, json.Unmarshal([]byte(out), &all), out)
	return all
}

// reports waits until exactly these reports are in, as "NODE NAME GENERATION",
// all of them converged.
func (r *rig) reports(want ...string) {
	r.Helper()
	slices.Sort(want)
	var got []string
	last := ""
	r.ctl.until("reports are in", func() bool {
		got, last = nil, ""
		for _, one := range r.get(wire.Reports).Reports {
			line := fmt.Sprintf("%s %s %d", one.Node, one.Name, one.Generation)
			if one.Outcome != report.Converged {
				line += fmt.Sprintf(" %s %s %s", one.Outcome, one.Reason, one.Text)
			}
			got = append(got, line)
		}
		slices.Sort(got)
		last = fmt.Sprintf("want %q, have %q", want, got)
		return slices.Equal(got, want)
	}, &last)
}

// runs is whether a unit of this node runs what this unit file says.
func (m *machine) runs(unit, content string) bool {
	return m.read(path.Join(etc, unit)) == content && m.prop(unit, "ActiveState") == "active" && m.prop(unit, "NeedDaemonReload") == "no"
}

// absent is whether nothing is left of a unit.
func (m *machine) absent(unit string) bool {
	_, err := os.Lstat(m.Path(path.Join(etc, unit)))
	return os.IsNotExist(err) && m.link(path.Join(etc, "multi-user.target.wants", unit)) == "" &&
		m.prop(unit, "LoadState") == "not-found" && m.prop(unit, "ActiveState") == "inactive"
}

// addressed is the declaration of a service that runs and is enabled, on these
// nodes: a line such as "all: true".
func addressed(name, to, content string) string {
	return text{name, to + "\nensure: running\nenabled: true\n", content}.String()
}
