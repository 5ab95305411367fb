package identity_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
)

// leastChecks is how many lines the permission list has at least.
const leastChecks = 530

// TestPermissions holds the permission table against this list, which is written
// by hand and never made from the table. What each role may do gets through, and
// all else does not, with bare NATS clients against a real server; each refusal
// is seen to get through when the table is opened for it alone.
func TestPermissions(t *testing.T) {
	var total atomic.Int64
	t.Run("list", func(t *testing.T) {
		for _, part := range []struct {
			name   string
			checks []check
		}{
			{"allowed", allowed()},
			{"sends", sendsNothingElse()},
			{"hears", hearsNothingElse()},
			{"reads and writes", touchesNoState()},
			{"snoops", hearsNoOthers()},
			{"tricks", tricks()},
			{"further tricks", furtherTricks()},
			{"names", forgesNobody()},
			{"stores", touchesNoStore()},
			{"destroys", destroysNothing()},
			{"calls", takesNoCalls()},
			{"consumers", aims()},
		} {
			t.Run(part.name, func(t *testing.T) {
				t.Parallel() // most of the time is waiting for what must not come
				through, refused := run(t, part.checks)
				t.Logf("%d checks: %d get through, %d refused, each of these seen to get through when it is opened", through+refused, through, refused)
				total.Add(int64(through + refused))
			})
		}
	})
	t.Logf("permission list: %d checks", total.Load())
	require.GreaterOrEqual(t, total.Load(), int64(leastChecks))
}

var (
	controller = who{identity.Controller, "c1"}
	tool1      = who{identity.Tool, "ws1"}
	tool2      = who{identity.Tool, "ws2"}
	listener1  = who{identity.Listener, "ws1"}
	listener2  = who{identity.Listener, "ws2"}
)

// allowed is what each role is for.
func allowed() []check {
	return []check{
		{"host syncs", asks(identity.Host, "ws1", "node.v1.ws1.sync", controller), nil, ""},
		{"host fetches a body", asks(identity.Host, "ws1", "node.v1.ws1.body", controller), nil, ""},
		{"host reports", asks(identity.Host, "ws1", "node.v1.ws1.report", controller), nil, ""},
		{"host sends its profile", asks(identity.Host, "ws1", "node.v1.ws1.profile", controller), nil, ""},
		{"host sends an event", asks(identity.Host, "ws1", "node.v1.ws1.event", controller), nil, ""},
		{"another host syncs", asks(identity.Host, "ws2", "node.v1.ws2.sync", controller), nil, ""},
		{"runtime syncs", asks(identity.Runtime, "ws1", "node.v1.ws1.tools", controller), nil, ""},
		{"runtime files a claim", asks(identity.Runtime, "ws1", "node.v1.ws1.claim", controller), nil, ""},
		{"runtime sends an event", asks(identity.Runtime, "ws1", "node.v1.ws1.event", controller), nil, ""},
		{"controller hints", asks(identity.Controller, "c2", "node.v1.ws1.changed", listener1), nil, ""},
		{"controller asks for a plan", asks(identity.Controller, "c2", "node.v1.ws2.plan", listener2), nil, ""},
		{"controller writes state", changes(identity.Controller, "c2", nats.NewMsg("$KV.state.seed")), nil, ""},
		{"controller reads state", api(identity.Controller, "c2", "$JS.API.STREAM.INFO.KV_state", "", "stream_info_response"), nil, ""},
		{"operator asks to read", asks(identity.Operator, "alice", "mesh.v1.r.get", controller), nil, ""},
		{"operator asks to write", asks(identity.Operator, "alice", "mesh.v1.w.apply", controller), nil, ""},
		{"operator calls a verb that reads", asks(identity.Operator, "alice", "seat.v1.r.ws1.s.status", tool1), nil, ""},
		{"operator calls a verb that acts", asks(identity.Operator, "alice", "seat.v1.w.ws2.s.stop", tool2), nil, ""},
		{"operator reads the journal", asks(identity.Operator, "alice", "seat.v1.r.ws2.s.journal", tool2), nil, ""},
		{"operator calls a verb that reads on all nodes", asks(identity.Operator, "alice", "seat.v1.r._all.s.units", tool1), nil, ""},
		{"operator calls a verb that acts on all nodes", asks(identity.Operator, "alice", "seat.v1.w._all.s.restart", tool2), nil, ""},
		{"operator discovers", asks(identity.Operator, "alice", "$SRV.PING", tool1), nil, ""},
		{"operator discovers more", asks(identity.Operator, "alice", "$SRV.INFO", tool2), nil, ""},
		{"operator discovers all", asks(identity.Operator, "alice", "$SRV.STATS", tool2), nil, ""},
		{"viewer asks to read", asks(identity.Viewer, "vera", "mesh.v1.r.list", controller), nil, ""},
		{"viewer calls a verb that reads", asks(identity.Viewer, "vera", "seat.v1.r.ws1.s.status", tool1), nil, ""},
		{"viewer calls a verb that reads on all nodes", asks(identity.Viewer, "vera", "seat.v1.r._all.s.units", tool2), nil, ""},
		{"viewer controls what it follows", asks(identity.Viewer, "vera", "seat.v1.r.ws1.s.ctl-0123456789abcdef", tool1), nil, ""},
		{"viewer discovers", asks(identity.Viewer, "vera", "$SRV.PING", tool1), nil, ""},
		{"viewer discovers more", asks(identity.Viewer, "vera", "$SRV.INFO", tool2), nil, ""},
		{"viewer discovers all", asks(identity.Viewer, "vera", "$SRV.STATS", tool2), nil, ""},
		{"operator discovers one", asks(identity.Operator, "alice", "$SRV.INFO.s", tool1), nil, ""},
		{"operator discovers one by its id", asks(identity.Operator, "alice", "$SRV.STATS.s.ws1", tool1), nil, ""},
		{"viewer discovers one", asks(identity.Viewer, "vera", "$SRV.PING.s", tool1), nil, ""},
		{"viewer discovers one by its id", asks(identity.Viewer, "vera", "$SRV.INFO.s.ws1", tool1), nil, ""},
		{"tool hears hints", hears(identity.Tool, "ws1", "node.v1.ws1.changed", ""), nil, ""},
		{"tool answers as often as it wants", answersTwice, nil, ""},
	}
}

