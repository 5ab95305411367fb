package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/runtime/tool"
	"stead/seats"
	"stead/test/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 10 * time.Second

// world is a mesh with a runtime whose tools are the test's, and a controller
// that answers it, or does not.
type world struct {
	*testing.T
	mesh *meshtest.Mesh
	dir  string // of credentials and state

	mu       sync.Mutex // guards what follows
	tools    wire.Tools
	silent   bool // the controller answers with an error
	events   []wire.Event
	handlers map[subject.Verb]tool.Handler
	streamer tool.Streamer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, mesh: meshtest.New(t), dir: t.TempDir(), handlers: map[subject.Verb]tool.Handler{}}
	w.streamer = func(context.Context, json.RawMessage, tool.Stream) error { return nil }
	w.tools = wire.Tools{
		Wire: wire.Version, Mesh: w.mesh.Keys.ID(), Epoch: "e1", Revision: 3, Node: "ws1", Modules: modules.Catalogue(), Seats: seats.Seeded(),
		Units: []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Generation: 1}},
	}
	for _, role := range []identity.Role{identity.Runtime, identity.Tool} {
		w.mint(role, "ws1")
	}
	w.controller()
	return w
}

func (w *world) mint(role identity.Role, name string) {
	w.Helper()
	require.NoError(w, identity.WriteCredentials(filepath.Join(w.dir, string(role)+".json"), w.credentials(role, name)))
}

func (w *world) credentials(role identity.Role, name string) identity.Credentials {
	w.Helper()
	c, err := w.mesh.Keys.Mint(identity.Request{Role: role, Name: name, URLs: []string{"tls://" + w.mesh.Link.Address()}})
	require.NoError(w, err)
	return c
}

func (w *world) connect(role identity.Role, name string) *mesh.Conn {
	w.Helper()
	c := w.credentials(role, name)
	conn, err := mesh.Connect(w.Context(), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return c, nil }, Name: name, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(w, err)
	w.Cleanup(conn.Close)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	require.NoError(w, conn.Wait(ctx))
	return conn
}

// controller answers what a runtime asks, and takes its events.
func (w *world) controller() {
	w.Helper()
	answer := func(f func(payload []byte) any) mesh.Handler {
		return func(_ context.Context, r mesh.Request) ([]byte, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.silent {
				return nil, fault.New(fault.Unavailable, "answer", "", errors.New("it does not today"))
			}
			return json.Marshal(f(r.Payload))
		}
	}
	end := func(topic subject.Topic, f func(payload []byte) any) mesh.Endpoint {
		return mesh.Endpoint{Name: string(topic), Subject: subject.TopicPattern(subject.Any, topic), Accounts: []identity.Account{identity.HOST}, Handler: answer(f)}
	}
	service, err := mesh.NewService(w.connect(identity.Controller, "c1"), mesh.ServiceOptions{Name: "controller", Logger: slog.New(slog.DiscardHandler), Endpoints: []mesh.Endpoint{
		end(subject.Tools, func([]byte) any {
			text, err := json.Marshal(w.tools)
			if err != nil {
				return err
			}
			return wire.ToolsReply{Revision: w.tools.Revision, Signed: &wire.Signed{Index: text, Signature: seal.Tools(w.mesh.Keys.DeclarationKey(), text)}}
		}),
		end(subject.Claim, func(payload []byte) any {
			var q wire.ClaimRequest
			if err := json.Unmarshal(payload, &q); err != nil {
				return err
			}
			w.tools.Held = []seats.Holder{{Seat: q.Claims[0].Seat, Node: q.Claims[0].Node, Module: q.Claims[0].Module}}
			return wire.ClaimReply{Verdicts: []wire.Verdict{{}}}
		}),
		end(subject.Event, func(payload []byte) any {
			var b wire.EventBatch
			if err := json.Unmarshal(payload, &b); err != nil {
				return err
			}
			w.events = append(w.events, b.Events...)
			return struct{}{}
		}),
	}})
	require.NoError(w, err)
	w.background(service.Run)
	<-service.Ready()
}

// background runs something until the test ends, or the function is called.
func (w *world) background(run func(context.Context) error) (end func() error) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	var once sync.Once
	var err error
	end = func() error {
		once.Do(func() { cancel(); err = <-done })
		return err
	}
	w.Cleanup(func() { _ = end() })
	return end
}

// server is a runtime whose tools answer as the test says.
func (w *world) server() *Server {
	w.Helper()
	s, err := New(Options{Credentials: w.dir, State: filepath.Join(w.dir, "state"), Version: "v1.2.3", Logger: slog.New(slog.NewTextHandler(w.Output(), nil))})
	require.NoError(w, err)
	s.bring = func(*Server) (built, []func(context.Context) error, error) {
		var all []tool.Tool
		for _, is := range modules.Catalogue()[0].Tools {
			t := tool.Tool{Module: modules.Systemd, Seat: seats.NodeServiceManager, Is: is, Most: 5 * time.Second, Handle: w.handle(is.Name)}
			if is.Follows {
				t.Stream = func(ctx context.Context, a json.RawMessage, s tool.Stream) error { return w.streamer(ctx, a, s) }
			}
			all = append(all, t)
		}
		return built{modules.Systemd: all}, nil, nil
	}
	return s
}

func (w *world) handle(v subject.Verb) tool.Handler {
	return func(ctx context.Context, a json.RawMessage) (any, error) {
		w.mu.Lock()
		h := w.handlers[v]
		w.mu.Unlock()
		if h == nil {
			return map[string]any{"units": []string{}, "verb": string(v)}, nil
		}
		return h(ctx, a)
	}
}

// call asks the runtime, until it answers anything.
func (w *world) call(c *mesh.Conn, class subject.Class, v subject.Verb, arguments string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	return c.Call(ctx, subject.ForVerb(class, "ws1", seats.NodeServiceManager, v), []byte(arguments))
}

// served waits until the runtime answers.
func (w *world) served(c *mesh.Conn) {
	w.Helper()
	require.True(w, lab.Await(patience, func() bool {
		_, err := w.call(c, subject.Read, seats.Status, `{"unit":"a.service"}`)
		return err == nil
	}))
}

func (w *world) with(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) told(kind string) *wire.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.IndexFunc(w.events, func(e wire.Event) bool { return e.Kind == kind }); i >= 0 {
		e := w.events[i]
		return &e
	}
	return nil
}
