package identity_test

import (
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// longest is how long a test waits for what must come.
const longest = 10 * time.Second

// tricks have an honest answer delivered where it acts: the server does not hold
// a reply subject against the permissions of who names it. What keeps an answer
// from acting is that nothing that acts listens in the account of who asks; so a
// trick works as soon as the role lives where it does.
func tricks() []check {
	inTool := func(r identity.Role) func(*identity.Table) { return lives(r, identity.TOOL) }
	inCTL := func(r identity.Role) func(*identity.Table) { return lives(r, identity.CTL) }
	v, o, h, r := identity.Viewer, identity.Operator, identity.Host, identity.Runtime
	status := "seat.v1.r.ws1.s.status"
	return []check{
		{"viewer: status answers into a verb that acts on another node",
			reaches(v, "vera", status, "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"), inTool(v), "v inTool"},
		{"viewer: status answers into a verb that acts on the same node",
			reaches(v, "vera", status, "seat.v1.w.ws1.s.stop", tool1, "seat.v1.w.ws1.s.stop"), inTool(v), "v inTool"},
		{"viewer: status answers into a verb that acts on all nodes",
			reaches(v, "vera", status, "seat.v1.w._all.s.stop", tool2, "seat.v1.w._all.s.stop"), inTool(v), "v inTool"},
		{"viewer: status answers into the journal, which it may not read",
			reaches(v, "vera", status, "seat.v1.r.ws2.s.journal", tool2, "seat.v1.r.ws2.s.journal"), inTool(v), "v inTool"},
		{"viewer: status answers into a hint",
			reaches(v, "vera", status, "node.v1.ws2.changed", listener2, "node.v1.ws2.changed"), inTool(v), "v inTool"},
		{"viewer: status answers into a plan",
			reaches(v, "vera", status, "node.v1.ws2.plan", listener2, "node.v1.ws2.plan"), inTool(v), "v inTool"},
		{"viewer: get answers into an apply",
			reaches(v, "vera", "mesh.v1.r.get", "mesh.v1.w.apply", controller, "mesh.v1.w.apply"), inCTL(v), "v inCTL"},
		{"viewer: get answers into the report of a node",
			reaches(v, "vera", "mesh.v1.r.get", "node.v1.ws2.report", controller, "node.v1.ws2.report"), inCTL(v), "v inCTL"},
		{"viewer: get answers into a verb, by way of an import",
			reaches(v, "vera", "mesh.v1.r.get", "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"),
			literally("seat.v1.w.*.*.*", "seat.v1.w.ws2.s.stop", identity.VIEW), ""},
		{"host: sync answers into a verb that acts",
			reaches(h, "ws1", "node.v1.ws1.sync", "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"),
			literally("seat.v1.w.*.*.*", "seat.v1.w.ws2.s.stop", identity.HOST), ""},
		{"host: sync answers into a verb of its own node",
			reaches(h, "ws1", "node.v1.ws1.sync", "seat.v1.w.ws1.s.stop", tool1, "seat.v1.w.ws1.s.stop"),
			literally("seat.v1.w.*.*.*", "seat.v1.w.ws1.s.stop", identity.HOST), ""},
		{"host: sync answers into the hint of another node",
			reaches(h, "ws1", "node.v1.ws1.sync", "node.v1.ws2.changed", listener2, "node.v1.ws2.changed"),
			lives(identity.Listener, identity.HOST), ""},
		{"host: sync answers into the plan of another node",
			reaches(h, "ws1", "node.v1.ws1.sync", "node.v1.ws2.plan", listener2, "node.v1.ws2.plan"),
			lives(identity.Listener, identity.HOST), ""},
		{"host: sync answers into the report of another node",
			reaches(h, "ws1", "node.v1.ws1.sync", "node.v1.ws2.report", controller, "node.v1.ws2.report"), inCTL(h), "h inCTL"},
		{"host: sync answers into an apply",
			reaches(h, "ws1", "node.v1.ws1.sync", "mesh.v1.w.apply", controller, "mesh.v1.w.apply"), inCTL(h), "h inCTL"},
		{"runtime: claim answers into a verb that acts",
			reaches(r, "ws1", "node.v1.ws1.claim", "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"), lives(identity.Tool, identity.HOST), ""},
		{"runtime: claim answers into the claim of another node",
			reaches(r, "ws1", "node.v1.ws1.claim", "node.v1.ws2.claim", controller, "node.v1.ws2.claim"), inCTL(r), "r inCTL"},
		{"operator: get answers into the report of a node",
			reaches(o, "alice", "mesh.v1.r.get", "node.v1.ws2.report", controller, "node.v1.ws2.report"), inCTL(o), "o inCTL"},
		{"operator: status answers into a hint",
			reaches(o, "alice", status, "node.v1.ws2.changed", listener2, "node.v1.ws2.changed"), inTool(o), "o inTool"},

		{"viewer: get answers into a key", changes(v, "vera", request("mesh.v1.r.get", "$KV.state.seed")), inCTL(v), ""},
		{"viewer: get answers into a purge", changes(v, "vera", request("mesh.v1.r.get", "$JS.API.STREAM.PURGE.KV_state")), inCTL(v), ""},
		{"host: sync answers into a key", changes(h, "ws1", request("node.v1.ws1.sync", "$KV.state.seed")), inCTL(h), ""},
		{"host: report answers into a key", changes(h, "ws1", request("node.v1.ws1.report", "$KV.state.seed")),
			passes("$KV.state.seed", identity.CTL, identity.HOST), ""},
		{"host: sync answers into a deletion", changes(h, "ws1", request("node.v1.ws1.sync", "$JS.API.STREAM.DELETE.KV_state")), inCTL(h), ""},
		{"runtime: claim answers into a key", changes(r, "ws1", request("node.v1.ws1.claim", "$KV.state.seed")), inCTL(r), ""},
		{"operator: apply answers into a key", changes(o, "alice", request("mesh.v1.w.apply", "$KV.state.seed")), inCTL(o), ""},

		{"viewer: a trace goes to a verb that acts", traces(v, "vera", status, "seat.v1.w.ws2.s.stop"), maySend(v, "seat.v1.w.ws2.s.stop"), ""},
		{"host: a trace goes to the report of another node", traces(h, "ws1", "node.v1.ws1.sync", "node.v1.ws2.report"), maySend(h, "node.v1.ws2.report"), ""},
		{"operator: a trace goes to a hint", traces(o, "alice", status, "node.v1.ws2.changed"), maySend(o, "node.v1.ws2.changed"), ""},
	}
}

func request(subject, reply string) *nats.Msg {
	return &nats.Msg{Subject: subject, Reply: reply, Data: []byte("{}")}
}

// traces asks the server to say where a message went, to a subject of choice.
func traces(r identity.Role, name, subject, to string) func(*world) bool {
	return func(w *world) bool {
		p := w.fresh(r, name)
		defer p.nc.Close()
		require.NoError(w.t, p.nc.PublishMsg(&nats.Msg{Subject: subject, Header: nats.Header{"Nats-Trace-Dest": {to}}}))
		return !p.refused(w.t)
	}
}