// answersTwice: the journal is followed by answering one call again and again.
func answersTwice(w *world) bool {
	w.furnish()
	p := w.fresh(identity.Operator, "alice")
	defer p.nc.Close()
	tool := w.fresh(identity.Tool, "ws3")
	defer tool.nc.Close()
	sub, err := tool.nc.SubscribeSync("seat.v1.r.ws3.s.journal")
	require.NoError(w.t, err)
	require.NoError(w.t, tool.nc.Flush())
	require.NoError(w.t, p.nc.PublishRequest("seat.v1.r.ws3.s.journal", p.answers(), nil))
	m, err := sub.NextMsg(longest)
	require.NoError(w.t, err)
	for range 1000 {
		require.NoError(w.t, m.Respond([]byte("line")))
	}
	require.False(w.t, tool.refused(w.t))
	require.NoError(w.t, p.nc.Flush())
	n, _, err := p.inbox.Pending()
	require.NoError(w.t, err)
	return n == 1000
}

// refusals makes a check for each subject of a list, one on a line.
func refusals(r identity.Role, name, verb, list string, try func(subject string) func(*world) bool,
	open func(identity.Role, string) func(*identity.Table)) []check {
	var out []check
	for s := range strings.FieldsSeq(list) {
		out = append(out, check{string(r) + " " + name + " " + verb + " " + s, try(s), open(r, s), ""})
	}
	return out
}

