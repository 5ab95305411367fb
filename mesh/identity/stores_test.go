package identity_test

import (
	"encoding/json"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// everybody are all who are no controllers, one of each role.
func everybody() []who {
	return []who{
		{identity.Host, "ws1"}, {identity.Runtime, "ws1"}, {identity.Listener, "ws1"}, {identity.Tool, "ws1"},
		{identity.Operator, "alice"}, {identity.Viewer, "vera"},
	}
}

// askers are those of everybody who hear answers, and so would learn something.
func askers() []who {
	return []who{{identity.Host, "ws1"}, {identity.Runtime, "ws1"}, {identity.Operator, "alice"}, {identity.Viewer, "vera"}}
}

// inCTL opens a role to send a subject from within the account that has JetStream.
func inCTL(r identity.Role, subject string) func(*identity.Table) {
	return both(lives(r, identity.CTL), maySend(r, subject))
}

// touchesNoStore is about every stream that controllers keep, by what becomes of
// the stream and what its API tells.
func touchesNoStore() []check {
	var all []check
	for _, x := range everybody() {
		is := string(x.role) + " " + x.name
		for _, w := range []struct{ what, stream, subject string }{
			{"writes the profile of another node", "KV_profiles", "$KV.profiles.ws2"},
			{"writes the report of another node", "KV_reports", "$KV.reports.ws2"},
			{"writes its own report past the controllers", "KV_reports", "$KV.reports.ws1"},
			{"tells an event of another node", "AUDIT", "audit.v1.ws2"},
			{"tells an event of the controllers", "AUDIT", "audit.v1._"},
			{"declares", "KV_state", "$KV.state.declaration.evil"},
			{"makes itself known as a node", "KV_state", "$KV.state.node.ws1"},
			{"begins an epoch", "KV_state", "$KV.state.mesh.epoch"},
		} {
			all = append(all, check{is + " " + w.what, alters(x, nats.NewMsg(w.subject), w.stream), inCTL(x.role, w.subject), is})
		}
	}
	for _, x := range askers() {
		is := string(x.role) + " " + x.name
		for _, q := range []struct{ what, subject, body, answer string }{
			{"reads any message by its number", "$JS.API.STREAM.MSG.GET.KV_state", `{"seq":1}`, "stream_msg_get_response"},
			{"reads the last declaration", "$JS.API.STREAM.MSG.GET.KV_reports", `{"last_by_subj":"$KV.reports.>"}`, "stream_msg_get_response"},
			{"reads the audit stream", "$JS.API.DIRECT.GET.AUDIT", `{"seq":1}`, "told"},
			{"reads all keys at once", "$JS.API.DIRECT.GET.KV_state", `{"multi_last":["$KV.state.>"]}`, "kept"},
			{"reads the names of all nodes", "$JS.API.STREAM.INFO.KV_profiles", `{"subjects_filter":">"}`, "$KV.profiles.ws2"},
			{"lists streams", "$JS.API.STREAM.LIST", "", "KV_reports"},
			{"takes from the consumer of a controller", "$JS.API.CONSUMER.MSG.NEXT.KV_state.reader", "1", "kept"},
			{"looks at the consumer of a controller", "$JS.API.CONSUMER.INFO.KV_state.reader", "", "consumer_info_response"},
			{"lists consumers", "$JS.API.CONSUMER.NAMES.KV_state", "", "reader"},
			{"makes a consumer of its own", "$JS.API.CONSUMER.CREATE.KV_reports.mine", `{"stream_name":"KV_reports","config":{"name":"mine","ack_policy":"none"}}`, "consumer_create_response"},
			{"makes a consumer for one key", "$JS.API.CONSUMER.CREATE.KV_state.mine.$KV.state.seed", `{"stream_name":"KV_state","config":{"name":"mine","filter_subject":"$KV.state.seed"}}`, "consumer_create_response"},
			{"makes a durable consumer", "$JS.API.CONSUMER.DURABLE.CREATE.AUDIT.mine", `{"stream_name":"AUDIT","config":{"durable_name":"mine","ack_policy":"none"}}`, "consumer_create_response"},
			// Without words it is no more than begun.
			{"takes a copy of a stream", "$JS.API.STREAM.SNAPSHOT.KV_state", "", "stream_snapshot_response"},
			{"puts a copy of a stream back", "$JS.API.STREAM.RESTORE.KV_state", "", "stream_restore_response"},
			{"makes a stream that copies another", "$JS.API.STREAM.CREATE.COPY", `{"name":"COPY","sources":[{"name":"KV_state"}]}`, "stream_create_response"},
		} {
			all = append(all, check{is + " " + q.what, api(x.role, x.name, q.subject, q.body, q.answer), inCTL(x.role, q.subject), is + " reads"})
		}
	}
	return all
}

// destroysNothing is about what leaves nothing of a stream as it was, so each is
// opened on a server of its own.
func destroysNothing() []check {
	var all []check
	for _, x := range []who{{identity.Host, "ws1"}, {identity.Operator, "alice"}, {identity.Viewer, "vera"}} {
		is := string(x.role) + " " + x.name
		for _, d := range []struct{ what, subject, body string }{
			{"deletes a stream", "$JS.API.STREAM.DELETE.KV_state", ""},
			{"purges a stream", "$JS.API.STREAM.PURGE.KV_state", ""},
			{"purges a key", "$JS.API.STREAM.PURGE.KV_state", `{"filter":"$KV.state.seed"}`},
			{"deletes a message", "$JS.API.STREAM.MSG.DELETE.KV_state", `{"seq":1}`},
			{"lets a stream expire", "$JS.API.STREAM.UPDATE.KV_state", `{"name":"KV_state","subjects":["$KV.state.>"],"max_msgs_per_subject":1,"max_bytes":1048576,"max_age":1000000000,"duplicate_window":1000000000,"allow_direct":true,"allow_rollup_hdrs":true}`},
			{"deletes the consumer of a controller", "$JS.API.CONSUMER.DELETE.KV_state.reader", ""},
		} {
			m := &nats.Msg{Subject: d.subject, Data: []byte(d.body)}
			all = append(all, check{is + " " + d.what, alters(x, m, "KV_state"), inCTL(x.role, d.subject), ""})
		}
		for _, h := range []struct{ what, header, value, subject, stream string }{
			{"wipes the reports with a rollup header", "Nats-Rollup", "all", "$KV.reports.ws1", "KV_reports"},
			{"wipes a key with a rollup header", "Nats-Rollup", "sub", "$KV.state.seed", "KV_state"},
			{"wipes the audit stream with a rollup header", "Nats-Rollup", "all", "audit.v1.ws1", "AUDIT"},
			{"purges a key as key-value tools do", "KV-Operation", "PURGE", "$KV.state.seed", "KV_state"},
			{"takes the id of an event to come", "Nats-Msg-Id", "/e1.7", "audit.v1._", "AUDIT"},
		} {
			m := &nats.Msg{Subject: h.subject, Header: nats.Header{h.header: {h.value}}}
			all = append(all, check{is + " " + h.what, alters(x, m, h.stream), inCTL(x.role, h.subject), ""})
		}
	}
	return all
}

// takesNoCalls is about the operations that one controller answers alone, and
// about those that would answer in the controllers' stead.
func takesNoCalls() []check {
	const part = "mesh.v1.w.part-abcdefgh"
	all := []check{
		{"operator opens an upload", asks(identity.Operator, "alice", "mesh.v1.w.upload", controller), nil, ""},
		{"operator sends a part to the controller that holds its upload", asks(identity.Operator, "alice", part, controller), nil, ""},
		{"operator changes the settings of a node", asks(identity.Operator, "alice", "mesh.v1.w.node", controller), nil, ""},
		{"viewer asks how far it is", asks(identity.Viewer, "vera", "mesh.v1.r.progress", controller), nil, ""},
		{"viewer reads events", asks(identity.Viewer, "vera", "mesh.v1.r.events", controller), nil, ""},
	}
	for _, x := range everybody() {
		is := string(x.role) + " " + x.name
		if x.role != identity.Operator {
			for _, s := range []string{"mesh.v1.w.upload", part, "mesh.v1.w.withdraw", "mesh.v1.w.node"} {
				all = append(all, check{is + " sends " + s, sends(x.role, x.name, s), maySend(x.role, s), "sends parts"})
			}
		}
		for _, s := range []string{part, "mesh.v1.w.*", "mesh.v1.r.get", "node.v1.*.sync", "node.v1.ws1.body", "node.v1.*.report", "audit.v1.>", "$KV.state.>", "$KV.reports.>"} {
			all = append(all, check{is + " takes its share of " + s, hears(x.role, x.name, s, "controllers"), mayHear(x.role, s), is})
		}
	}
	// The node's ears in the account in which a node is told: another node's.
	for _, s := range []string{"node.v1.ws2.changed", "node.v1.ws2.plan", "node.v1.*.plan"} {
		all = append(all, check{"listener ws1 takes its share of " + s, hears(identity.Listener, "ws1", s, "q"), mayHear(identity.Listener, s), "listener shares"})
	}
	return all
}

// aims has a consumer deliver what a bucket holds to those who serve: there it
// looks like a call.
func aims() []check {
	var all []check
	for _, x := range askers() {
		is := string(x.role) + " " + x.name
		for _, to := range []string{"node.v1.ws2.report", "node.v1.ws2.event", "mesh.v1.w.apply"} {
			all = append(all, check{is + " aims a consumer at " + to, delivers(x, to), inCTL(x.role, "$JS.API.CONSUMER.CREATE.KV_state"), is})
		}
	}
	return all
}

// alters sends m, whose answer goes to whoever sent it unless m says where, and
// looks whether a stream of the controllers is no longer what it was.
func alters(x who, m *nats.Msg, stream string) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(x.role, x.name)
		defer p.nc.Close()
		before := w.standing(stream)
		reply := m.Reply
		if reply == "" {
			reply = p.answers()
		}
		require.NoError(w.t, p.nc.PublishMsg(&nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data, Reply: reply}))
		if p.refused(w.t) {
			return false
		}
		if m.Reply != "" {
			w.settle()
			require.True(w.t, w.anybodyHeard(m.Subject), "nobody was asked")
		}
		return w.eventually(func() bool { return w.standing(stream) != before })
	}
}

// standing is all that the server says of a stream.
func (w *world) standing(stream string) string {
	s, err := w.js.Stream(w.t.Context(), stream)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal([]any{s.CachedInfo().Config, s.CachedInfo().State})
	require.NoError(w.t, err)
	return string(text)
}

// delivers makes a push consumer and looks whether a controller takes for a call
// what it delivers.
func delivers(x who, to string) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		p := w.fresh(x.role, x.name)
		defer p.nc.Close()
		c := w.serve(w.be(identity.Controller, "c1"), to) // as a controller serves an operation: not by a pattern
		w.forget()
		body := `{"stream_name":"KV_state","config":{"deliver_subject":"` + to + `","ack_policy":"none"}}`
		require.NoError(w.t, p.nc.PublishRequest("$JS.API.CONSUMER.CREATE.KV_state", p.answers(), []byte(body)))
		if p.refused(w.t) {
			return false
		}
		return w.eventually(func() bool { w.settle(); return c.heard("$KV.state.seed") > 0 }) // the subject is the stored one
	}
}
