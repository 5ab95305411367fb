package follow

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// world is a mesh that goes on while everything between it and the host goes
// wrong, and what the host may hold by it.
type world struct {
	r       *rig
	history []map[string]bool // what was declared at some revision of the epochs that held, as NAME.GENERATION
	old     []*wire.Signed    // that were true once
	names   []string

	mu     sync.Mutex // guards random
	random *rand.Rand
}

func (w *world) dice(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) revision() (n uint64) {
	w.r.c.with(func(c *controllers) { n = c.revision })
	return n
}

// now is what is declared.
func (w *world) now() map[string]bool {
	set := make(map[string]bool)
	for name, d := range w.r.c.set {
		set[fmt.Sprintf("%s.%d", name, d.generation)] = true
	}
	return set
}

// step changes the mesh, or what stands between.
func (w *world) step() {
	r, c := w.r, w.r.c
	name := w.names[w.dice(len(w.names))]
	switch w.dice(14) {
	case 0, 1, 2:
		c.apply(w.dice(5), name, w.names[w.dice(len(w.names))])
	case 3:
		there := false
		c.with(func(c *controllers) { _, there = c.set[name] })
		if there {
			c.withdraw(name)
		}
	case 4:
		c.with(func(c *controllers) { c.fail = w.failing() })
	case 5:
		c.with(func(c *controllers) {
			c.delay = func(subject.Topic) time.Duration { return time.Duration(w.dice(20_000)) * time.Millisecond }
		})
	case 6:
		c.with(func(c *controllers) { c.lie = w.lying() })
	case 7:
		c.with(func(c *controllers) {
			c.mangle = func(_ wire.BodyRequest, reply *wire.BodyReply) {
				if n := len(reply.Bodies); n > 0 {
					reply.Bodies[w.dice(n)] = []byte("forged")
				}
			}
		})
	case 8:
		r.book.with(func(b *book) { b.fail = fault.New(fault.Failed, "write ledger", "", errors.New("disk full")) })
	case 9:
		r.end()
		r.start()
	case 10:
		w.heal()
	case 11:
		r.f.Hint(uint64(w.dice(int(w.revision()) + 3)))
	case 12:
		token(r.conn)
	case 13:
		c.with(func(c *controllers) { c.page = 1 + w.dice(2000) })
	}
	c.with(func(c *controllers) {
		w.history = append(w.history, w.now())
		w.old = append(w.old, c.sign(c.index(wire.SyncRequest{})))
	})
}

// failing is one way in which no answer comes.
func (w *world) failing() func(subject.Topic) error {
	class := []fault.Class{fault.Unavailable, fault.Timeout, fault.Refused, fault.Failed, fault.Denied, fault.Internal}[w.dice(6)]
	often := 1 + w.dice(3)
	return func(subject.Topic) error {
		if w.dice(often) == 0 {
			return fault.New(class, "call", "", errors.New("it happens"))
		}
		return nil
	}
}

// lying is one way in which an answer is not true any more, or never was.
func (w *world) lying() func(wire.SyncRequest, *wire.SyncReply) {
	stranger := newControllers(w.r.t, "home")
	kind := w.dice(4)
	return func(r wire.SyncRequest, reply *wire.SyncReply) {
		switch kind {
		case 0:
			reply.Same, reply.Signed = false, w.old[w.dice(len(w.old))]
		case 1:
			reply.Same, reply.Signed = false, stranger.sign(wire.Index{Wire: wire.Version, Mesh: "home", Epoch: "e1", Revision: 1 << 40, Node: "ws1"})
		case 2:
			*reply = wire.SyncReply{Prove: true}
		case 3:
			i := w.r.c.index(r)
			i.Epoch, i.Revision, i.Entries = "stranger", 1<<40, nil
			reply.Same, reply.Signed = false, w.r.c.sign(i)
		}
	}
}

func (w *world) heal() {
	w.r.c.with(func(c *controllers) { c.fail, c.delay, c.lie, c.mangle = nil, nil, nil, nil })
	w.r.book.with(func(b *book) { b.fail = nil })
}

// Whatever happens, what is in force was declared as a whole at one moment, no
// moment comes before one that was in force already, and when all is well again
// the host has what is declared.
func TestNoFaultBringsWhatWasNeverDeclared(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				w := &world{r: r, random: rand.New(rand.NewPCG(seed, 7)), names: []string{"a", "b", "c", "d", "e"}}
				w.history = []map[string]bool{{}, w.now()}
				w.old = []*wire.Signed{r.c.sign(r.c.index(wire.SyncRequest{}))}
				r.start()
				after(time.Second)
				require.Equal(t, "e1", r.f.Source().Epoch, "the first index of all is believed as it comes")
				at := 0
				for range 150 {
					w.step()
					after(time.Duration(w.dice(4000)) * time.Millisecond)
					at = w.check(at)
				}
				w.heal()
				after(2 * time.Minute)
				require.Equal(t, slices.Sorted(maps.Keys(w.now())), r.now())
				require.Empty(t, r.f.Source().Trouble+r.f.Source().Silence)
				require.Equal(t, w.revision(), r.f.Source().Revision, "the last change was of this node's set")
			})
		})
	}
}

// check holds the set in force and the ledger against the history, from its
// moment at on, and returns the moment that it is of.
func (w *world) check(at int) int {
	inForce := make(map[string]bool)
	for _, name := range w.r.now() {
		inForce[name] = true
	}
	stored := make(map[string]bool)
	w.r.book.with(func(b *book) {
		for name, id := range b.declarations {
			stored[fmt.Sprintf("%s.%d", name, id.Generation)] = true
		}
	})
	require.Equal(w.r.t, stored, inForce)
	for ; at < len(w.history); at++ {
		if maps.Equal(w.history[at], inForce) {
			return at
		}
	}
	require.Fail(w.r.t, "never declared, or not any more", "%v", inForce)
	return at
}
