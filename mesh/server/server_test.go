package server_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newMesh makes keys in a folder of the test's own.
func newMesh(t *testing.T) *identity.Mesh {
	t.Helper()
	m, err := identity.Create(filepath.Join(t.TempDir(), "keys"), time.Now())
	require.NoError(t, err)
	return m
}

func options(t *testing.T, m *identity.Mesh, store string) server.Options {
	t.Helper()
	trust, err := m.Trust(identity.Permissions(), nil)
	require.NoError(t, err)
	tls, err := m.ServerTLS([]string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	return server.Options{
		Name: "c1", Listen: "127.0.0.1:0", Store: store, MaxStore: 64 << 20, Trust: trust, TLS: tls, Logger: slog.New(slog.DiscardHandler),
	}
}

// run serves until the test ends or stop is called.
func run(t *testing.T, o server.Options) (s *server.Server, stop func()) {
	t.Helper()
	s, err := server.New(o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-done:
		t.Fatalf("the server ended: %v", err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			cancel()
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return s, stop
}

func connect(t *testing.T, m *identity.Mesh, role identity.Role, url string) (*nats.Conn, error) {
	t.Helper()
	c, err := m.Mint(identity.Request{Role: role, Name: "ws1", URLs: []string{url}})
	require.NoError(t, err)
	tls, err := c.TLS()
	require.NoError(t, err)
	nc, err := nats.Connect(url, nats.UserJWTAndSeed(c.JWT, string(c.Seed)), nats.Secure(tls), nats.CustomInboxPrefix(c.Inbox()),
		nats.NoReconnect())
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

func TestServerKeepsWhatWasAcknowledged(t *testing.T) {
	m, store := newMesh(t), t.TempDir()
	put := func(url string, do func(js jetstream.JetStream)) {
		nc, err := connect(t, m, identity.Controller, url)
		require.NoError(t, err)
		defer nc.Close()
		js, err := jetstream.New(nc)
		require.NoError(t, err)
		do(js)
	}
	s, stop := run(t, options(t, m, store))
	put(s.URL(), func(js jetstream.JetStream) {
		kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", MaxBytes: 1 << 20})
		require.NoError(t, err)
		_, err = kv.PutString(t.Context(), "k", "v")
		require.NoError(t, err)
	})
	stop()
	require.True(t, fault.Is(s.Update(identity.Trust{}), fault.Unavailable))

	s, _ = run(t, options(t, m, store))
	put(s.URL(), func(js jetstream.JetStream) {
		kv, err := js.KeyValue(t.Context(), "b")
		require.NoError(t, err)
		e, err := kv.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(e.Value()))
	})
}
