package identity_test

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// entry is one way to come in, and the same way with the one thing that it
// lacked.
type entry struct {
	name         string
	wrong, right func() (*nats.Conn, error)
}

// TestOnlyTheMeshComesIn tries to connect without being of the mesh. Each try
// succeeds as soon as the one thing is right that was wrong.
func TestOnlyTheMeshComesIn(t *testing.T) {
	r := newRealm(t)
	w := r.start(t, identity.Permissions())
	defer w.stop()
	entries := append(anonymous(t, w), signed(t, w)...)
	for _, e := range entries {
		nc, err := e.wrong()
		if err == nil {
			nc.Close()
		}
		require.Error(t, err, "came in: %s", e.name)
		nc, err = e.right()
		require.NoError(t, err, "refused although it is right: %s", e.name)
		nc.Close()
	}
	t.Logf("%d ways in, 0 of them open, each open to who is right", len(entries))
}

// anonymous are those who prove nothing, or prove it to the wrong server.
func anonymous(t *testing.T, w *world) []entry {
	c := w.realm.user(t, identity.Viewer, "vera")
	config, err := c.TLS()
	require.NoError(t, err)
	other := newRealm(t).user(t, identity.Viewer, "vera")
	otherConfig, err := other.TLS()
	require.NoError(t, err)
	user := nats.UserJWTAndSeed(c.JWT, string(c.Seed))
	to := func(more ...nats.Option) func() (*nats.Conn, error) {
		return func() (*nats.Conn, error) {
			return nats.Connect(w.url, append(more, nats.NoReconnect(), nats.Timeout(longest))...)
		}
	}
	right := to(nats.Secure(config), user)
	plain := "nats://" + strings.TrimPrefix(w.url, "tls://")
	old := config.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	return []entry{
		{"no credentials at all", to(nats.Secure(config)), right},
		{"a name and a password", to(nats.Secure(config), nats.UserInfo("root", "root")), right},
		{"a token", to(nats.Secure(config), nats.Token("x")), right},
		{"a key that nobody signed", to(nats.Secure(config), bareKey(t)), right},
		{"another mesh's CA", to(nats.Secure(otherConfig), user), right},
		{"the system's CAs", to(nats.Secure(&tls.Config{MinVersion: tls.VersionTLS13}), user), right},
		{"TLS 1.2", to(nats.Secure(old), user), right},
		{"plain TCP", func() (*nats.Conn, error) { return plainly(plain, c) }, right},
		{"another mesh's user", to(nats.Secure(config), nats.UserJWTAndSeed(other.JWT, string(other.Seed))), right},
		{"a JWT without its key", to(nats.Secure(config), nats.UserJWTAndSeed(c.JWT, string(other.Seed))), right},
		{"a JWT that nothing proves", to(nats.Secure(config), nats.UserJWT(func() (string, error) { return c.JWT, nil },
			func([]byte) ([]byte, error) { return nil, nil })), right},
		{"a JWT that was changed", to(nats.Secure(config), nats.UserJWTAndSeed(changed(c.JWT), string(c.Seed))), right},
	}
}

