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
		{"viewer: service discovery answers into a verb that acts",
			reaches(v, "vera", "$SRV.INFO", "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"), inTool(v), "v inTool"},
		{"viewer: service discovery answers into a hint",
			reaches(v, "vera", "$SRV.STATS", "node.v1.ws2.changed", listener2, "node.v1.ws2.changed"), inTool(v), "v inTool"},
		{"viewer: get answers into an apply",
			reaches(v, "vera", "mesh.v1.r.get", "mesh.v1.w.apply", controller, "mesh.v1.w.apply"), inCTL(v), "v inCTL"},
		{"viewer: get answers into the report of a node",
			reaches(v, "vera", "mesh.v1.r.get", "node.v1.ws2.report", controller, "node.v1.ws2.report"), inCTL(v), "v inCTL"},
		{"viewer: get answers into a verb, by way of an import",
			reaches(v, "vera", "mesh.v1.r.get", "seat.v1.w.ws2.s.stop", tool2, "seat.v1.w.ws2.s.stop"),
			literally("seat.v1.w.*.*.*", "seat.v1.w.ws2.s.stop", identity.VIEW), ""},
		{"viewer: get answers into service discovery, by way of an import",
			reaches(v, "vera", "mesh.v1.r.get", "$SRV.PING", tool2, "$SRV.PING"), literally("$SRV.*", "$SRV.PING", identity.VIEW), ""},
		{"viewer: get answers into service discovery of one, by way of an import",
			reaches(v, "vera", "mesh.v1.r.get", "$SRV.INFO.s", tool2, "$SRV.INFO.s"), literally("$SRV.*.*", "$SRV.INFO.s", identity.VIEW), ""},
		{"operator: get answers into service discovery, by way of an import",
			reaches(o, "alice", "mesh.v1.r.get", "$SRV.PING", tool2, "$SRV.PING"), literally("$SRV.*", "$SRV.PING", identity.OPS), ""},
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

