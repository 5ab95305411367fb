package follow

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/accept"
	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a declaration of a unit of its name, in its n-th form.
func service(name string, n int) *shape.Service {
	text := fmt.Sprintf("shape: service\nname: %s\ncontent: |\n  [Service]\n  ExecStart=/bin/true %d\nensure: running\n", name, n)
	all, problems := shape.Parse("test", []byte(text))
	if len(problems) > 0 {
		panic(problems)
	}
	return all[0]
}

// controllers are a mesh that answers node ws1, rightly unless a knob says
// otherwise.
type controllers struct {
	key   ed25519.PrivateKey
	trust accept.Trust

	mu          sync.Mutex // guards what follows
	epoch       string
	follows     []string
	revision    uint64
	written     uint64 // SyncReply.Since of every answer that it is the same
	set         map[string]declared
	generations map[string]uint64     // of every name that was ever declared
	tombs       map[string]wire.Entry // by name; Generation is the revision of the tombstone
	keep        []string
	account     string
	asks        []asked
	page        int                                             // bytes of bodies in one answer
	fail        func(topic subject.Topic) error                 // before anything is looked at
	delay       func(topic subject.Topic) time.Duration         // of an answer
	forge       func(r wire.SyncRequest, i *wire.Index)         // before it is signed
	lie         func(r wire.SyncRequest, reply *wire.SyncReply) // after
	mangle      func(r wire.BodyRequest, reply *wire.BodyReply) //
	between     func()                                          // called after an index was given
	garble      bool                                            // answers are no JSON
	inFlight    int
	proofSeen   []wire.Signed
}

type declared struct {
	uid        string
	generation uint64
	body       []byte
}

// asked is one question.
type asked struct {
	at      time.Time
	topic   subject.Topic
	sync    wire.SyncRequest
	digests int
	answer  int // bytes
}

func newControllers(t *testing.T, mesh string) *controllers {
	public, private, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return &controllers{key: private, trust: accept.Trust{Mesh: mesh, Node: "ws1", Key: public}, epoch: "e1", revision: 1, // of the epoch itself
		set: make(map[string]declared), generations: make(map[string]uint64), tombs: make(map[string]wire.Entry), page: wire.MaxPage}
}

// apply declares the n-th form of every name, in one commit.
func (c *controllers) apply(n int, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	for _, name := range names {
		c.put(name, service(name, n).Canonical())
	}
}

func (c *controllers) put(name string, body []byte) {
	d, known := c.set[name]
	if !known {
		d.uid = fmt.Sprintf("uid-%s-%d", name, c.revision)
	}
	c.generations[name]++
	d.generation, d.body = c.generations[name], body
	c.set[name] = d
	delete(c.tombs, name)
}

// applyBody declares a canonical form as it is.
func (c *controllers) applyBody(name, body string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	c.put(name, []byte(body))
}

func (c *controllers) withdraw(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	for _, name := range names {
		uid := wire.AnyUID
		if d, known := c.set[name]; known {
			uid = d.uid
		}
		c.tombs[name] = wire.Entry{Name: name, UID: uid, Generation: c.revision}
		delete(c.set, name)
	}
}

// with changes the knobs.
func (c *controllers) with(change func(c *controllers)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// index is what is declared now, for somebody who asks so.
func (c *controllers) index(r wire.SyncRequest) wire.Index {
	i := wire.Index{Wire: wire.Version, Mesh: c.trust.Mesh, Epoch: c.epoch, Follows: c.follows, Revision: c.revision, Node: "ws1", Account: c.account, Keep: c.keep, Nonce: r.Nonce}
	for _, name := range slices.Sorted(maps.Keys(c.set)) {
		d := c.set[name]
		i.Entries = append(i.Entries, wire.Entry{Name: name, UID: d.uid, Generation: d.generation, Digest: digest(d.body), Size: len(d.body)})
	}
	if r.Mesh == c.trust.Mesh && r.Epoch == c.epoch {
		i.Since = r.Revision
	}
	for n, name := range r.Kept {
		tomb, gone := c.tombs[name]
		if gone && (tomb.UID == r.KeptUIDs[n] || tomb.UID == wire.AnyUID && r.Epoch == c.epoch && tomb.Generation > i.Since) {
			i.Withdrawn, i.WithdrawnUIDs = append(i.Withdrawn, name), append(i.WithdrawnUIDs, tomb.UID)
		}
	}
	return i
}

func (c *controllers) sign(i wire.Index) *wire.Signed {
	text, _ := json.Marshal(i)
	return &wire.Signed{Index: text, Signature: seal.Index(c.key, text)}
}

// Ask implements asker.
func (c *controllers) Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error) {
	c.mu.Lock()
	c.inFlight++
	if c.inFlight > 1 {
		panic("two questions at one time")
	}
	at, fail, delay := len(c.asks), c.fail, time.Millisecond
	c.asks = append(c.asks, asked{at: time.Now(), topic: topic})
	if c.delay != nil {
		delay = c.delay(topic)
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.inFlight--
		c.mu.Unlock()
	}()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, fault.New(fault.Timeout, "call", string(topic), ctx.Err())
	}
	if fail != nil {
		if err := fail(topic); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.garble {
		return []byte("no answer"), nil
	}
	answer, err := c.answer(topic, payload, &c.asks[at])
	c.asks[at].answer = len(answer)
	return answer, err
}