// signed are those whom a key of the mesh signed, and not so.
func signed(t *testing.T, w *world) []entry {
	c := w.realm.user(t, identity.Viewer, "vera")
	as := func(account identity.Account, change func(*jwt.UserClaims)) func() (*nats.Conn, error) {
		return func() (*nats.Conn, error) {
			token, err := w.realm.mesh.SignUnchecked(identity.Viewer, account, c.PublicKey(), change)
			require.NoError(t, err)
			mine := c
			mine.JWT = token
			return w.dial(mine)
		}
	}
	right := as(identity.VIEW, func(*jwt.UserClaims) {})
	until := func(d time.Duration) func() (*nats.Conn, error) {
		return as(identity.VIEW, func(u *jwt.UserClaims) { u.Expires = time.Now().Add(d).Unix() })
	}
	return []entry{
		{"expired", until(-time.Minute), until(time.Minute)},
		{"not yet valid", as(identity.VIEW, func(u *jwt.UserClaims) { u.NotBefore = time.Now().Add(time.Hour).Unix() }), right},
		{"permissions of its own", as(identity.VIEW, func(u *jwt.UserClaims) { u.Permissions.Pub.Allow.Add(">") }), right},
		{"limits of its own", as(identity.VIEW, func(u *jwt.UserClaims) { u.Limits.Payload = 1 << 30 }), right},
		{"a viewer's key for the account of operators", as(identity.OPS, func(*jwt.UserClaims) {}), right},
		{"a viewer's key for the account of controllers", as(identity.CTL, func(*jwt.UserClaims) {}), right},
		{"a viewer's key for the servers' own account", as(identity.SYS, func(*jwt.UserClaims) {}), right},
		{"a viewer's key for who joins", as(identity.ENROLL, func(*jwt.UserClaims) {}), right},
		{"a bearer token", as(identity.VIEW, func(u *jwt.UserClaims) { u.BearerToken = true }), right},
	}
}

func bareKey(t *testing.T) nats.Option {
	t.Helper()
	pair, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := pair.PublicKey()
	require.NoError(t, err)
	return nats.Nkey(public, pair.Sign)
}

// plainly sends credentials and a message without TLS, and returns the
// connection's end as an error.
func plainly(url string, c identity.Credentials) (*nats.Conn, error) {
	conn, err := net.DialTimeout("tcp", strings.TrimPrefix(url, "nats://"), longest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(longest)); err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte("CONNECT {\"jwt\":\"" + c.JWT + "\"}\r\nPUB mesh.v1.r.get 0\r\n\r\nPING\r\n")); err != nil {
		return nil, err
	}
	said := ""
	for b := make([]byte, 4096); ; {
		n, err := conn.Read(b)
		said += string(b[:n])
		if strings.Contains(said, "PONG") {
			return nil, nil
		}
		if err != nil {
			return nil, errors.New(said)
		}
	}
}

// changed is a JWT whose claims say another name than what was signed.
func changed(token string) string {
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(text), "vera", "anna", 1)))
	return strings.Join(parts, ".")
}

func TestRevokedUsersAreCutOffAndStayOut(t *testing.T) {
	r := newRealm(t)
	w := r.start(t, identity.Permissions())
	defer w.stop()
	vera, vic := w.fresh(identity.Viewer, "vera"), w.fresh(identity.Viewer, "vic")
	defer vera.nc.Close()
	defer vic.nc.Close()
	revoked := identity.Revocation{Account: identity.VIEW, User: vera.creds.PublicKey(), Before: time.Now().Add(time.Second)}
	trust, err := r.mesh.Trust(identity.Permissions(), []identity.Revocation{revoked})
	require.NoError(t, err)
	require.NoError(t, w.srv.Update(trust))
	require.True(t, w.eventually(vera.nc.IsClosed), "the connection of a revoked user lives on")
	require.NoError(t, vic.nc.Flush(), "a bystander was cut off")
	_, err = w.dial(vera.creds)
	require.ErrorContains(t, err, "uthorization")

	again := r.start(t, identity.Permissions(), revoked)
	defer again.stop()
	_, err = again.dial(vera.creds)
	require.ErrorContains(t, err, "uthorization", "a restart forgot the revocation")
	forgotten := r.start(t, identity.Permissions())
	defer forgotten.stop()
	nc, err := forgotten.dial(vera.creds)
	require.NoError(t, err, "refused although nobody revoked it")
	nc.Close()
}

func TestExpiredUsersAreCutOff(t *testing.T) {
	r := newRealm(t)
	w := r.start(t, identity.Permissions())
	defer w.stop()
	c, err := r.mesh.Mint(identity.Request{Role: identity.Host, Name: "ws1", URLs: []string{w.url}, Expires: time.Now().Add(2 * time.Second)})
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(2*time.Second), c.Expires(), 2*time.Second)
	gone := make(chan struct{})
	nc, err := w.dial(c, nats.ClosedHandler(func(*nats.Conn) { close(gone) }))
	require.NoError(t, err)
	defer nc.Close()
	select {
	case <-gone:
	case <-time.After(longest):
		t.Fatal("the connection outlives its credentials")
	}
}

