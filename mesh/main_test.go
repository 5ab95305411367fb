package mesh_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// within is a context of the test that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func syncOf(node string) string { return subject.ForNode(subject.Node(node), subject.Sync) }

// serve runs a service of one endpoint for the syncs of all nodes, and returns
// it with a function that ends it and returns what Run returned.
func serve(t *testing.T, c *mesh.Conn, e mesh.Endpoint) (*mesh.Service, func() error) {
	t.Helper()
	if e.Subject == "" {
		e.Subject = subject.TopicPattern(subject.Any, subject.Sync)
	}
	if e.Accounts == nil {
		e.Accounts = []identity.Account{identity.HOST}
	}
	e.Name, e.Queue = "sync", "controllers"
	return run(t, c, mesh.ServiceOptions{Name: "controller", Version: "1.0.0", Endpoints: []mesh.Endpoint{e}})
}

func run(t testing.TB, c *mesh.Conn, o mesh.ServiceOptions) (*mesh.Service, func() error) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := mesh.NewService(c, o)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var ended bool
	var result error
	end := func() error {
		if !ended {
			ended = true
			cancel()
			result = <-done
		}
		return result
	}
	t.Cleanup(func() { _ = end() })
	select {
	case <-s.Ready():
	case <-time.After(patience):
		t.Fatal("the service does not become ready")
	}
	return s, end
}

// echo answers with what it was sent.
func echo(_ context.Context, r mesh.Request) ([]byte, error) { return r.Payload, nil }

// pair is a mesh with a controller and the host of node ws1.
func pair(t *testing.T) (m *meshtest.Mesh, controller, host *mesh.Conn) {
	t.Helper()
	m = meshtest.New(t)
	return m, m.Connect(identity.Controller, "c1"), m.Connect(identity.Host, "ws1")
}
