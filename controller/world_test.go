package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/controller"
	"stead/host/fault"
	"stead/host/report"
	"stead/host/shape"
	"stead/mesh"
	"stead/mesh/client"
	"stead/mesh/identity"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		os.Exit(process())
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// world is one mesh with one controller, which can be stopped and started.
type world struct {
	t    *testing.T
	dir  string
	keys *identity.Mesh
	urls []string
	c    *controller.Controller
	log  *logs

	stop context.CancelFunc
	done chan error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: filepath.Join(t.TempDir(), "mesh"), log: &logs{}}
	w.start()
	return w
}

// start runs the controller, at the address that it had before.
func (w *world) start(change ...func(*controller.Options)) {
	w.t.Helper()
	require.NoError(w.t, w.try(change...))
}

// try is start that may fail.
func (w *world) try(change ...func(*controller.Options)) error {
	w.t.Helper()
	o := controller.Options{
		Dir: w.dir, Name: "c1", Listen: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, MaxStore: 512 << 20,
		Logger: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	if len(w.urls) > 0 {
		o.Listen = strings.TrimPrefix(w.urls[0], "tls://")
	}
	for _, f := range change {
		f(&o)
	}
	c, err := controller.New(o)
	require.NoError(w.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	select {
	case <-c.Ready():
	case err := <-done:
		cancel()
		return err
	case <-time.After(patience):
		w.t.Fatal("the controller does not become ready:\n" + w.log.String())
	}
	w.c, w.stop, w.done = c, cancel, done
	w.urls = c.URLs()
	w.t.Cleanup(w.end)
	if w.keys == nil {
		w.keys, err = identity.Open(controller.KeysDir(w.dir))
		require.NoError(w.t, err)
	}
	return nil
}

// later starts the controller anew with a clock that the function puts forward.
func (w *world) later() func(time.Duration) {
	w.t.Helper()
	var ahead atomic.Int64
	w.end()
	w.start(func(o *controller.Options) {
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

// end stops the controller; a second time does nothing.
func (w *world) end() {
	w.t.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	require.NoError(w.t, <-w.done)
	w.stop = nil
}

// beside runs another controller of the same mesh on the NATS server of the first.
func (w *world) beside(name string) *world {
	w.t.Helper()
	b := &world{t: w.t, dir: filepath.Join(w.t.TempDir(), "mesh"), keys: w.keys, log: w.log}
	put(w.t, controller.KeysDir(w.dir), controller.KeysDir(b.dir))
	b.start(func(o *controller.Options) { o.Name, o.Servers, o.Listen = name, w.urls, "" })
	return b
}

func (w *world) connect(role identity.Role, name string) *mesh.Conn {
	w.t.Helper()
	who, err := w.keys.Mint(identity.Request{Role: role, Name: name, URLs: w.urls})
	require.NoError(w.t, err)
	conn, err := mesh.Connect(context.WithoutCancel(w.t.Context()), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return who, nil }, Name: name, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(w.t, err)
	w.t.Cleanup(conn.Close)
	require.NoError(w.t, conn.Wait(w.within(patience)))
	return conn
}

func (w *world) operator(name string) *client.Client {
	return client.New(w.connect(identity.Operator, name))
}
func (w *world) viewer(name string) *client.Client {
	return client.New(w.connect(identity.Viewer, name))
}

func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), d)
	w.t.Cleanup(cancel)
	return ctx
}

// apply applies one file and wants it to land.
func (w *world) apply(c *client.Client, text string) wire.ChangeReply {
	w.t.Helper()
	reply, err := c.Apply(w.within(patience), wire.ApplyRequest{Files: []wire.File{{Name: "a.yaml", Text: text}}, Force: true, Yes: true})
	require.NoError(w.t, err)
	require.Empty(w.t, reply.Problems)
	require.Empty(w.t, reply.Sure)
	return reply
}

// pages puts all pages of an answer together.
func (w *world) pages(c *client.Client, r wire.GetRequest) (all wire.GetReply, pages int) {
	w.t.Helper()
	require.NoError(w.t, c.Get(w.within(patience), r, func(p wire.GetReply) error {
		pages++
		all.Mesh, all.Epoch, all.Revision, all.Trouble = p.Mesh, p.Epoch, p.Revision, p.Trouble
		all.Declarations = append(all.Declarations, p.Declarations...)
		all.Nodes = append(all.Nodes, p.Nodes...)
		all.Reports = append(all.Reports, p.Reports...)
		all.Seats = append(all.Seats, p.Seats...)
		all.Modules = append(all.Modules, p.Modules...)
		all.Holders = append(all.Holders, p.Holders...)
		all.Missing = append(all.Missing, p.Missing...)
		if p.Closest != nil {
			all.Closest = p.Closest
		}
		return nil
	}))
	return all, pages
}

// service is a declaration in words.
func service(name, address, content string) string {
	return fmt.Sprintf("shape: service\nname: %s\n%s\nensure: running\ncontent: |\n  [Service]\n  ExecStart=/bin/sleep %s\n", name, address, content)
}

// node is a node whose messages are made by hand.
type node struct {
	w    *world
	name string
	conn *mesh.Conn
	mesh string
	held wire.Index
	sent *wire.Signed
	same uint64 // of the last answer that found it so
}

// join is a node that has told its profile.
func (w *world) join(name string) *node {
	w.t.Helper()
	n := &node{w: w, name: name, conn: w.connect(identity.Host, name), mesh: w.keys.ID()}
	var reply wire.ProfileReply
	require.NoError(w.t, n.ask(subject.Profile, profile(), &reply))
	require.Empty(w.t, reply.Removed)
	return n
}

func profile() wire.Profile {
	return wire.Profile{
		Wire: wire.Version, Version: "1.0.0", Wires: []int{wire.Version}, Vocabulary: wire.Vocabulary(),
		Capabilities: []string{wire.ServiceManager}, Systemd: "257", Boot: "b", Machine: "m",
	}
}

// ask asks as the node's host does.
func (n *node) ask(t subject.Topic, request, reply any) error {
	n.w.t.Helper()
	payload, err := json.Marshal(request)
	require.NoError(n.w.t, err)
	for ctx := n.w.within(patience); ; <-time.After(tick) {
		answer, err := n.conn.Call(ctx, subject.ForNode(subject.Node(n.name), t), payload)
		if fault.Is(err, fault.Unavailable) && ctx.Err() == nil {
			continue // the controller was started anew
		}
		if err != nil {
			return err
		}
		require.NoError(n.w.t, json.Unmarshal(answer, reply))
		return nil
	}
}

// request is what the node asks with.
func (n *node) request() wire.SyncRequest {
	r := wire.SyncRequest{Wire: wire.Version, Mesh: n.mesh, Epoch: n.held.Epoch, Revision: n.held.Revision}
	if n.held.Epoch != "" {
		r.Digest = n.held.Digest()
	}
	return r
}

// sync asks, checks the signature and takes the index over.
func (n *node) sync() wire.SyncReply {
	n.w.t.Helper()
	var reply wire.SyncReply
	require.NoError(n.w.t, n.ask(subject.Sync, n.request(), &reply))
	if reply.Signed != nil {
		n.take(reply.Signed)
	}
	return reply
}

// take checks a signed index and takes it over.
func (n *node) take(signed *wire.Signed) {
	n.w.t.Helper()
	key := n.w.keys.DeclarationKey().Public()
	require.NoError(n.w.t, seal.CheckIndex(publicOf(key), signed.Index, signed.Signature))
	n.held, n.sent = wire.Index{}, signed
	require.NoError(n.w.t, json.Unmarshal(signed.Index, &n.held))
}

// names are what the node holds.
func (n *node) names() []string {
	var names []string
	for _, e := range n.held.Entries {
		names = append(names, e.Name)
	}
	return names
}

// report says how everything that the node holds stands.
func (n *node) report(seq uint64, outcome report.Outcome) wire.ReportReply {
	n.w.t.Helper()
	b := wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: seq, Source: wire.Source{Mesh: n.mesh, Epoch: n.held.Epoch, Revision: n.held.Revision, Same: n.same}}
	for _, e := range n.held.Entries {
		b.Reports = append(b.Reports, &report.Report{
			Name: e.Name, UID: e.UID, Generation: e.Generation, Scope: "system", Unit: "u.service", Outcome: outcome,
			Lines: []string{"secret of " + e.Name}, Since: time.Now(), Looked: time.Now(),
		})
	}
	var reply wire.ReportReply
	require.NoError(n.w.t, n.ask(subject.Report, b, &reply))
	return reply
}

// logs collects what is logged.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// canonicalOf is the canonical form of the only declaration in text.
func canonicalOf(t *testing.T, text string) []byte {
	t.Helper()
	all, problems := shape.Parse("a", []byte(text))
	require.NoError(t, problems.Err())
	require.Len(t, all, 1)
	return all[0].Canonical()
}
