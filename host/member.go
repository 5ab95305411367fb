package host

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/follow"
	"stead/host/ledger"
	"stead/host/outbox"
	"stead/host/reconcile"
	"stead/host/report"
	"stead/host/spool"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// keeping is the loop, as far as the member of a mesh has to do with it.
type keeping interface {
	declarer
	planner
	Reports() []*report.Report
	Published() <-chan struct{}
}

// member is a host's part in a mesh: it follows what the mesh declares, tells how
// that stands, and answers what it would do. What the ledger holds is handed to
// the loop first, whatever there is of credentials, connection and controllers.
type member struct {
	h      *Host
	log    *slog.Logger
	loop   keeping
	wallet *wallet
	link   *link
	wakes  func() // ends the follower's share of link's news
	held   *wire.Index

	follower *follow.Follower
	spool    *spool.Spool
	box      *outbox.Outbox
	first    chan struct{} // closed when the loop has the first set

	mu      sync.Mutex // guards what follows
	down    *mesh.Conn // on which hints and questions come; nil without credentials
	removed string
	note    string // on the spool
}

func newMember(h *Host, book *ledger.Ledger, loop keeping, state ledger.State) (*member, error) {
	m := &member{h: h, log: h.log, loop: loop, wallet: &wallet{dir: h.o.Credentials, log: h.log}, link: newLink(), first: make(chan struct{})}
	if state.Held != nil {
		var index wire.Index
		if json.Unmarshal(state.Held.Index, &index) == nil {
			m.held = &index
		}
	}
	m.wallet.look()
	var news <-chan struct{}
	news, m.wakes = m.link.Notify()
	var err error
	m.follower, err = follow.New(follow.Options{
		Trust: m.trust, Mesh: m.link, Ledger: book, Declare: m.declare, Reconnected: news, Logger: h.log,
		Held: state.Held, Declarations: state.Declarations, Introduce: func() { m.box.ProfileChanged() }, Machine: m.machine,
	})
	if err != nil {
		return nil, err
	}
	if m.spool, err = m.openSpool(); err != nil {
		return nil, err
	}
	m.box = outbox.New(outbox.Options{
		Node: m.node, Link: m.link, Spool: m.spool, Reports: loop.Reports, Published: loop.Published(),
		Source:  func() wire.Source { return m.follower.Source().Source },
		Profile: m.profile, Removed: m.setRemoved, Logger: h.log,
	})
	return m, nil
}

// openSpool opens the spool of events. Where that cannot be, they wait in a file
// that ends with the process: the machine is kept all the same.
func (m *member) openSpool() (*spool.Spool, error) {
	path := filepath.Join(m.h.o.State, "events.db")
	s, err := spool.Open(spool.Options{Path: path, Logger: m.log})
	if err == nil {
		return s, nil
	}
	m.log.Error("events are not kept across a restart of the host", "error", err)
	m.note = "events are not kept across a restart of the host: " + err.Error()
	return spool.Passing(m.log)
}

// run takes part until ctx ends.
func (m *member) run(ctx context.Context) error {
	defer m.wakes()
	defer func() {
		if err := m.spool.Close(); err != nil {
			m.log.Error("close", "error", err)
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return m.follower.Run(ctx) })
	group.Go(func() error { return m.box.Run(ctx) })
	group.Go(func() error { return m.connect(ctx) })
	group.Go(func() error { return m.tellChanges(ctx) })
	return group.Wait()
}

// trust is whom the credentials say to believe. Without credentials nobody is
// asked, and what is held tells where it came from.
func (m *member) trust() accept.Trust {
	if p, _ := m.wallet.now(); p != nil {
		return accept.Trust{Mesh: p.host.Mesh, Node: p.host.Name, Key: p.host.DeclarationKey}
	}
	if m.held != nil {
		return accept.Trust{Mesh: m.held.Mesh, Node: m.held.Node}
	}
	return accept.Trust{}
}

// node is the name of this node in the mesh, and that of the machine as long as
// nobody said another.
func (m *member) node() string {
	if name := m.trust().Node; name != "" {
		return name
	}
	return hostname()
}

// declare hands a set to the loop.
func (m *member) declare(ctx context.Context, set follow.Set) error {
	to := reconcile.Set{Pauses: set.Pauses}
	for _, d := range set.Declared {
		to.Declared = append(to.Declared, reconcile.Declared{Service: d.Service, UID: d.UID, Generation: d.Generation})
	}
	for _, l := range set.Left {
		to.Leave = append(to.Leave, reconcile.Left{Name: l.Name, Scope: l.Scope, UID: l.UID, Generation: l.Generation, Why: l.Why})
	}
	m.h.settle(set.Account, set.Linger)
	if err := m.loop.Declare(ctx, to); err != nil {
		return err
	}
	declaring(len(set.Declared) + len(set.Left))
	select {
	case <-m.first:
	default:
		close(m.first)
	}
	return nil
}

