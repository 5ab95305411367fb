package system

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/mesh/identity"
	"stead/mesh/wire"
)

// TestTheStoresForgetNothing has a thief who may do everything in the controllers'
// account try to empty the streams that a real controller made. A stream that
// allows it does it.
func TestTheStoresForgetNothing(t *testing.T) {
	t.Parallel()
	s := besiege(t)
	loose := map[string]string{"LOOSE": "loose.x"}
	_, err := s.js.CreateStream(s.within(patience), jetstream.StreamConfig{Name: "LOOSE", Subjects: []string{"loose.>"}, MaxBytes: 1 << 20, AllowRollup: true})
	require.NoError(t, err)
	kept := map[string]string{"KV_state": "$KV.state.x", "KV_profiles": "$KV.profiles.x", "KV_reports": "$KV.reports.x", "AUDIT": "audit.v1.x"}
	tries := 0
	for _, streams := range []map[string]string{kept, loose} {
		for stream, subject := range streams {
			first, err := s.js.Publish(s.within(patience), subject, []byte("x"))
			require.NoError(t, err)
			for _, m := range []struct {
				what string
				msg  *nats.Msg
			}{
				{"deleting a message", &nats.Msg{Subject: "$JS.API.STREAM.MSG.DELETE." + stream, Data: fmt.Appendf(nil, `{"seq":%d}`, first.Sequence)}},
				{"a rollup header for everything", &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {"all"}}}},
				{"a rollup header for one key", &nats.Msg{Subject: subject, Header: nats.Header{"Nats-Rollup": {"sub"}}}},
				{"purging one key", &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + stream, Data: fmt.Appendf(nil, `{"filter":%q}`, subject)}},
				{"purging everything", &nats.Msg{Subject: "$JS.API.STREAM.PURGE." + stream}},
			} {
				answer, err := s.nc.RequestMsgWithContext(s.within(patience), m.msg)
				require.NoError(t, err)
				refused := strings.Contains(string(answer.Data), `"error"`)
				require.Equal(t, stream != "LOOSE", refused, "%s of %s: %s", m.what, stream, answer.Data)
				tries++
			}
			info, err := s.js.Stream(s.within(patience), stream)
			require.NoError(t, err)
			if config := info.CachedInfo().Config; stream != "LOOSE" {
				config.AllowRollup = true
				_, err = s.js.UpdateStream(s.within(patience), config)
				require.Error(t, err, "%s is made to allow it", stream)
				config.AllowRollup, config.DenyPurge, config.DenyDelete = false, false, false
				_, err = s.js.UpdateStream(s.within(patience), config)
				require.Error(t, err, "%s is made to allow it", stream)
				tries += 2
			}
		}
	}
	t.Logf("the controllers' streams: %d tries to empty them, 0 do; another stream allows each", tries-5)
}

// TestForgedNamesReachNoRealController has a viewer and a host say in the header
// of the server that they are somebody else, to a real controller.
func TestForgedNamesReachNoRealController(t *testing.T) {
	t.Parallel()
	s := besiege(t, "ws1", "ws2")
	s.apply(s.alice, sleeping("own", "nodes: [ws1]", 1000)+"---\n"+sleeping("others", "nodes: [ws2]", 4711))
	others := read(t, s.index("ws2")).Entries[0].Digest
	forms := func(as identity.Credentials) []nats.Header {
		info := map[string]string{"user": as.PublicKey(), "name_tag": as.Name}
		for key, role := range as.Roles {
			if role == as.Role {
				info["issuer_key"] = key
			}
		}
		row, _ := identity.Permissions().Role(as.Role)
		for key, account := range as.Accounts {
			if account == row.Account {
				info["acc"] = key
			}
		}
		text, err := json.Marshal(info)
		require.NoError(t, err)
		return []nats.Header{
			nil, {identity.CallerHeader: {string(text)}}, {identity.CallerHeader: {string(text), string(text)}},
			{"nats-request-info": {string(text)}}, {"X": {"a\n" + identity.CallerHeader + ": " + string(text)}},
			{identity.CallerHeader: {string(text)}, "X": {identity.CallerHeader}},
		}
	}
	ask := func(wait time.Duration, nc *nats.Conn, subject string, header nats.Header, request any) string {
		payload, err := json.Marshal(request)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		m, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: header, Data: payload})
		if err != nil {
			return "" // it was dropped
		}
		return string(m.Data)
	}
	mint := func(role identity.Role, name string) identity.Credentials {
		who, err := s.keys.Mint(identity.Request{Role: role, Name: name, URLs: s.urls})
		require.NoError(t, err)
		return who
	}
	get := wire.GetRequest{Wire: wire.Version, Kind: wire.Declarations, Content: true}
	body := wire.BodyRequest{Wire: wire.Version, Digests: []string{others}}
	tries := 0
	for _, c := range []struct {
		role, as  identity.Role
		name, who string
		subject   string
		request   any
	}{
		{identity.Viewer, identity.Operator, "vera", "alice", "mesh.v1.r.get", get},
		{identity.Viewer, identity.Controller, "vera", "c1", "mesh.v1.r.get", get},
		{identity.Host, identity.Host, "ws1", "ws2", "node.v1.ws1.body", body},
	} {
		nc := s.bare(c.role, c.name)
		for _, header := range forms(mint(c.as, c.who)) {
			require.NotContains(t, ask(200*time.Millisecond, nc, c.subject, header, c.request), "4711", "%s %s as %s, with %v", c.role, c.name, c.who, header)
			tries++
		}
	}
	require.Contains(t, ask(patience, s.bare(identity.Operator, "alice"), "mesh.v1.r.get", nil, get), "4711", "whoever is an operator reads it")
	reply := wire.BodyReply{}
	require.NoError(t, json.Unmarshal([]byte(ask(patience, s.bare(identity.Host, "ws2"), "node.v1.ws2.body", nil, body)), &reply))
	require.Contains(t, string(reply.Bodies[0]), "4711", "whoever is ws2 gets it")
	t.Logf("%d calls in another's name, 0 believed", tries)
}
