package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/host/report"
	"stead/host/spool"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mesh stands in for the connection and for controllers behind it: it takes
// batches by the rules of wire.ReportBatch, keeps what it takes, and does what it
// was told to do wrong.
type mesh struct {
	t *testing.T

	mu       sync.Mutex
	session  uint64
	sessions uint64
	wakes    map[chan struct{}]bool

	run     string
	seq     uint64
	reports map[string]*report.Report
	source  wire.Source
	stored  []wire.ReportBatch
	largest int

	events   []wire.Event
	batches  int // of events
	profiles []wire.Profile
	removed  string
	asked    map[subject.Topic]int

	trouble map[subject.Topic]trouble
}

// trouble befalls messages of a topic.
type trouble struct {
	err   error
	after bool          // it was stored, and err is answered all the same
	delay time.Duration // before the answer
	times int           // 0: until mended
	full  bool          // a report is answered with Full
}

func newMesh(t *testing.T) *mesh {
	return &mesh{t: t, wakes: map[chan struct{}]bool{}, reports: map[string]*report.Report{}, asked: map[subject.Topic]int{}, trouble: map[subject.Topic]trouble{}}
}

func (m *mesh) connect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions++
	m.session = m.sessions
	m.wakeAll()
}

func (m *mesh) cut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = 0
	m.wakeAll()
}

func (m *mesh) wakeAll() {
	for w := range m.wakes {
		wake(w)
	}
}

func (m *mesh) Session() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.session
}

func (m *mesh) Notify() (<-chan struct{}, func()) {
	w := make(chan struct{}, 1)
	w <- struct{}{}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wakes[w] = true
	return w, func() { m.mu.Lock(); defer m.mu.Unlock(); delete(m.wakes, w) }
}

// befall makes t befall messages of a topic.
func (m *mesh) befall(topic subject.Topic, t trouble) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble[topic] = t
}

func (m *mesh) mend(topic subject.Topic) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.trouble, topic)
}

func (m *mesh) Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error) {
	m.mu.Lock()
	m.asked[topic]++
	m.largest = max(m.largest, len(payload))
	t, ill := m.trouble[topic]
	if ill && t.times > 0 {
		if t.times--; t.times == 0 {
			delete(m.trouble, topic)
		} else {
			m.trouble[topic] = t
		}
	}
	session := m.session
	m.mu.Unlock()
	if session == 0 {
		return nil, fault.New(fault.Unavailable, "call", string(topic), errors.New("no connection"))
	}
	if t.delay > 0 {
		select {
		case <-time.After(t.delay):
		case <-ctx.Done():
			return nil, fault.New(fault.Canceled, "call", string(topic), ctx.Err())
		}
	}
	if t.err != nil && !t.after {
		return nil, t.err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	answer, err := m.take(topic, payload, t.full)
	if err == nil && t.err != nil {
		err = t.err
	}
	return answer, err
}

func (m *mesh) take(topic subject.Topic, payload []byte, full bool) ([]byte, error) {
	switch topic {
	case subject.Report:
		return m.takeReports(payload, full)
	case subject.Event:
		var b wire.EventBatch
		require.NoError(m.t, json.Unmarshal(payload, &b))
		require.Equal(m.t, wire.Version, b.Wire)
		require.NotEmpty(m.t, b.Events)
		m.batches++
		for _, e := range b.Events {
			if !slices.ContainsFunc(m.events, func(o wire.Event) bool { return o.ID == e.ID }) {
				m.events = append(m.events, e)
			}
		}
		return json.Marshal(wire.EventReply{})
	case subject.Profile:
		var p wire.Profile
		require.NoError(m.t, json.Unmarshal(payload, &p))
		m.profiles = append(m.profiles, p)
		return json.Marshal(wire.ProfileReply{Removed: m.removed})
	}
	return nil, fault.New(fault.NotFound, "call", string(topic), nil)
}

func (m *mesh) takeReports(payload []byte, full bool) ([]byte, error) {
	var b wire.ReportBatch
	require.NoError(m.t, json.Unmarshal(payload, &b))
	switch {
	case full:
		return json.Marshal(wire.ReportReply{Full: true})
	case b.Run == m.run && b.Seq == m.seq:
		return json.Marshal(wire.ReportReply{}) // it was stored already
	case b.Base != 0 && (b.Run != m.run || b.Base != m.seq):
		return json.Marshal(wire.ReportReply{Full: true})
	case b.Base == 0:
		clear(m.reports)
	}
	m.run, m.seq, m.source = b.Run, b.Seq, b.Source
	for _, r := range b.Reports {
		m.reports[r.Name] = r
	}
	for _, name := range b.Gone {
		delete(m.reports, name)
	}
	m.stored = append(m.stored, b)
	return json.Marshal(wire.ReportReply{})
}

// forget makes the controllers know nothing of reports.
func (m *mesh) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.run, m.seq = "", 0
	clear(m.reports)
}

