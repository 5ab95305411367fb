package identity_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/mesh/identity"
	"stead/mesh/server"
	"stead/mesh/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// realm is one mesh and the users that were minted in it. Servers come and go
// with other tables; the users stay the same.
type realm struct {
	mesh  *identity.Mesh
	users map[string]identity.Credentials
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	m, err := identity.Create(filepath.Join(t.TempDir(), "keys"), time.Now())
	require.NoError(t, err)
	return &realm{mesh: m, users: map[string]identity.Credentials{}}
}

// user is the one user of this role and name.
func (r *realm) user(t testing.TB, role identity.Role, name string) identity.Credentials {
	t.Helper()
	key := string(role) + " " + name
	if c, ok := r.users[key]; ok {
		return c
	}
	c, err := r.mesh.Mint(identity.Request{Role: role, Name: name, URLs: []string{"tls://127.0.0.1:4222"}})
	require.NoError(t, err)
	r.users[key] = c
	return c
}

// world is a server with a table, and the honest who live there.
type world struct {
	t     testing.TB
	realm *realm
	table identity.Table
	srv   *server.Server
	url   string
	stop  func()

	patience time.Duration // with what the server does in its own time

	who       map[string]*party // by "role name"
	js        jetstream.JetStream
	furnished bool
}

// party is a bare NATS client with the subscriptions that it serves.
type party struct {
	creds identity.Credentials
	nc    *nats.Conn
	subs  []*nats.Subscription
	inbox *nats.Subscription
	got   []*nats.Msg // what its subscriptions brought, each answered
}