func sendsNothingElse() []check {
	var all []check
	for _, x := range []struct {
		role identity.Role
		name string
		list string
	}{
		{identity.Host, "ws1", `
			node.v1.ws2.sync node.v1.ws2.body node.v1.ws2.report node.v1.ws2.profile node.v1.ws2.event
			node.v1.ws1.tools node.v1.ws1.claim node.v1.ws1.changed node.v1.ws1.plan node.v1.ws2.changed
			node.v1.ws1.sync.more node.v1.ws1 mesh.v1.r.get mesh.v1.w.apply
			seat.v1.r.ws1.s.status seat.v1.w.ws1.s.stop seat.v1.w.ws2.s.stop seat.v1.w._all.s.stop $SRV.PING
			$KV.state.seed $JS.API.INFO $JS.API.STREAM.CREATE.X $JS.API.STREAM.NAMES $JS.API.STREAM.PURGE.KV_state
			$JS.API.STREAM.DELETE.KV_state $JS.API.CONSUMER.CREATE.KV_state $JS.API.CONSUMER.MSG.NEXT.KV_state.reader
			$JS.API.DIRECT.GET.KV_state.$KV.state.seed $SYS.REQ.SERVER.PING $SYS.REQ.USER.INFO _INBOX.somebody.x`},
		{identity.Runtime, "ws1", `
			node.v1.ws2.tools node.v1.ws2.claim node.v1.ws2.event node.v1.ws1.sync node.v1.ws1.report node.v1.ws1.changed
			mesh.v1.r.get mesh.v1.w.apply seat.v1.w.ws1.s.stop $KV.state.seed $JS.API.INFO`},
		{identity.Listener, "ws1", `
			node.v1.ws1.sync node.v1.ws1.report node.v1.ws2.changed node.v1.ws2.plan seat.v1.w.ws2.s.stop mesh.v1.w.apply
			_INBOX.somebody.x $KV.state.seed $JS.API.INFO`},
		{identity.Tool, "ws1", `
			seat.v1.r.ws1.s.status seat.v1.w.ws1.s.stop seat.v1.w.ws2.s.stop seat.v1.w._all.s.stop node.v1.ws1.claim node.v1.ws2.changed
			node.v1.ws2.plan mesh.v1.w.apply $SRV.PING _INBOX.somebody.x $KV.state.seed $JS.API.INFO`},
		{identity.Operator, "alice", `
			node.v1.ws1.sync node.v1.ws1.report node.v1.ws1.changed node.v1.ws1.plan mesh.v1.x.apply
			$KV.state.seed $JS.API.INFO $JS.API.STREAM.UPDATE.KV_state $JS.API.STREAM.MSG.DELETE.KV_state
			$JS.API.CONSUMER.CREATE.KV_state.x.$KV.state.> $SYS.REQ.ACCOUNT.CTL.CLAIMS.UPDATE $SRV.STOP $SRV.STOP.s
			$SRV.INFO.s.ws1.more _INBOX.somebody.x`},
		{identity.Viewer, "vera", `
			mesh.v1.w.apply mesh.v1.w.token seat.v1.w.ws1.s.stop seat.v1.w._all.s.stop seat.v1.r.ws1.s.journal seat.v1.r._all.s.journal
			seat.v1.r.ws1.s.status.more node.v1.ws1.sync node.v1.ws1.report node.v1.ws1.changed $SRV.STOP $SRV.STOP.s
			$SRV.INFO.s.ws1.more $KV.state.seed $JS.API.INFO $JS.API.STREAM.INFO.KV_state $JS.API.STREAM.MSG.GET.KV_state _INBOX.somebody.x`},
		{identity.Controller, "c2", `$SYS.REQ.SERVER.PING`},
	} {
		all = append(all, refusals(x.role, x.name, "sends", x.list,
			func(s string) func(*world) bool { return sends(x.role, x.name, s) }, maySend)...)
	}
	for i := range all {
		all[i].group = strings.Fields(all[i].name)[0] // each opens one subject, of one role
	}
	return all
}

func hearsNothingElse() []check {
	var all []check
	for _, x := range []struct {
		role identity.Role
		name string
		list string
	}{
		{identity.Host, "ws1", `
			> * _INBOX.> _INBOX.*.> node.v1.> node.v1.*.sync node.v1.ws1.sync node.v1.ws2.changed seat.v1.> $KV.> $JS.> $JS.API.> $SYS.>
			$JS.EVENT.ADVISORY.> $JS.ACK.> _R_.>`},
		{identity.Runtime, "ws1", `> _INBOX.> node.v1.*.claim seat.v1.w.ws1.*.* $KV.>`},
		{identity.Listener, "ws1", `> _INBOX.> node.v1.*.changed node.v1.ws2.changed node.v1.ws2.plan seat.v1.w.ws1.*.* $SRV.PING _R_.>`},
		{identity.Tool, "ws1", `
			> _INBOX.> seat.v1.> seat.v1.*.ws1.*.* seat.v1.w.*.*.* seat.v1.w.ws2.*.* seat.v1.w.ws2.s.stop node.v1.ws1.plan node.v1.ws2.changed
			$SRV.> $KV.> $JS.> _R_.>`},
		{identity.Operator, "alice", `> _INBOX.> node.v1.> mesh.v1.w.apply mesh.v1.> seat.v1.w.ws1.s.stop $SRV.PING $KV.> $JS.> $SYS.>`},
		{identity.Viewer, "vera", `> _INBOX.> mesh.v1.> seat.v1.> node.v1.> $KV.> $JS.> $SYS.>`},
	} {
		all = append(all, refusals(x.role, x.name, "hears", x.list,
			func(s string) func(*world) bool { return hears(x.role, x.name, s, "") }, mayHear)...)
	}
	return append(all,
		check{"host ws1 serves in the controllers' stead, in a queue group", hears(identity.Host, "ws1", "node.v1.ws2.sync", "q"),
			mayHear(identity.Host, "node.v1.*.sync"), ""},
		check{"tool ws1 serves in the stead of ws2, in a queue group", hears(identity.Tool, "ws1", "seat.v1.w.ws2.s.stop", "q"),
			mayHear(identity.Tool, "seat.v1.w.ws2.>"), ""},
	)
}

