package server_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/server"
)

func TestServerOptionsAreChecked(t *testing.T) {
	m := newMesh(t)
	for what, change := range map[string]func(*server.Options){
		"Name":     func(o *server.Options) { o.Name = "" },
		"Store":    func(o *server.Options) { o.Store = "" },
		"MaxStore": func(o *server.Options) { o.MaxStore = 0 },
		"TLS":      func(o *server.Options) { o.TLS = &tls.Config{} },
		"Logger":   func(o *server.Options) { o.Logger = nil },
		"Trust":    func(o *server.Options) { o.Trust = identity.Trust{} },
		"listen":   func(o *server.Options) { o.Listen = "127.0.0.1" },
		"number":   func(o *server.Options) { o.Listen = "127.0.0.1:99999" },
		"operator": func(o *server.Options) { o.Trust.Operator = "x" },
	} {
		o := options(t, m, t.TempDir())
		change(&o)
		_, err := server.New(o)
		require.True(t, fault.Is(err, fault.Invalid), "%s: %v", what, err)
		require.ErrorContains(t, err, what)
	}
}

func TestServerRunsOnce(t *testing.T) {
	s, stop := run(t, options(t, newMesh(t), t.TempDir()))
	stop()
	require.True(t, fault.Is(s.Run(t.Context()), fault.Internal))
}

func TestServerThatCannotListenSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	o := options(t, newMesh(t), t.TempDir())
	o.Listen = l.Addr().String()
	s, err := server.New(o)
	require.NoError(t, err)
	err = s.Run(t.Context())
	require.True(t, fault.Is(err, fault.Failed), "%v", err)
	require.ErrorContains(t, err, "address already in use")
}

func TestStoreHasOneOwner(t *testing.T) {
	m, store := newMesh(t), t.TempDir()
	_, stop := run(t, options(t, m, store))
	second, err := server.New(options(t, m, store))
	require.NoError(t, err)
	err = second.Run(t.Context())
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	require.ErrorContains(t, err, "another process serves it")
	require.Equal(t, "end that first: systemctl stop stead-controller", fault.HintOf(err))
	stop()
	run(t, options(t, m, store))
}

func TestStoreBelongsToOneMesh(t *testing.T) {
	store := t.TempDir()
	_, stop := run(t, options(t, newMesh(t), store))
	stop()
	_, err := server.New(options(t, newMesh(t), store))
	require.True(t, fault.Is(err, fault.Conflict), "%v", err)
	require.ErrorContains(t, err, "another mesh")
}

func TestStoreOfANewerVersionIsNotOpened(t *testing.T) {
	m, store := newMesh(t), t.TempDir()
	mark := filepath.Join(store, "stead-store.json")
	for text, class := range map[string]fault.Class{`{"schema":2}`: fault.Unsupported, `{`: fault.Invalid, `{}`: fault.Invalid} {
		require.NoError(t, os.WriteFile(mark, []byte(text), 0o600))
		_, err := server.New(options(t, m, store))
		require.Equal(t, class, fault.ClassOf(err), "%s: %v", text, err)
	}
	require.NoError(t, os.WriteFile(mark, nil, 0o600)) // a crash before the first byte
	_, stop := run(t, options(t, m, store))
	stop()
	text, err := os.ReadFile(mark)
	require.NoError(t, err)
	require.Contains(t, string(text), `"server":"c1"`)
}

// TestStandaloneStoreNeverJoinsACluster: a NATS server in a cluster deletes the
// streams that a server alone wrote.
func TestStandaloneStoreNeverJoinsACluster(t *testing.T) {
	m, store := newMesh(t), t.TempDir()
	o := options(t, m, store)
	o.Cluster = "c"
	_, err := server.New(o)
	require.True(t, fault.Is(err, fault.Unsupported), "%v", err)
	_, stop := run(t, options(t, m, store))
	stop()
	_, err = server.New(o)
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	require.ErrorContains(t, err, "would delete its streams")
}

