package cli_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"stead/controller"
	"stead/host/report"
	"stead/host/unit"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// world is the mesh of one script: a controller that can be stopped and started
// at its address, and nodes whose hosts say what a script tells them to.
type world struct {
	dir  string
	url  string
	keys *identity.Mesh
	stop func()
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// meshCommand is: mesh start|seats|stop. With seats, those that are built in are
// seeded.
func meshCommand(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	switch strings.Join(args, " ") {
	case "start":
		// The revisions and events of the scripts are those of what they do.
		w.start(ts, []seats.Seat{}, []modules.Manifest{})
	case "seats":
		w.start(ts, nil, nil)
	case "stop":
		w.stop()
		w.stop = func() {}
	default:
		ts.Fatalf("mesh start|seats|stop")
	}
}

func (w *world) start(ts *testscript.TestScript, known []seats.Seat, built []modules.Manifest) {
	o := controller.Options{Dir: w.dir, Name: "c1", Listen: "127.0.0.1:0", Hosts: []string{"127.0.0.1"}, MaxStore: 256 << 20, Logger: slog.New(slog.DiscardHandler),
		Seats: known, Modules: built}
	if w.url != "" {
		o.Listen = strings.TrimPrefix(w.url, "tls://")
	}
	c, err := controller.New(o)
	ts.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	w.stop = func() {
		cancel()
		ts.Check(<-done)
	}
	select {
	case <-c.Ready():
	case err := <-done:
		cancel()
		w.stop = func() {}
		ts.Fatalf("the controller ended: %v", err)
	}
	w.url = c.URLs()[0]
	w.keys, err = identity.Open(controller.KeysDir(w.dir))
	ts.Check(err)
	ts.Setenv("URL", w.url)
}

// mint ROLE NAME FILE [URL] writes the credentials of a user, who connects to the
// controller of the script or to URL.
func mint(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	url := w.url
	if len(args) == 4 {
		url = args[3]
	}
	c, err := w.keys.Mint(identity.Request{Role: identity.Role(args[0]), Name: args[1], URLs: []string{url}})
	ts.Check(err)
	ts.Check(identity.WriteCredentials(ts.MkAbs(args[2]), c))
}

// node NAME OUTCOME [TEXT] is a node of the mesh until the script ends, whose host
// says of everything that it stands so, and plans one write of everything.
func node(ts *testscript.TestScript, _ bool, args []string) {
	w := worldOf(ts)
	n := &fakeNode{name: args[0], outcome: report.Outcome(args[1]), text: strings.Join(args[2:], " "), mesh: w.keys.ID()}
	ctx, cancel := context.WithCancel(context.Background())
	n.ask, n.tell = w.connect(ctx, ts, identity.Host, n.name), w.connect(ctx, ts, identity.Listener, n.name)
	s, err := mesh.NewService(n.tell, mesh.ServiceOptions{Name: "host", Node: n.name, Version: "1.0.0", Logger: slog.New(slog.DiscardHandler), Endpoints: []mesh.Endpoint{{
		Name: "plan", Subject: subject.ForNode(subject.Node(n.name), subject.Plan), Accounts: []identity.Account{identity.CTL}, Handler: n.plan,
	}}})
	ts.Check(err)
	ts.Check(n.send(ctx, subject.Profile, wire.Profile{Wire: wire.Version, Version: "1.2.3", Systemd: "252.39", OS: "Debian GNU/Linux 12", Kernel: "6.1.0",
		Wires: []int{wire.Version}, Vocabulary: wire.Vocabulary(), Capabilities: []string{wire.PausesUnits, wire.ServiceManager}}, nil))
	var both sync.WaitGroup
	both.Go(func() { s.Run(ctx) })
	both.Go(func() { n.run(ctx) })
	<-s.Ready()
	ts.Defer(func() {
		cancel()
		both.Wait()
		n.ask.Close()
		n.tell.Close()
	})
}

func (w *world) connect(ctx context.Context, ts *testscript.TestScript, role identity.Role, name string) *mesh.Conn {
	c, err := w.keys.Mint(identity.Request{Role: role, Name: name, URLs: []string{w.url}})
	ts.Check(err)
	conn, err := mesh.Connect(ctx, mesh.Options{Credentials: func() (identity.Credentials, error) { return c, nil }, Name: name, Logger: slog.New(slog.DiscardHandler)})
	ts.Check(err)
	ts.Check(conn.Wait(ctx))
	return conn
}

// fakeNode is a node that does nothing, and says that it is done.
type fakeNode struct {
	name, mesh, text string
	outcome          report.Outcome
	ask, tell        *mesh.Conn
	held             wire.Index
	seq              uint64
}

// run takes over what is declared, and reports it at once.
func (n *fakeNode) run(ctx context.Context) {
	for ctx.Err() == nil {
		q := wire.SyncRequest{Wire: wire.Version, Mesh: n.mesh, Epoch: n.held.Epoch, Revision: n.held.Revision}
		if n.held.Epoch != "" {
			q.Digest = n.held.Digest()
		}
		var reply wire.SyncReply
		if n.send(ctx, subject.Sync, q, &reply) == nil && reply.Signed != nil {
			var next wire.Index
			if json.Unmarshal(reply.Signed.Index, &next) == nil {
				n.report(ctx, next)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// report says of everything in an index how it stands, and what is gone.
func (n *fakeNode) report(ctx context.Context, next wire.Index) {
	since := time.Date(2026, 3, 1, 11, 58, 0, 0, time.UTC)
	b := wire.ReportBatch{Wire: wire.Version, Run: "r1", Seq: n.seq + 1, Source: wire.Source{Mesh: n.mesh, Epoch: next.Epoch, Revision: next.Revision, Accepted: since}}
	for _, e := range next.Entries {
		r := &report.Report{Name: e.Name, UID: e.UID, Generation: e.Generation, Scope: unit.System, Unit: unit.Name(e.Name + ".service"), Outcome: n.outcome, Since: since, Looked: since}
		for i := range next.Pauses {
			if p := next.Pauses[i]; p.Declaration == e.Name && !p.Over(time.Now()) {
				r.Outcome, r.Paused, r.Text = report.Paused, &p, p.String()
			}
		}
		if r.Outcome == report.Converged || r.Outcome == report.Paused {
			r.State = report.State{Load: "loaded", Active: "active", Sub: "running", Enabled: "enabled", MainPID: 1843}
		} else {
			r.Reason, r.Text = report.Exited, n.text
		}
		b.Reports = append(b.Reports, r)
	}
	if n.send(ctx, subject.Report, b, nil) == nil {
		n.seq++
		n.held = next
	}
}

// plan answers that everything would be written and started.
func (n *fakeNode) plan(_ context.Context, r mesh.Request) ([]byte, error) {
	var q wire.PlanRequest
	if err := json.Unmarshal(r.Payload, &q); err != nil {
		return nil, err
	}
	var reply wire.PlanReply
	for _, d := range q.Declarations {
		var c struct{ Name, Unit string }
		if err := json.Unmarshal(d.Canonical, &c); err != nil {
			return nil, err
		}
		reply.Plans = append(reply.Plans, wire.Plan{Name: c.Name, Unit: c.Unit, Scope: "system", Steps: []wire.PlanStep{
			{Action: "write", Object: "/etc/systemd/system/" + c.Unit, Reason: "content differs", Diff: []string{"-ExecStart=/bin/sleep 1", "+ExecStart=/bin/sleep 2"}},
			{Action: "restart", Object: c.Unit, Reason: "it runs the old definition"},
		}})
	}
	for _, name := range q.Withdrawn {
		reply.Plans = append(reply.Plans, wire.Plan{Name: name, Unit: name + ".service", Scope: "system", Steps: []wire.PlanStep{{Action: "stop", Object: name + ".service", Reason: "withdrawn"}}})
	}
	return json.Marshal(reply)
}

// send asks controllers as the host of the node, for as long as ctx allows.
func (n *fakeNode) send(ctx context.Context, topic subject.Topic, request, reply any) error {
	payload, err := json.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := n.ask.Call(ctx, subject.ForNode(subject.Node(n.name), topic), payload)
	if err != nil || reply == nil {
		return err
	}
	return json.Unmarshal(answer, reply)
}

// newWorld gives a script its world, and what is left of it ends with it.
func newWorld(e *testscript.Env) error {
	w := &world{dir: filepath.Join(e.WorkDir, ".mesh"), stop: func() {}}
	e.Values[worldKey{}] = w
	e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, ".config"))
	e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, ".state"))
	e.Defer(func() { w.stop() })
	return os.MkdirAll(filepath.Join(e.WorkDir, ".config"), 0o700)
}