// start serves a table until the returned world is stopped.
func (r *realm) start(t testing.TB, table identity.Table, revoked ...identity.Revocation) *world {
	t.Helper()
	trust, err := r.mesh.Trust(table, revoked)
	require.NoError(t, err)
	tls, err := r.mesh.ServerTLS([]string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	s, err := server.New(server.Options{
		Name: "c1", Listen: "127.0.0.1:0", Store: t.TempDir(), MaxStore: 64 << 20, Trust: trust, TLS: tls, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		cancel()
		t.Fatalf("the server ended: %v", err)
	}
	w := &world{t: t, realm: r, table: table, srv: s, url: s.URL(), patience: longest, who: map[string]*party{}}
	w.stop = func() {
		for _, p := range w.who {
			p.nc.Close()
		}
		cancel()
		require.NoError(t, <-done)
	}
	return w
}

// dial connects a bare client with these credentials.
func (w *world) dial(c identity.Credentials, more ...nats.Option) (*nats.Conn, error) {
	tls, err := c.TLS()
	require.NoError(w.t, err)
	all := append([]nats.Option{
		nats.UserJWTAndSeed(c.JWT, string(c.Seed)), nats.Secure(tls), nats.CustomInboxPrefix(c.Inbox()),
		nats.NoReconnect(), nats.Timeout(longest), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, more...)
	return nats.Connect(w.url, all...)
}

// credentials are those of the one user of this role and name; of one signed
// for the account that this world's table has the role in, when that is another.
func (w *world) credentials(role identity.Role, name string) identity.Credentials {
	w.t.Helper()
	c := w.realm.user(w.t, role, name)
	was, _ := identity.Permissions().Role(role)
	is, ok := w.table.Role(role)
	require.True(w.t, ok)
	if was.Account != is.Account {
		token, err := w.realm.mesh.SignUnchecked(role, is.Account, c.PublicKey(), func(u *jwt.UserClaims) { u.Name = name })
		require.NoError(w.t, err)
		c.JWT = token
	}
	return c
}

// fresh is a new connection of a user, with an ear on its own inbox when it may.
func (w *world) fresh(role identity.Role, name string) *party {
	w.t.Helper()
	p := &party{creds: w.credentials(role, name)}
	nc, err := w.dial(p.creds)
	require.NoError(w.t, err, "%s %s", role, name)
	p.nc = nc
	if role != identity.Tool && role != identity.Listener {
		p.inbox, err = nc.SubscribeSync(p.answers())
		require.NoError(w.t, err)
		require.NoError(w.t, nc.Flush())
	}
	return p
}

// answers is a subject of the user's own inbox.
func (p *party) answers() string { return p.creds.Inbox() + ".answer" }

// be is the honest party of this role and name, connected once.
func (w *world) be(role identity.Role, name string) *party {
	w.t.Helper()
	key := string(role) + " " + name
	if w.who[key] == nil {
		w.who[key] = w.fresh(role, name)
	}
	return w.who[key]
}

func (w *world) serve(p *party, subjects ...string) *party {
	w.t.Helper()
	for _, s := range subjects {
		sub, err := p.nc.SubscribeSync(s)
		require.NoError(w.t, err)
		p.subs = append(p.subs, sub)
	}
	require.NoError(w.t, p.nc.Flush())
	require.NoError(w.t, p.nc.LastError())
	return p
}

// furnish brings in those who serve: a controller with a bucket, and the two
// nodes ws1 and ws2.
func (w *world) furnish() {
	w.t.Helper()
	if w.furnished {
		return
	}
	w.furnished = true
	c := w.be(identity.Controller, "c1")
	var asked []string
	for _, t := range append(subject.HostTopics(), subject.Tools, subject.Claim) {
		asked = append(asked, subject.TopicPattern(subject.Any, t))
	}
	w.serve(c, append(asked, "mesh.v1.r.*", "mesh.v1.w.*")...)
	for _, node := range []string{"ws1", "ws2"} {
		w.serve(w.be(identity.Tool, node), "seat.v1.r."+node+".*.*", "seat.v1.w."+node+".*.*", "seat.v1.r._all.*.*", "seat.v1.w._all.*.*", "$SRV.PING", "$SRV.INFO", "$SRV.STATS",
			"$SRV.PING.s", "$SRV.INFO.s", "$SRV.STATS.s.ws1", "$SRV.INFO.s.ws1")
		w.serve(w.be(identity.Listener, node), "node.v1."+node+".changed", "node.v1."+node+".plan")
	}
	js, err := jetstream.New(c.nc)
	require.NoError(w.t, err)
	w.js = js
	// So that nothing but a permission stops anything, they allow more than those
	// that controllers make.
	for stream, subjects := range map[string]string{"KV_state": "$KV.state.>", "KV_profiles": "$KV.profiles.>", "KV_reports": "$KV.reports.>", "AUDIT": "audit.v1.*"} {
		_, err = js.CreateStream(w.t.Context(), jetstream.StreamConfig{
			Name: stream, Subjects: []string{subjects}, MaxMsgsPerSubject: 1, MaxBytes: 1 << 20, AllowDirect: true, AllowRollup: true,
		})
		require.NoError(w.t, err)
	}
	_, err = js.CreateConsumer(w.t.Context(), "KV_state", jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy})
	require.NoError(w.t, err)
	for subject, text := range map[string]string{"$KV.state.seed": "kept", "$KV.profiles.ws2": "kept", "$KV.reports.ws2": "kept", "audit.v1.ws2": "told"} {
		_, err = js.Publish(w.t.Context(), subject, []byte(text))
		require.NoError(w.t, err)
	}
}

// settle lets everybody take and answer what was sent to them, until nobody has
// anything left. There is no waiting in it: a server has put what one client
// sent before a ping on the way to another before it answers the ping.
func (w *world) settle() {
	w.t.Helper()
	for quiet := 0; quiet < 2; quiet++ {
		for _, p := range w.who {
			if p.nc.IsConnected() {
				require.NoError(w.t, p.nc.FlushTimeout(longest))
			}
		}
		for _, p := range w.who {
			if w.take(p) {
				quiet = -1
			}
		}
	}
}

func (w *world) take(p *party) (some bool) {
	for _, sub := range p.subs {
		for {
			n, _, err := sub.Pending()
			require.NoError(w.t, err)
			if n == 0 {
				break
			}
			m, err := sub.NextMsg(time.Second)
			require.NoError(w.t, err)
			p.got = append(p.got, m)
			some = true
			if m.Reply != "" {
				require.NoError(w.t, p.nc.PublishMsg(&nats.Msg{Subject: m.Reply, Data: []byte("{}")}))
			}
		}
	}
	return some
}

// refused reports whether the server objected to the last thing that p did.
func (p *party) refused(t testing.TB) bool {
	t.Helper()
	if err := p.nc.FlushTimeout(longest); err != nil {
		return true // cut off
	}
	err := p.nc.LastError()
	return err != nil && strings.Contains(strings.ToLower(err.Error()), "violation")
}

// heard counts what reached a party on a subject.
func (p *party) heard(subject string) int {
	n := 0
	for _, m := range p.got {
		if m.Subject == subject {
			n++
		}
	}
	return n
}
