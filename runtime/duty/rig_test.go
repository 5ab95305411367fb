package duty

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stead/host/fault"
	"stead/mesh/seal"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// controllers answer for one node as real ones do, and have knobs for what may go
// wrong with them and on the way.
type controllers struct {
	mu     sync.Mutex // guards what follows
	key    ed25519.PrivateKey
	tools  wire.Tools
	holder string        // who holds the seat; "" is nobody
	refuse string        // why claims are refused; "" is not
	down   bool          // there is no connection
	delay  time.Duration // before an answer
	lie    func(wire.Tools) wire.Signed
	garble bool // the answer is no JSON

	asked  []wire.ToolsRequest
	claims []wire.ClaimRequest
}

func (c *controllers) with(f func(c *controllers)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c)
}

func (c *controllers) sign(t wire.Tools) wire.Signed {
	text, err := json.Marshal(t)
	if err != nil {
		return wire.Signed{}
	}
	return wire.Signed{Index: text, Signature: seal.Tools(c.key, text)}
}

// now is what the node is to serve.
func (c *controllers) now() wire.Tools {
	t := c.tools
	if c.holder != "" {
		t.Held = []seats.Holder{{Seat: seats.NodeServiceManager, Node: subject.Node(t.Node), Module: c.holder}}
	}
	return t
}

func (c *controllers) Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error) {
	c.mu.Lock()
	delay, down := c.delay, c.down
	c.mu.Unlock()
	if down {
		return nil, fault.New(fault.Unavailable, "call", string(topic), errors.New("there is no connection"))
	}
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil, fault.New(fault.Timeout, "call", string(topic), ctx.Err())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.garble:
		return []byte("{"), nil
	case topic == subject.Tools:
		return c.answerTools(payload)
	case topic == subject.Claim:
		return c.answerClaim(payload)
	}
	return nil, fault.New(fault.NotFound, "call", string(topic), errors.New("nobody answers"))
}

func (c *controllers) answerTools(payload []byte) ([]byte, error) {
	var q wire.ToolsRequest
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, err
	}
	c.asked = append(c.asked, q)
	t := c.now()
	if c.lie != nil {
		s := c.lie(t)
		return json.Marshal(wire.ToolsReply{Revision: t.Revision, Signed: &s})
	}
	if q.Epoch == t.Epoch && q.Digest == t.Digest() {
		return json.Marshal(wire.ToolsReply{Same: true, Revision: t.Revision})
	}
	s := c.sign(t)
	return json.Marshal(wire.ToolsReply{Revision: t.Revision, Signed: &s})
}

func (c *controllers) answerClaim(payload []byte) ([]byte, error) {
	var q wire.ClaimRequest
	if err := json.Unmarshal(payload, &q); err != nil {
		return nil, err
	}
	c.claims = append(c.claims, q)
	var reply wire.ClaimReply
	for _, claim := range q.Claims {
		if c.refuse == "" {
			c.holder = claim.Module
		}
		reply.Verdicts = append(reply.Verdicts, wire.Verdict{Refused: c.refuse})
	}
	return json.Marshal(reply)
}

// rig is one runtime's keeper, its disk and its controllers.
type rig struct {
	t     *testing.T
	c     *controllers
	disk  *wire.Signed // what is kept
	log   *bytes.Buffer
	trust Trust
	news  chan struct{}
	k     *Keeper
	stop  func()

	mu     sync.Mutex // guards what follows
	served []*wire.Tools
	broken error // that Keep fails with
}

func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		public, private, err := ed25519.GenerateKey(nil)
		require.NoError(t, err)
		r := &rig{t: t, log: &bytes.Buffer{}, trust: Trust{Mesh: "home", Node: "ws1", Key: public}, news: make(chan struct{}, 1)}
		r.c = &controllers{key: private, tools: wire.Tools{
			Wire: wire.Version, Mesh: "home", Epoch: "e1", Revision: 5, Node: "ws1", Modules: modules.Catalogue(), Seats: seats.Seeded(),
		}}
		defer r.end()
		test(t, r)
	})
}

// start starts a runtime on the disk as it is.
func (r *rig) start() {
	r.t.Helper()
	r.k = New(Options{
		Trust: func() Trust { return r.trust }, Mesh: r.c, Held: r.disk, Reconnected: r.news, Logger: slog.New(slog.NewTextHandler(r.log, nil)),
		Keep: func(s wire.Signed) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.broken != nil {
				return r.broken
			}
			r.disk = &s
			return nil
		},
		Serve: func(t *wire.Tools) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.served = append(r.served, t)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.k.Run(ctx) }()
	r.stop = func() {
		cancel()
		require.NoError(r.t, <-done)
	}
}

func (r *rig) end() {
	if r.stop != nil {
		r.stop()
		r.stop = nil
	}
}

// last is what is served; nil for nothing yet.
func (r *rig) last() *wire.Tools {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.served) == 0 {
		return nil
	}
	return r.served[len(r.served)-1]
}

func (r *rig) times() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.served)
}

// after lets time pass, until everything rests.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *controllers) count() (asked, claims int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked), len(c.claims)
}

func (c *controllers) lastAsked() wire.ToolsRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked[len(c.asked)-1]
}

func holds(t *wire.Tools, module string) bool {
	return t != nil && slices.ContainsFunc(t.Held, func(h seats.Holder) bool { return h.Module == module })
}