// touchesNoState is about what JetStream holds: seen in the bucket itself, or in
// what its API answers.
func touchesNoState() []check {
	seed := nats.NewMsg("$KV.state.seed")
	rollup := &nats.Msg{Subject: "$KV.state.other", Header: nats.Header{"Nats-Rollup": {"all"}}}
	direct := "$JS.API.DIRECT.GET.KV_state.$KV.state.seed"
	consumer := `{"stream_name":"KV_state","config":{"deliver_subject":"node.v1.ws2.report"}}`
	var all []check
	for _, x := range []struct {
		who
		account identity.Account
	}{
		{who{identity.Host, "ws1"}, identity.HOST}, {who{identity.Runtime, "ws1"}, identity.HOST},
		{who{identity.Listener, "ws1"}, identity.TOOL}, {who{identity.Tool, "ws1"}, identity.TOOL},
		{who{identity.Operator, "alice"}, identity.OPS}, {who{identity.Viewer, "vera"}, identity.VIEW},
	} {
		is := string(x.role) + " " + x.name
		write := both(maySend(x.role, "$KV.state.>"), passes("$KV.state.>", identity.CTL, x.account))
		all = append(all,
			check{is + " writes a key", changes(x.role, x.name, seed), write, ""},
			check{is + " wipes the bucket with a rollup header", changes(x.role, x.name, rollup), write, ""},
			check{is + " reads a key", api(x.role, x.name, direct, "", "kept"),
				both(maySend(x.role, direct), passes(direct, identity.CTL, x.account)), ""},
			check{is + " asks the JetStream API", api(x.role, x.name, "$JS.API.INFO", "", "account_info_response"),
				both(maySend(x.role, "$JS.API.INFO"), hasJetStream(x.account)), ""},
			check{is + " makes a consumer that delivers to others", api(x.role, x.name, "$JS.API.CONSUMER.CREATE.KV_state", consumer, "consumer_create_response"),
				both(maySend(x.role, "$JS.API.>"), hasJetStream(x.account)), ""},
		)
	}
	return all
}

// hearsNoOthers: nobody hears what was answered to another of the same account.
func hearsNoOthers() []check {
	var all []check
	for _, x := range []struct {
		role   identity.Role
		name   string
		victim who
		asks   string
	}{
		{identity.Host, "ws1", who{identity.Host, "ws2"}, "node.v1.ws2.sync"},
		{identity.Host, "ws1", who{identity.Runtime, "ws1"}, "node.v1.ws1.tools"},
		{identity.Runtime, "ws1", who{identity.Host, "ws1"}, "node.v1.ws1.body"},
		{identity.Operator, "alice", who{identity.Operator, "bob"}, "mesh.v1.r.get"},
		{identity.Operator, "alice", who{identity.Operator, "bob"}, "seat.v1.r.ws1.s.journal"},
		{identity.Viewer, "vera", who{identity.Viewer, "vic"}, "mesh.v1.r.get"},
	} {
		all = append(all, check{string(x.role) + " " + x.name + " listens to the answers of " + x.victim.name + " to " + x.asks,
			snoops(x.role, x.name, x.victim, x.asks), mayHear(x.role, "_INBOX.>"), ""})
	}
	return all
}