// tellChanges tells the outbox what changed of source and profile.
func (m *member) tellChanges(ctx context.Context) error {
	const look = 30 * time.Second
	tick := time.NewTicker(look)
	defer tick.Stop()
	last := m.h.systemdVersion()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.follower.Changed():
			m.box.SourceChanged()
		case <-tick.C:
			if now := m.h.systemdVersion(); now != last {
				last = now
				m.box.ProfileChanged()
			}
		}
	}
}

// connect keeps the connections of the credentials of the moment.
func (m *member) connect(ctx context.Context) error {
	var p *pair
	for {
		if p = m.wallet.next(ctx, p); p == nil {
			return nil
		}
		if err := m.with(ctx, p); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// with takes part by the credentials p until they are replaced or ctx ends.
func (m *member) with(ctx context.Context, p *pair) error {
	node, err := subject.ParseNode(p.host.Name)
	if err != nil {
		return err
	}
	up, err := m.dial(ctx, p.host)
	if err != nil {
		return err
	}
	defer up.Close()
	down, err := m.dial(ctx, p.listener)
	if err != nil {
		return err
	}
	defer down.Close()
	service, err := m.service(down, node)
	if err != nil {
		return err
	}
	m.use(up, down, node)
	defer m.use(nil, nil, node)
	ctx, replaced := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { defer replaced(); m.wallet.next(ctx, p); return nil })
	// Hints are lost with the listener's connection, also while the host's own lives on.
	group.Go(func() error { m.pass(ctx, up); return nil })
	group.Go(func() error { m.pass(ctx, down); return nil })
	group.Go(func() error { return service.Run(ctx) })
	group.Go(func() error {
		return down.Listen(ctx, subject.ForNode(node, subject.Changed), []identity.Account{identity.CTL}, m.hint)
	})
	return group.Wait()
}

// use makes these the connections of the moment.
func (m *member) use(up, down *mesh.Conn, node subject.Node) {
	m.mu.Lock()
	m.down = down
	m.mu.Unlock()
	m.link.use(up, node)
}

func (m *member) dial(ctx context.Context, c identity.Credentials) (*mesh.Conn, error) {
	// It is closed when all that uses it has ended.
	return mesh.Connect(context.WithoutCancel(ctx), mesh.Options{
		Credentials: func() (identity.Credentials, error) { return c, nil },
		Name:        string(c.Role) + " " + c.Name, Logger: m.log,
	})
}

// pass tells who waits for link that a connection came or went.
func (m *member) pass(ctx context.Context, c *mesh.Conn) {
	news, stop := c.Notify()
	defer stop()
	for {
		select {
		case <-news:
			m.link.changed()
		case <-ctx.Done():
			return
		}
	}
}

// hint takes in that this node's set may have changed.
func (m *member) hint(h mesh.Hint) {
	var c wire.Changed
	if json.Unmarshal(h.Payload, &c) != nil {
		return // nothing that a hint says is relied on
	}
	m.follower.Hint(c.Revision)
}

func (m *member) setRemoved(why string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why != "" && m.removed == "" {
		m.log.Warn("node was removed from the mesh, what is in force is kept", "removed", why)
	}
	m.removed = why
}

// status says how the source stands.
func (m *member) status() Source {
	p, bad := m.wallet.now()
	src := m.follower.Source()
	connected, since, why := m.link.state()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := Source{
		Mesh: &Membership{Credentials: m.h.o.Credentials, Mesh: src.Mesh, Epoch: src.Epoch, Revision: src.Revision,
			Connected: connected, Since: since, Events: m.spool.Len()},
		Accepted: src.Accepted, Read: src.Answered, Kept: src.Kept, Taking: src.Fetching > 0,
	}
	if p != nil {
		out.Mesh.Servers = p.host.URLs
	}
	if m.note != "" {
		out.Warnings = append(out.Warnings, m.note)
	}
	if m.down != nil && connected {
		if st := m.down.State(); !st.Connected && st.Err != nil {
			out.Warnings = append(out.Warnings, "changes are noticed up to half a minute late, and dry runs are not answered: "+st.Err.Error())
		}
	}
	switch {
	case src.Trouble != "":
		out.Trouble = src.Trouble
	case m.removed != "":
		out.Trouble = m.removed
	case bad != "":
		out.Trouble = bad
	case !connected && why != "":
		out.Trouble = "not connected: " + why
	case !connected:
		out.Trouble = "not connected yet"
	case src.Silence != "":
		out.Trouble = "no controller answers: " + src.Silence
	}
	return out
}

// refusal is the error of a message of another version.
func refusal(what string, version int) error {
	return fault.New(fault.Unsupported, what, "", versionError(version)).WithHint("run the same version of stead on controllers and nodes")
}
