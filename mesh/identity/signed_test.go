package identity_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
)

// TestASignedCallIsItsCallersAlone changes one thing of a call that alice signed.
func TestASignedCallIsItsCallersAlone(t *testing.T) {
	r, stranger := newRealm(t), newRealm(t)
	alice, bob, c1 := r.user(t, identity.Operator, "alice"), r.user(t, identity.Operator, "bob"), r.user(t, identity.Controller, "c1")
	foreign := stranger.user(t, identity.Operator, "alice")
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	call := func() *nats.Msg { return &nats.Msg{Subject: "mesh.v1.w.apply", Data: []byte("web")} }
	signed := func(by identity.Credentials, at time.Time) *nats.Msg {
		m := call()
		require.NoError(t, by.Sign(m, at))
		return m
	}
	is, err := c1.Signer(signed(alice, now), now)
	require.NoError(t, err)
	require.Equal(t, identity.Caller{Account: identity.OPS, Role: identity.Operator, Name: "alice", User: alice.PublicKey()}, is.Caller)
	require.True(t, is.At.Equal(now))
	again, err := c1.Signer(signed(alice, now), now)
	require.NoError(t, err)
	require.NotEqual(t, is.Nonce, again.Nonce, "no two calls are one")

	set := func(header, value string) func(*nats.Msg) { return func(m *nats.Msg) { m.Header.Set(header, value) } }
	other := signed(bob, now)
	for name, change := range map[string]func(m *nats.Msg){
		"no signature":               func(m *nats.Msg) { m.Header = nil },
		"another payload":            func(m *nats.Msg) { m.Data = []byte("wet") },
		"a payload that is longer":   func(m *nats.Msg) { m.Data = append(slices.Clone(m.Data), ' ') },
		"another subject":            func(m *nats.Msg) { m.Subject = "mesh.v1.w.withdraw" },
		"another time":               set("Stead-Time", "1796126400001"),
		"no time":                    set("Stead-Time", ""),
		"another nonce":              set("Stead-Nonce", "x"),
		"another's name":             set("Stead-Signer", bob.JWT),
		"another mesh's name":        set("Stead-Signer", foreign.JWT),
		"no name":                    set("Stead-Signer", "x"),
		"another's signature":        set("Stead-Signature", other.Header.Get("Stead-Signature")),
		"half a signature":           set("Stead-Signature", "AAAA"),
		"no base64":                  set("Stead-Signature", "-"),
		"all of another mesh's":      func(m *nats.Msg) { *m = *signed(foreign, now) },
		"signed long ago":            func(m *nats.Msg) { *m = *signed(alice, now.Add(-identity.SignedFor-time.Second)) },
		"signed in the time to come": func(m *nats.Msg) { *m = *signed(alice, now.Add(identity.SignedFor+time.Second)) },
	} {
		m := signed(alice, now)
		change(m)
		_, err := c1.Signer(m, now)
		require.True(t, fault.Is(err, fault.Denied), "%s: %v", name, err)
	}
	for name, at := range map[string]time.Time{"a while ago": now.Add(-identity.SignedFor + time.Second), "by a clock that is ahead": now.Add(identity.SignedFor - time.Second)} {
		_, err := c1.Signer(signed(alice, at), now)
		require.NoError(t, err, name)
	}
	for name, change := range map[string]func(*jwt.UserClaims){
		"expired":        func(u *jwt.UserClaims) { u.Expires = now.Unix() },
		"a bearer token": func(u *jwt.UserClaims) { u.BearerToken = true },
		"no name":        func(u *jwt.UserClaims) { u.Name = "" },
	} {
		token, err := r.mesh.SignUnchecked(identity.Operator, identity.OPS, alice.PublicKey(), func(u *jwt.UserClaims) { u.Name = "alice"; change(u) })
		require.NoError(t, err)
		with := alice
		with.JWT = token
		_, err = c1.Signer(signed(with, now), now)
		require.True(t, fault.Is(err, fault.Denied), "%s: %v", name, err)
	}
}