func (c *controllers) answer(topic subject.Topic, payload []byte, a *asked) ([]byte, error) {
	if len(payload) > 1<<20 {
		return nil, fault.New(fault.Invalid, "call", string(topic), errors.New("too large"))
	}
	switch topic {
	case subject.Sync:
		var r wire.SyncRequest
		if err := json.Unmarshal(payload, &r); err != nil {
			return nil, err
		}
		a.sync = r
		if r.Proof != nil {
			c.proofSeen = append(c.proofSeen, *r.Proof)
		}
		return json.Marshal(c.synced(r))
	case subject.Body:
		var r wire.BodyRequest
		if err := json.Unmarshal(payload, &r); err != nil {
			return nil, err
		}
		a.digests = len(r.Digests)
		reply := c.bodies(r)
		if c.mangle != nil {
			c.mangle(r, &reply)
		}
		return json.Marshal(reply)
	}
	return nil, fault.New(fault.Denied, "call", string(topic), nil)
}

func (c *controllers) synced(r wire.SyncRequest) wire.SyncReply {
	i := c.index(r)
	if c.forge != nil {
		c.forge(r, &i)
	}
	reply := wire.SyncReply{Revision: c.revision}
	switch {
	case r.Epoch == i.Epoch && r.Revision > c.revision && r.Proof == nil:
		reply.Prove = true
	case r.Mesh == i.Mesh && r.Epoch == i.Epoch && r.Digest == i.Digest() && len(i.Withdrawn) == 0:
		reply.Same, reply.Since = true, c.written
	default:
		reply.Signed = c.sign(i)
	}
	if c.lie != nil {
		c.lie(r, &reply)
	}
	if c.between != nil {
		c.mu.Unlock()
		c.between()
		c.mu.Lock()
	}
	return reply
}

func (c *controllers) bodies(r wire.BodyRequest) wire.BodyReply {
	have := make(map[string][]byte)
	for _, d := range c.set {
		have[digest(d.body)] = d.body
	}
	var reply wire.BodyReply
	size := 0
	for _, want := range r.Digests {
		body, ok := have[want]
		if !ok {
			reply.Missing = append(reply.Missing, want)
			continue
		}
		if size += len(body); len(reply.Bodies) > 0 && size > c.page {
			break
		}
		reply.Bodies = append(reply.Bodies, bytes.Clone(body))
	}
	return reply
}

// count is how often topic was asked.
func (c *controllers) count(topic subject.Topic) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, a := range c.asks {
		if a.topic == topic {
			n++
		}
	}
	return n
}

// last is the last question of a topic that was read.
func (c *controllers) last(topic subject.Topic) asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range slices.Backward(c.asks) {
		if a.topic == topic {
			return a
		}
	}
	return asked{}
}

// book is a ledger in memory that can refuse.
type book struct {
	mu           sync.Mutex // guards what follows
	held         *accept.Held
	declarations map[string]accept.Identity
	commits      int
	fail         error
}

func (b *book) Accept(c accept.Change) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fail != nil {
		return b.fail
	}
	b.commits++
	for _, name := range c.Delete {
		delete(b.declarations, name)
	}
	for _, id := range c.Put {
		b.declarations[id.Name] = id
	}
	if c.Held != nil {
		b.held = c.Held
	}
	return nil
}

func (b *book) with(change func(b *book)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(b)
}

// rig is a follower of controllers, with all that a host gives it.
type rig struct {
	t    *testing.T
	c    *controllers
	book *book
	conn chan struct{}
	log  *strings.Builder
	o    Options

	mu    sync.Mutex // guards what follows
	sets  []Set
	trust accept.Trust
	f     *Follower
	end   func()

	handing func() // called while a set is handed on; nil for nothing
}

func newRig(t *testing.T) *rig {
	c := newControllers(t, "home")
	r := &rig{t: t, c: c, trust: c.trust, book: &book{declarations: make(map[string]accept.Identity)}, conn: make(chan struct{}, 1), log: &strings.Builder{}}
	r.o = Options{Trust: func() accept.Trust {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.trust
	}, Mesh: c, Reconnected: r.conn}
	return r
}

// start begins a host on what the ledger holds. It ends with the test, or by end.
func (r *rig) start() {
	o := r.o
	o.Ledger = r.book
	o.Held, o.Declarations = r.book.held, maps.Clone(r.book.declarations)
	if o.Declare == nil {
		o.Declare = func(_ context.Context, set Set) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sets = append(r.sets, set)
			if r.handing != nil {
				r.handing()
			}
			return nil
		}
	}
	o.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(r.log, r.t.Output()), nil))
	f, err := New(o)
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan error)
	go func() { done <- f.Run(ctx) }()
	r.f, r.end = f, func() {
		cancel()
		require.NoError(r.t, <-done)
		r.end = func() {}
	}
	r.t.Cleanup(func() { r.end() })
}

// now is what was handed on last, as NAME.GENERATION; what is left has a "!".
func (r *rig) now() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sets) == 0 {
		return nil
	}
	all := []string{}
	set := r.sets[len(r.sets)-1]
	for _, d := range set.Declared {
		all = append(all, fmt.Sprintf("%s.%d", d.Service.Name, d.Generation))
	}
	for _, l := range set.Left {
		all = append(all, fmt.Sprintf("%s.%d!", l.Name, l.Generation))
	}
	slices.Sort(all)
	return all
}

func (r *rig) handed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sets)
}

func (r *rig) discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
