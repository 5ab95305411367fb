package controller_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

const manager = seats.NodeServiceManager

// agent is a runtime whose messages are made by hand.
type agent struct {
	w    *world
	name string
	conn *mesh.Conn
	held wire.Tools
	sent *wire.Signed
}

func (w *world) agent(node string) *agent {
	w.t.Helper()
	return &agent{w: w, name: node, conn: w.connect(identity.Runtime, node)}
}

func (a *agent) ask(t subject.Topic, request, reply any) error {
	a.w.t.Helper()
	return (&node{w: a.w, name: a.name, conn: a.conn}).ask(t, request, reply)
}

func (a *agent) request() wire.ToolsRequest {
	r := wire.ToolsRequest{Wire: wire.Version, Mesh: a.w.keys.ID(), Epoch: a.held.Epoch, Revision: a.held.Revision}
	if a.held.Epoch != "" {
		r.Digest = a.held.Digest()
	}
	return r
}

// sync asks, checks the signature, and takes over what is no older.
func (a *agent) sync(least ...uint64) wire.ToolsReply {
	a.w.t.Helper()
	r := a.request()
	if len(least) > 0 {
		r.Least = least[0]
	}
	var reply wire.ToolsReply
	require.NoError(a.w.t, a.ask(subject.Tools, r, &reply))
	if reply.Signed == nil {
		require.True(a.w.t, reply.Same)
		return reply
	}
	require.NoError(a.w.t, seal.CheckTools(publicOf(a.w.keys.DeclarationKey().Public()), reply.Signed.Index, reply.Signed.Signature))
	before := a.held
	a.held, a.sent = wire.Tools{}, reply.Signed
	require.NoError(a.w.t, json.Unmarshal(reply.Signed.Index, &a.held))
	require.Equal(a.w.t, []any{a.w.keys.ID(), a.name, reply.Revision}, []any{a.held.Mesh, a.held.Node, a.held.Revision})
	if before.Epoch == a.held.Epoch {
		require.GreaterOrEqual(a.w.t, a.held.Revision, before.Revision)
	}
	return reply
}

// holds are the seats that the agent was told are held: "SEAT MODULE".
func (a *agent) holds() []string {
	var all []string
	for _, h := range a.held.Held {
		all = append(all, fmt.Sprintf("%s %s", h.Seat, h.Module))
	}
	return all
}

// modules are those that were assigned to it.
func (a *agent) modules() []string {
	var names []string
	for _, m := range a.held.Modules {
		names = append(names, m.Name)
	}
	return names
}

// verbs are all of the seat but those that are left out.
func verbs(without ...subject.Verb) []subject.Verb {
	var all []subject.Verb
	for _, v := range seats.Seeded()[0].Verbs {
		if !slices.Contains(without, v.Name) {
			all = append(all, v.Name)
		}
	}
	return all
}

func claimOf(node, module string, verbs []subject.Verb) seats.Claim {
	return seats.Claim{Seat: manager, Module: module, Node: subject.Node(node), Verbs: verbs}
}

// claim files claims, and returns why they were refused: "" for those accepted.
func (a *agent) claim(all ...seats.Claim) []string {
	a.w.t.Helper()
	var reply wire.ClaimReply
	require.NoError(a.w.t, a.ask(subject.Claim, wire.ClaimRequest{Wire: wire.Version, Claims: all, Least: a.held.Revision}, &reply))
	require.Len(a.w.t, reply.Verdicts, len(all))
	var why []string
	for _, v := range reply.Verdicts {
		why = append(why, v.Refused)
	}
	return why
}

// rival is a module that claims the seat too.
func rival() modules.Manifest {
	m := modules.Catalogue()[0]
	m.Name, m.Requires = "rival", "desk"
	return m
}

// tray is a module that declares a unit where a node reports "desk".
func tray() modules.Manifest {
	return modules.Manifest{Name: "tray", Version: 1, Meaning: "m", Requires: "desk",
		Declarations: []string{"shape: service\nname: panel\nensure: running\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep inf\n"}}
}

func with(more ...modules.Manifest) func(*controller.Options) {
	return func(o *controller.Options) { o.Modules = append(modules.Catalogue(), more...) }
}

// tells is that the host of a node tells what the node can.
func (n *node) tells(change func(*wire.Profile)) {
	n.w.t.Helper()
	p := profile()
	change(&p)
	var reply wire.ProfileReply
	require.NoError(n.w.t, n.ask(subject.Profile, p, &reply))
}

func can(all ...string) func(*wire.Profile) {
	return func(p *wire.Profile) { p.Capabilities = all }
}

// beside2 is beside with options.
func (w *world) beside2(name string, change func(*controller.Options)) *world {
	w.t.Helper()
	b := &world{t: w.t, dir: filepath.Join(w.t.TempDir(), "mesh"), keys: w.keys, log: w.log}
	put(w.t, controller.KeysDir(w.dir), controller.KeysDir(b.dir))
	b.start(func(o *controller.Options) { o.Name, o.Servers, o.Listen = name, w.urls, ""; change(o) })
	return b
}