// furtherTricks are tricks with what there is since controllers keep streams and
// take requests in parts, and with headers that do something in a store.
func furtherTricks() []check {
	in := func(r identity.Role) func(*identity.Table) { return lives(r, identity.CTL) }
	v, o, h, r := identity.Viewer, identity.Operator, identity.Host, identity.Runtime
	host, runtime, alice, vera := who{h, "ws1"}, who{r, "ws1"}, who{o, "alice"}, who{v, "vera"}
	const part = "mesh.v1.w.part-abcdefgh"
	with := func(m *nats.Msg, header, value string) *nats.Msg {
		m.Header = nats.Header{header: {value}}
		return m
	}
	return []check{
		{"viewer: get answers into an upload", reaches(v, "vera", "mesh.v1.r.get", "mesh.v1.w.upload", controller, "mesh.v1.w.upload"), in(v), "v in"},
		{"viewer: get answers into a part", reaches(v, "vera", "mesh.v1.r.get", part, controller, part), in(v), "v in"},
		{"viewer: events answers into a withdrawal", reaches(v, "vera", "mesh.v1.r.events", "mesh.v1.w.withdraw", controller, "mesh.v1.w.withdraw"), in(v), "v in"},
		{"viewer: progress answers into the settings of a node", reaches(v, "vera", "mesh.v1.r.progress", "mesh.v1.w.node", controller, "mesh.v1.w.node"), in(v), "v in"},
		{"viewer: get answers into a hint, by way of an import", reaches(v, "vera", "mesh.v1.r.get", "node.v1.ws2.changed", listener2, "node.v1.ws2.changed"),
			literally("node.v1.*.changed", "node.v1.ws2.changed", identity.VIEW), ""},
		{"viewer: get answers into a plan, by way of an import", reaches(v, "vera", "mesh.v1.r.get", "node.v1.ws2.plan", listener2, "node.v1.ws2.plan"),
			literally("node.v1.*.plan", "node.v1.ws2.plan", identity.VIEW), ""},
		{"host: body answers into the profile of another node", reaches(h, "ws1", "node.v1.ws1.body", "node.v1.ws2.profile", controller, "node.v1.ws2.profile"), in(h), "h in"},
		{"host: body answers into the event of another node", reaches(h, "ws1", "node.v1.ws1.body", "node.v1.ws2.event", controller, "node.v1.ws2.event"), in(h), "h in"},
		{"host: report answers into the sync of another node", reaches(h, "ws1", "node.v1.ws1.report", "node.v1.ws2.sync", controller, "node.v1.ws2.sync"), in(h), "h in"},
		{"host: profile answers into a part", reaches(h, "ws1", "node.v1.ws1.profile", part, controller, part), in(h), "h in"},
		{"host: event answers into the claim of a runtime", reaches(h, "ws1", "node.v1.ws1.event", "node.v1.ws1.claim", controller, "node.v1.ws1.claim"), in(h), "h in"},
		{"runtime: tools answers into the report of the host", reaches(r, "ws1", "node.v1.ws1.tools", "node.v1.ws1.report", controller, "node.v1.ws1.report"), in(r), "r in"},
		{"runtime: event answers into an apply", reaches(r, "ws1", "node.v1.ws1.event", "mesh.v1.w.apply", controller, "mesh.v1.w.apply"), in(r), "r in"},
		{"operator: upload answers into the sync of a node", reaches(o, "alice", "mesh.v1.w.upload", "node.v1.ws2.sync", controller, "node.v1.ws2.sync"), in(o), "o in"},
		{"operator: a part answers into the event of a node", reaches(o, "alice", part, "node.v1.ws2.event", controller, "node.v1.ws2.event"), in(o), "o in"},

		{"host: report answers into the profile of another node", alters(host, request("node.v1.ws1.report", "$KV.profiles.ws2"), "KV_profiles"), in(h), "h in"},
		{"host: report answers into the stored report of another node", alters(host, request("node.v1.ws1.report", "$KV.reports.ws2"), "KV_reports"), in(h), "h in"},
		{"host: event answers into the audit stream", alters(host, request("node.v1.ws1.event", "audit.v1._"), "AUDIT"), in(h), "h in"},
		{"runtime: event answers into the audit stream", alters(runtime, request("node.v1.ws1.event", "audit.v1.ws2"), "AUDIT"), in(r), "r in"},
		{"viewer: get answers into the audit stream", alters(vera, request("mesh.v1.r.get", "audit.v1._"), "AUDIT"), in(v), "v in"},
		{"operator: a part answers into a declaration", alters(alice, request(part, "$KV.state.declaration.evil"), "KV_state"), in(o), "o in"},
		{"operator: apply answers into the epoch", alters(alice, request("mesh.v1.w.apply", "$KV.state.mesh.epoch"), "KV_state"), in(o), "o in"},
		{"viewer: get answers into a consumer", alters(vera, request("mesh.v1.r.get", "$JS.API.CONSUMER.DELETE.KV_state.reader"), "KV_state"), in(v), ""},
		{"host: sync answers into the purge of the reports", alters(host, request("node.v1.ws1.sync", "$JS.API.STREAM.PURGE.KV_reports"), "KV_reports"), in(h), ""},

		{"host: a report with a rollup header answers into a key", changes(h, "ws1", with(request("node.v1.ws1.report", "$KV.state.seed"), "Nats-Rollup", "all")), in(h), ""},
		{"viewer: get with a rollup header answers into a key", changes(v, "vera", with(request("mesh.v1.r.get", "$KV.state.seed"), "Nats-Rollup", "sub")), in(v), ""},
		{"operator: apply with a purge header answers into a key", changes(o, "alice", with(request("mesh.v1.w.apply", "$KV.state.seed"), "KV-Operation", "PURGE")), in(o), ""},
		{"host: an event with an id answers into the audit stream", alters(host, with(request("node.v1.ws1.event", "audit.v1.ws2"), "Nats-Msg-Id", "ws2/host/1"), "AUDIT"), in(h), ""},

		{"host: a trace goes to the sync of another node", traces(h, "ws1", "node.v1.ws1.report", "node.v1.ws2.sync"), maySend(h, "node.v1.ws2.sync"), "traces"},
		{"host: a trace goes to a key", traces(h, "ws1", "node.v1.ws1.sync", "$KV.state.seed"), maySend(h, "$KV.state.seed"), "traces"},
		{"viewer: a trace goes to a part", traces(v, "vera", "mesh.v1.r.get", part), maySend(v, part), "traces"},
		{"runtime: a trace goes to the sync of the host", traces(r, "ws1", "node.v1.ws1.tools", "node.v1.ws1.sync"), maySend(r, "node.v1.ws1.sync"), "traces"},
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