// TestNamesAreCheckedBeforeTheyAreSigned: the server pastes the name of a user
// into the patterns of the table as it is. A user who is signed without the
// check gets in, so nothing else stands in the way.
func TestNamesAreCheckedBeforeTheyAreSigned(t *testing.T) {
	r := newRealm(t)
	w := r.start(t, identity.Permissions())
	defer w.stop()
	names := []string{"*", ">", "ws1.>", "*.>", "ws1.ws2", "", ".", "_all", "WS1", "ws 1", "ws1\n", "ws1\r\nPUB", "-ws1", "ws1-",
		"{{name()}}", "{{subject()}}", "$SYS", "wß1", strings.Repeat("a", 64)}
	roles := append(identity.NodeRoles(), identity.Operator, identity.Viewer, identity.Controller)
	for _, role := range roles {
		for _, name := range names {
			_, err := r.mesh.Mint(identity.Request{Role: role, Name: name, URLs: []string{w.url}})
			require.True(t, fault.Is(err, fault.Invalid), "%s %q: %v", role, name, err)
		}
	}
	for _, name := range names {
		unchecked := r.user(t, identity.Host, "ws1")
		token, err := r.mesh.SignUnchecked(identity.Host, identity.HOST, unchecked.PublicKey(), func(u *jwt.UserClaims) { u.Name = name })
		require.NoError(t, err)
		unchecked.JWT = token
		nc, err := w.dial(unchecked)
		require.NoError(t, err, "%q: the server refuses the name by itself", name)
		if name == "*" {
			require.NoError(t, nc.Publish("node.v1.ws2.report", []byte("x")))
			require.False(t, (&party{nc: nc}).refused(t), "a user called * is every node")
		}
		nc.Close()
	}
	t.Logf("%d names for %d roles: %d refused", len(names), len(roles), len(names)*len(roles))
	_, err := r.mesh.Mint(identity.Request{Role: "root", Name: "ws1", URLs: []string{w.url}})
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	_, err = r.mesh.Sign(identity.Request{Role: identity.Host, Name: "ws1"}, "UNOKEY")
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
}

// TestRepliesThatTheServerReserves: an answer that went to one of these subjects
// would acknowledge what a controller reads, or answer in another's stead. The
// server takes none of them from a client; a reply of one's own it takes.
func TestRepliesThatTheServerReserves(t *testing.T) {
	r := newRealm(t)
	w := r.start(t, identity.Permissions())
	defer w.stop()
	w.furnish()
	for _, x := range []struct {
		who
		subject string
	}{
		{who{identity.Viewer, "vera"}, "mesh.v1.r.get"}, {who{identity.Viewer, "vera"}, "seat.v1.r.ws1.s.status"},
		{who{identity.Host, "ws1"}, "node.v1.ws1.sync"}, {who{identity.Runtime, "ws1"}, "node.v1.ws1.claim"},
		{who{identity.Operator, "alice"}, "mesh.v1.w.apply"},
	} {
		for _, reply := range []string{"$JS.ACK.KV_state.reader.1.1.1.1.0", "_R_.abcdef.ghijkl", "_GR_.abcdefgh.ijklmnop.x"} {
			p := w.fresh(x.role, x.name)
			w.forget()
			require.NoError(t, p.nc.PublishRequest(x.subject, reply, []byte("x")))
			require.True(t, p.refused(t), "%s: reply %s", x.role, reply)
			w.settle()
			require.False(t, w.anybodyHeard(x.subject), "%s: reply %s", x.role, reply)
			p.nc.Close()
		}
		require.True(t, asks(x.role, x.name, x.subject, map[string]who{"mesh": controller, "seat": tool1, "node": controller}[x.subject[:4]])(w))
	}
}