// rig is an outbox over a loop whose reports a test writes, a real spool, and a
// mesh.
type rig struct {
	t         *testing.T
	mesh      *mesh
	path      string
	spool     *spool.Spool
	broken    error // of the spool's Put
	published chan struct{}
	box       *Outbox
	stop      func()

	mu      sync.Mutex
	reports []*report.Report
	source  wire.Source
	asked   func() // called, unlocked, when the source was asked for; nil for nothing
	profile wire.Profile
	removed string
}

// Put implements memory.
func (r *rig) Put(events []wire.Event, told map[string][]byte) error {
	r.mu.Lock()
	err := r.broken
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return r.spool.Put(events, told)
}

// faulty is the rig's spool.
type faulty struct {
	*spool.Spool
	r *rig
}

func (f faulty) Put(events []wire.Event, told map[string][]byte) error { return f.r.Put(events, told) }

func inRig(t *testing.T, f func(t *testing.T, r *rig)) {
	path := filepath.Join(t.TempDir(), "events.db")
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, mesh: newMesh(t), path: path}
		r.source = wire.Source{Mesh: "m", Epoch: "e", Revision: 7}
		r.mesh.connect()
		r.start()
		defer func() { r.stop() }()
		f(t, r)
	})
}

// start begins as a new process on the spool that is there.
func (r *rig) start() {
	s, err := spool.Open(spool.Options{Path: r.path})
	require.NoError(r.t, err)
	r.spool, r.published = s, make(chan struct{}, 1)
	r.box = New(Options{
		Node: func() string { return "ws1" }, Link: r.mesh, Spool: faulty{s, r}, Published: r.published, Logger: slog.New(slog.DiscardHandler),
		Reports: func() []*report.Report { r.mu.Lock(); defer r.mu.Unlock(); return r.reports },
		Source:  r.theSource,
		Profile: func() wire.Profile { r.mu.Lock(); defer r.mu.Unlock(); return r.profile },
		Removed: func(why string) { r.mu.Lock(); defer r.mu.Unlock(); r.removed = why },
	})
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.box.Run(ctx) }()
	r.stop = func() {
		cancel()
		require.NoError(r.t, <-ended)
		require.NoError(r.t, s.Close())
	}
}

// publish makes these all there is.
func (r *rig) publish(all ...*report.Report) {
	r.mu.Lock()
	r.reports = all
	r.mu.Unlock()
	wake(r.published)
}

// theSource is what the outbox is told.
func (r *rig) theSource() wire.Source {
	r.mu.Lock()
	source, asked := r.source, r.asked
	r.mu.Unlock()
	if asked != nil {
		asked()
	}
	return source
}

func (r *rig) setSource(s wire.Source) {
	r.mu.Lock()
	r.source = s
	r.mu.Unlock()
	r.box.SourceChanged()
}

// after lets time pass.
func (r *rig) after(d time.Duration) *rig {
	time.Sleep(d)
	synctest.Wait()
	return r
}

// stored are what controllers hold, by name: outcome and reason.
func (r *rig) stored() []string {
	r.mesh.mu.Lock()
	defer r.mesh.mu.Unlock()
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.mesh.reports)) {
		rep := r.mesh.reports[name]
		all = append(all, fmt.Sprint(name, " ", rep.Outcome, " ", rep.Generation))
	}
	return all
}

// batchesOf are "base→seq reports gone more" of what was stored.
func (r *rig) batches() []string {
	r.mesh.mu.Lock()
	defer r.mesh.mu.Unlock()
	var all []string
	for _, b := range r.mesh.stored {
		text := fmt.Sprintf("%d→%d %d", b.Base, b.Seq, len(b.Reports))
		if len(b.Gone) > 0 {
			text += fmt.Sprint(" gone ", b.Gone)
		}
		if b.More {
			text += " more"
		}
		all = append(all, text)
	}
	return all
}

// events are what controllers were told, as lines.
func (r *rig) events() []string {
	r.mesh.mu.Lock()
	defer r.mesh.mu.Unlock()
	var all []string
	for _, e := range r.mesh.events {
		all = append(all, line1(e))
	}
	return all
}

func line1(e wire.Event) string {
	text := e.Kind + " " + e.Unit
	for _, part := range []string{e.Outcome, e.Reason, e.Text} {
		if part != "" {
			text += " " + part
		}
	}
	return text
}

var born = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// rep is a report; each call makes another one.
func rep(name string, o report.Outcome, why report.Reason, more ...func(*report.Report)) *report.Report {
	r := &report.Report{Name: name, UID: "u-" + name, Generation: 1, Scope: unit.System, Unit: unit.Name(name + ".service"),
		Outcome: o, Reason: why, Since: born, Looked: time.Now()}
	for _, m := range more {
		m(r)
	}
	return r
}

// did adds a step that was taken so many seconds after born.
func did(second int, action, object, reason string) func(*report.Report) {
	return func(r *report.Report) {
		r.Steps = append(r.Steps, report.Step{At: born.Add(time.Duration(second) * time.Second), Action: action, Object: object, Reason: reason})
	}
}

func gen(n uint64) func(*report.Report) { return func(r *report.Report) { r.Generation = n } }
