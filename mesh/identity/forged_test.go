package identity_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// forgeries are header blocks in which a caller says that it is somebody else.
// ME is the forged text.
func forgeries() map[string]string {
	const me = "Nats-Request-Info: ME"
	return map[string]string{
		"plainly":                                 "NATS/1.0\r\n" + me + "\r\n\r\n",
		"twice":                                   "NATS/1.0\r\n" + me + "\r\n" + me + "\r\n\r\n",
		"behind another":                          "NATS/1.0\r\nX: a\r\n" + me + "\r\n\r\n",
		"in other letters":                        "NATS/1.0\r\nnats-request-info: ME\r\n\r\n",
		"with a space before the colon":           "NATS/1.0\r\nNats-Request-Info : ME\r\n\r\n",
		"with a tab":                              "NATS/1.0\r\nNats-Request-Info:\tME\r\n\r\n",
		"on a line that LF begins":                "NATS/1.0\r\nX: a\n" + me + "\r\n\r\n",
		"on the first line that LF begins":        "NATS/1.0\n" + me + "\r\n\r\n",
		"before an empty line of LF":              "NATS/1.0\r\nX: a\n" + me + "\n\nY: b\r\n\r\n",
		"before an empty line and one to replace": "NATS/1.0\r\nX: a\n" + me + "\n\nNats-Request-Info: x\r\n\r\n",
		"before an empty line of CRLF":            "NATS/1.0\r\nX: a\n" + me + "\r\n\r\nY: b\r\nNats-Request-Info: x\r\n\r\n",
		"with the server's glued to it":           "NATS/1.0\r\nX: a\n" + me + "\r\n",
		"with the server's glued to another":      "NATS/1.0\r\nX: a\n" + me + "\nY:  b\r\n",
		"with the server's glued to a text":       "NATS/1.0\r\nX: a\n" + me + "\nY: b\r\n",
		"with the server's glued to a key":        "NATS/1.0\r\nX: a\n" + me + "\nY\r\n",
		"with the server's glued to no key":       "NATS/1.0\r\nX: a\n" + me + "\n:\r\n",
		"with a CR behind it":                     "NATS/1.0\r\nNats-Request-Info: x\rME\n\r\n\r\n",
		"with a status":                           "NATS/1.0 200 OK\n" + me + "\n\nY: b\r\n\r\n",
	}
}

// claims is what the server would say of a user, as the user itself can write
// it: all of it is public.
func claims(t testing.TB, c identity.Credentials) string {
	t.Helper()
	info := map[string]string{"user": c.PublicKey(), "name_tag": c.Name}
	row, _ := identity.Permissions().Role(c.Role)
	for key, a := range c.Accounts {
		if a == row.Account {
			info["acc"] = key
		}
	}
	for key, r := range c.Roles {
		if r == c.Role {
			info["issuer_key"] = key
		}
	}
	text, err := json.Marshal(info)
	require.NoError(t, err)
	return string(text)
}

// TestNobodyForgesTheCaller has a viewer say with bare bytes that it is an
// operator, in every way that was found to get past the server or nats.go. Who
// serves sees the viewer, or nobody. The same words are believed of a viewer who
// lives in the account of who serves: there the server says nothing.
func TestNobodyForgesTheCaller(t *testing.T) {
	r := newRealm(t)
	alice := r.user(t, identity.Operator, "alice")
	forged := claims(t, alice)
	strict := r.start(t, identity.Permissions())
	defer strict.stop()
	strict.furnish()
	table := identity.Permissions()
	lives(identity.Viewer, identity.TOOL)(&table)
	opened := r.start(t, table)
	defer opened.stop()
	opened.furnish()

	believed, tries := 0, 0
	all := forgeries()
	for n, header := range hidden(t, strict) {
		all["with bytes saved to hide the server's, "+strconv.Itoa(n)] = header
	}
	for name, header := range all {
		for _, h := range padded(header) {
			tries++
			caller, naive := strict.callerOf(t, strings.ReplaceAll(h, "ME", forged))
			require.NotEqual(t, "alice", caller.Name, "forged %s", name)
			if naive == forged {
				believed++ // who takes the header as nats.go reads it believes this one
			}
		}
	}
	require.Positive(t, believed, "no forgery gets past the server any more: the defence is not tested")
	caller, _ := opened.callerOf(t, "NATS/1.0\r\nNats-Request-Info: "+forged+"\r\n\r\n")
	require.Equal(t, "alice", caller.Name, "refused although both live in one account")
	t.Logf("%d forgeries, 0 believed; %d would be by who reads the header with nats.go alone", tries, believed)
}

// padded are the header and the same with blanks that nobody reads, so that a
// message may be as long as it should be although bytes of it are hidden.
func padded(header string) []string {
	out := []string{header}
	for n := 1; n <= 4; n++ {
		if h := strings.Replace(header, "X: a", "X: "+strings.Repeat(" ", n)+"a", 1); h != header {
			out = append(out, h)
		}
	}
	return out
}

// hidden are headers behind which the server's word is lost after an empty line,
// with as many short lines before it as make up for its length.
func hidden(t *testing.T, w *world) []string {
	t.Helper()
	_, said := w.callerOf(t, "NATS/1.0\r\nX: a\r\n\r\n")
	var out []string
	for n := len(said)/2 - 10; n < len(said)/2+30; n++ {
		for _, pad := range []string{"", " "} {
			out = append(out, "NATS/1.0\nNats-Request-Info: ME\nx:"+pad+"b\n"+strings.Repeat("a:b\n", n)+"\nY: b\r\n\r\n")
		}
	}
	return out
}

