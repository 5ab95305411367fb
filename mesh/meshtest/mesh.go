// Package meshtest is a whole mesh in the process of a test: keys, a real NATS
// server on a free port of the loopback, and a way to it that can be cut.
//
// New makes the keys and the store and starts the server; Stop, Start and Wipe
// do what happens to servers. Everybody connects through Link, which kills
// connections or swallows what they send, and stays at its address when the
// server comes back on another port. Everything ends with the test. The package
// is for tests alone.
package meshtest

import (
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/server"
)

// maxStore is what the server may keep, in bytes.
const maxStore = 256 << 20

// Mesh is one mesh: its keys, its server and the way to it.
type Mesh struct {
	Keys  *identity.Mesh
	Store string // the server's folder
	Link  *Link

	t      testing.TB
	tls    *tls.Config
	server *server.Server
	stop   context.CancelFunc
	done   chan error
}

// New starts a mesh that ends with the test.
func New(t testing.TB) *Mesh {
	t.Helper()
	dir := t.TempDir()
	keys, err := identity.Create(filepath.Join(dir, "keys"), time.Now())
	require.NoError(t, err)
	m := &Mesh{Keys: keys, Store: filepath.Join(dir, "store"), t: t, Link: newLink(t)}
	m.tls, err = keys.ServerTLS([]string{"127.0.0.1"}, time.Now)
	require.NoError(t, err)
	t.Cleanup(m.Stop)
	m.Start()
	return m
}

// Start starts the server on its store and waits until it answers.
func (m *Mesh) Start() {
	m.t.Helper()
	trust, err := m.Keys.Trust(identity.Permissions(), nil)
	require.NoError(m.t, err)
	m.server, err = server.New(server.Options{
		Name: "test", Listen: "127.0.0.1:0", Store: m.Store, MaxStore: maxStore, Trust: trust, TLS: m.tls,
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(m.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(m.t.Context()))
	m.stop, m.done = cancel, make(chan error, 1)
	go func() { m.done <- m.server.Run(ctx) }()
	select {
	case <-m.server.Ready():
	case err := <-m.done:
		m.t.Fatalf("the server ended: %v", err)
	}
	m.Link.aim(strings.TrimPrefix(m.server.URL(), "tls://"))
}

// Stop stops the server, as an orderly end of its process does. A server that is
// stopped stays so.
func (m *Mesh) Stop() {
	m.t.Helper()
	if m.stop == nil {
		return
	}
	m.Link.aim("")
	m.stop()
	require.NoError(m.t, <-m.done)
	m.stop = nil
}

// Update puts a table of permissions and revocations in force at once.
func (m *Mesh) Update(table identity.Table, revoked ...identity.Revocation) {
	m.t.Helper()
	trust, err := m.Keys.Trust(table, revoked)
	require.NoError(m.t, err)
	require.NoError(m.t, m.server.Update(trust))
}

// Save copies the store of a stopped server aside; Restore puts the copy back.
func (m *Mesh) Save() (restore func()) {
	m.t.Helper()
	require.Nil(m.t, m.stop, "the server runs")
	aside := filepath.Join(m.t.TempDir(), "store")
	require.NoError(m.t, os.CopyFS(aside, os.DirFS(m.Store)))
	return func() {
		m.t.Helper()
		require.Nil(m.t, m.stop, "the server runs")
		m.Wipe()
		require.NoError(m.t, os.CopyFS(m.Store, os.DirFS(aside)))
	}
}

// Wipe takes the store of a stopped server away.
func (m *Mesh) Wipe() {
	m.t.Helper()
	require.NoError(m.t, os.RemoveAll(m.Store))
}

// Credentials mints a user of role with that name, who connects through link.
func (m *Mesh) Credentials(role identity.Role, name string, link *Link) identity.Credentials {
	m.t.Helper()
	who, err := m.Keys.Mint(identity.Request{Role: role, Name: name, URLs: []string{"tls://" + link.Address()}})
	require.NoError(m.t, err)
	return who
}

// Connect connects a new user of role through the mesh's own Link, and waits
// until it is connected.
func (m *Mesh) Connect(role identity.Role, name string) *mesh.Conn {
	m.t.Helper()
	return m.ConnectBy(m.Link, role, name)
}

// ConnectBy is Connect through another way.
func (m *Mesh) ConnectBy(link *Link, role identity.Role, name string) *mesh.Conn {
	m.t.Helper()
	who := m.Credentials(role, name, link)
	return m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return who, nil }})
}

// Dial connects with options, of which Name and Logger may be left out, and
// waits until it is connected.
func (m *Mesh) Dial(o mesh.Options) *mesh.Conn {
	m.t.Helper()
	if o.Name == "" {
		o.Name = "test"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := mesh.Connect(context.WithoutCancel(m.t.Context()), o)
	require.NoError(m.t, err)
	m.t.Cleanup(c.Close)
	ctx, cancel := context.WithTimeout(m.t.Context(), 20*time.Second)
	defer cancel()
	require.NoError(m.t, c.Wait(ctx))
	return c
}

// Way returns another way to the server, which can be cut by itself.
func (m *Mesh) Way() *Link {
	m.t.Helper()
	l := newLink(m.t)
	l.aim(strings.TrimPrefix(m.server.URL(), "tls://"))
	return l
}