// TestStoreOfAClusterIsNotOpenedAlone uses a real NATS server in cluster mode.
func TestStoreOfAClusterIsNotOpenedAlone(t *testing.T) {
	store := t.TempDir()
	ns, err := natsd.NewServer(&natsd.Options{
		ServerName: "a", Host: "127.0.0.1", Port: natsd.RANDOM_PORT, NoSigs: true, NoLog: true, JetStream: true, StoreDir: store,
		Cluster: natsd.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: natsd.RANDOM_PORT},
		Routes:  natsd.RoutesFromStr("nats://127.0.0.1:1"),
	})
	require.NoError(t, err)
	ns.Start()
	require.Eventually(t, func() bool {
		found, _ := filepath.Glob(filepath.Join(store, "jetstream", "*", "_js_", "_meta_"))
		return len(found) == 1
	}, 10*time.Second, 10*time.Millisecond)
	ns.Shutdown()
	ns.WaitForShutdown()
	_, err = server.New(options(t, newMesh(t), store))
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	require.ErrorContains(t, err, "in a cluster")
}

// TestServerHasTheSettingsThatMatter asks the server that runs, not our options.
func TestServerHasTheSettingsThatMatter(t *testing.T) {
	o := options(t, newMesh(t), t.TempDir())
	s, _ := run(t, o)
	js, v := s.Running(t)
	require.True(t, js.SyncAlways, "a power cut would take what was acknowledged")
	require.Equal(t, o.MaxStore, js.MaxStore)
	require.Equal(t, int64(64<<20), js.MaxMemory)
	require.True(t, strings.HasPrefix(js.StoreDir, o.Store))
	require.True(t, v.TLSRequired)
	require.True(t, v.AuthRequired)
	require.Empty(t, v.Cluster.Name)
	require.Zero(t, v.HTTPPort)
	require.Equal(t, identity.MaxPayload, v.MaxPayload)
	require.Equal(t, "c1", v.Name)
	require.Len(t, v.TrustedOperatorsClaim, 1)
	require.True(t, v.TrustedOperatorsClaim[0].StrictSigningKeyUsage)
}

// TestServerListensNowhereElse: one port, which speaks NATS over TLS.
func TestServerListensNowhereElse(t *testing.T) {
	before := listening(t)
	s, _ := run(t, options(t, newMesh(t), t.TempDir()))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.URL(), "tls://"))
	require.NoError(t, err)
	var mine []string
	for p := range listening(t) {
		if !before[p] {
			mine = append(mine, p)
		}
	}
	require.Len(t, mine, 1, "ports of %s", port)
}

// listening are the sockets of this process that listen, by inode.
func listening(t *testing.T) map[string]bool {
	t.Helper()
	listen := map[string]bool{}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listen["socket:["+f[9]+"]"] = true
			}
		}
	}
	mine := map[string]bool{}
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && listen[to] {
			mine[to] = true
		}
	}
	return mine
}

// TestStoreIsBounded: what does not fit is refused, and what was there stays.
func TestStoreIsBounded(t *testing.T) {
	m := newMesh(t)
	o := options(t, m, t.TempDir())
	o.MaxStore = 1 << 20
	s, _ := run(t, o)
	nc, err := connect(t, m, identity.Controller, s.URL())
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "big", Subjects: []string{"big"}, MaxBytes: 2 << 20})
	require.Error(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "unbounded", Subjects: []string{"unbounded"}})
	require.ErrorContains(t, err, "max bytes")
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "small", Subjects: []string{"small"}, MaxBytes: 1 << 19})
	require.NoError(t, err)
	require.ErrorIs(t, nc.Publish("small", make([]byte, identity.MaxPayload+1)), nats.ErrMaxPayload)
}

// TestServerEndsWithItsContext: nothing of it is left, also when clients are
// there. The check for goroutines of this package is the other half.
func TestServerEndsWithItsContext(t *testing.T) {
	m := newMesh(t)
	s, err := server.New(options(t, m, t.TempDir()))
	require.NoError(t, err)
	require.Empty(t, s.URL())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	gone := make(chan struct{})
	nc, err := connect(t, m, identity.Viewer, s.URL())
	require.NoError(t, err)
	nc.SetClosedHandler(func(*nats.Conn) { close(gone) })
	cancel()
	require.NoError(t, <-done)
	<-gone
	_, err = net.DialTimeout("tcp", strings.TrimPrefix(s.URL(), "tls://"), time.Second)
	require.Error(t, err)
}

// TestQuietServerLogsNothing: notices of the NATS server are for who debugs.
func TestQuietServerLogsNothing(t *testing.T) {
	m := newMesh(t)
	o := options(t, m, t.TempDir())
	var log strings.Builder
	o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s, stop := run(t, o)
	nc, err := connect(t, m, identity.Viewer, s.URL())
	require.NoError(t, err)
	nc.Close()
	stop()
	require.Empty(t, log.String())
}