// callerOf has the viewer vera call a verb with these headers, and returns who
// the tool takes the caller for, and what stands in the header.
func (w *world) callerOf(t *testing.T, header string) (identity.Caller, string) {
	t.Helper()
	w.forget()
	c := w.credentials(identity.Viewer, "vera")
	raw := w.rawDial(c)
	defer raw.close()
	raw.publish("seat.v1.r.ws2.s.status", c.Inbox()+".x", header)
	w.settle()
	tool := w.be(identity.Tool, "ws2")
	require.Len(t, tool.got, 1)
	m := tool.got[0]
	caller, err := tool.creds.Caller(m)
	if err != nil {
		require.True(t, fault.Is(err, fault.Denied), "%v", err)
		return identity.Caller{}, m.Header.Get(identity.CallerHeader)
	}
	if caller.Name == "vera" {
		require.Equal(t, identity.Caller{Account: identity.VIEW, Role: identity.Viewer, Name: "vera", User: c.PublicKey()}, caller)
	}
	return caller, m.Header.Get(identity.CallerHeader)
}

// forgesNobody has each of those who ask say that it is another, to whoever
// serves what it may ask.
func forgesNobody() []check {
	ws1, ws2 := who{identity.Host, "ws1"}, who{identity.Host, "ws2"}
	alice, bob, vera := who{identity.Operator, "alice"}, who{identity.Operator, "bob"}, who{identity.Viewer, "vera"}
	var all []check
	for _, x := range []struct {
		is, as  who
		subject string
		serves  who
	}{
		{ws1, ws2, "node.v1.ws1.sync", controller},
		{ws1, ws2, "node.v1.ws1.body", controller},
		{ws1, ws2, "node.v1.ws1.report", controller},
		{ws1, who{identity.Runtime, "ws1"}, "node.v1.ws1.event", controller},
		{ws1, controller, "node.v1.ws1.profile", controller},
		{ws1, alice, "node.v1.ws1.sync", controller},
		{who{identity.Runtime, "ws1"}, ws1, "node.v1.ws1.event", controller},
		{who{identity.Runtime, "ws1"}, who{identity.Runtime, "ws2"}, "node.v1.ws1.claim", controller},
		{vera, alice, "mesh.v1.r.get", controller},
		{vera, alice, "mesh.v1.r.events", controller},
		{vera, who{identity.Viewer, "vic"}, "mesh.v1.r.progress", controller},
		{alice, bob, "mesh.v1.w.apply", controller},
		{alice, bob, "mesh.v1.w.part-abcdefgh", controller},
		{alice, ws1, "mesh.v1.w.upload", controller},
		{alice, bob, "seat.v1.w.ws1.s.stop", tool1},
	} {
		all = append(all, check{
			string(x.is.role) + " " + x.is.name + " says at " + x.subject + " that it is " + string(x.as.role) + " " + x.as.name,
			claimsToBe(x.is, x.as, x.subject, x.serves), func(t *identity.Table) { lives(x.is.role, row(t, x.serves.role).Account)(t) },
			"in the account of " + string(x.serves.role) + ": " + string(x.is.role),
		})
	}
	return all
}

// claimsToBe calls subject in another's name, in every way that forgeries knows,
// and reports whether whoever serves it took the caller for that one.
func claimsToBe(is, as who, subject string, serves who) func(*world) bool {
	return func(w *world) bool {
		w.furnish()
		w.forget()
		forged := claims(w.t, w.realm.user(w.t, as.role, as.name))
		c := w.credentials(is.role, is.name)
		raw := w.rawDial(c)
		defer raw.close()
		for _, header := range forgeries() {
			require.NotContains(w.t, raw.publish(subject, c.Inbox()+".x", strings.ReplaceAll(header, "ME", forged)), "-ERR")
		}
		w.settle()
		s := w.be(serves.role, serves.name)
		require.Len(w.t, s.got, len(forgeries()))
		for _, m := range s.got {
			if caller, err := s.creds.Caller(m); err == nil && caller.Role == as.role && caller.Name == as.name {
				return true
			}
		}
		return false
	}
}

// TestAnAnswerDoesNotSpeakForOthers has a tool forge the caller in an answer,
// which a viewer has delivered into a verb of another node: the way that stays
// open when an import has no wildcard.
func TestAnAnswerDoesNotSpeakForOthers(t *testing.T) {
	r := newRealm(t)
	forged := claims(t, r.user(t, identity.Operator, "alice"))
	table := identity.Permissions()
	literally("mesh.v1.r.*", "mesh.v1.r.get", identity.VIEW)(&table)
	w := r.start(t, table)
	defer w.stop()
	w.furnish()
	v := w.fresh(identity.Viewer, "vera")
	defer v.nc.Close()
	tool := w.rawDial(w.credentials(identity.Tool, "ws3"))
	defer tool.close()
	tool.send("SUB seat.v1.r.ws3.s.status 1\r\n")
	require.NoError(t, v.nc.PublishRequest("seat.v1.r.ws3.s.status", "mesh.v1.r.get", nil))
	require.NoError(t, v.nc.Flush())
	fields := strings.Fields(tool.send(""))
	require.Greater(t, len(fields), 3)
	require.NotContains(t, tool.publish(fields[3], "", "NATS/1.0\r\nNats-Request-Info: "+forged+"\r\n\r\n"), "-ERR")
	w.settle()
	c := w.be(identity.Controller, "c1")
	require.Equal(t, 1, c.heard("mesh.v1.r.get"), "the answer did not come")
	require.Contains(t, c.got[len(c.got)-1].Header.Get(identity.CallerHeader), "alice", "the server put its own word there")
	_, err := c.creds.Caller(c.got[len(c.got)-1])
	require.True(t, fault.Is(err, fault.Denied), "believed: %v", err)
}
