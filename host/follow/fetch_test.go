package follow

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

func TestTwoThousandDeclarationsAreFetchedInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var names []string
		for n := range wire.MaxEntries {
			names = append(names, fmt.Sprintf("unit%04d", n))
		}
		r.c.apply(1, names...)
		r.start()
		after(time.Second)
		require.Len(t, r.now(), wire.MaxEntries)
		require.LessOrEqual(t, r.c.count(subject.Body), 6)
		for _, a := range r.c.asks {
			require.LessOrEqual(t, a.digests, maxDigests)
			require.Less(t, a.answer, 1<<20)
		}
		require.Empty(t, r.f.bodies, "nothing is held twice")
		require.Zero(t, r.f.Source().Fetching)

		r.c.apply(2, names[7])
		n := r.c.count(subject.Body)
		r.f.Hint(0)
		after(time.Second)
		require.Equal(t, n+1, r.c.count(subject.Body))
		require.Equal(t, 1, r.c.last(subject.Body).digests)
	})
}

func TestAnAnswerThatHoldsOnlySomeIsGoneOnFrom(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.page = 1 // one body in an answer
		r.c.apply(1, "a", "b", "c", "d")
		r.start()
		after(time.Second)
		require.Equal(t, []string{"a.1", "b.1", "c.1", "d.1"}, r.now())
		require.Equal(t, 4, r.c.count(subject.Body))
	})
}

func TestWhatWasFetchedIsNotFetchedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.page = 1
		r.c.apply(1, "a", "b", "c", "d")
		n := 0
		r.c.fail = func(topic subject.Topic) error {
			if topic != subject.Body {
				return nil
			}
			if n++; n%2 == 0 {
				return fault.New(fault.Timeout, "call", "", errors.New("no answer"))
			}
			return nil
		}
		r.start()
		after(500 * time.Millisecond)
		require.Empty(t, r.now(), "nothing of it is in force before all of it is there")
		require.Empty(t, r.book.declarations)
		require.Contains(t, r.f.Source().Silence, "no answer")
		require.Equal(t, 3, r.f.Source().Fetching)
		after(time.Minute)
		require.Equal(t, []string{"a.1", "b.1", "c.1", "d.1"}, r.now())
		require.Equal(t, 7, r.c.count(subject.Body), "four, and three that were not answered")
		require.Zero(t, r.f.Source().Fetching)
	})
}

func TestOfAnIndexThatWasOvertakenNothingIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.page = 1
		r.c.apply(1, "a", "b")
		n := 0
		r.c.fail = func(topic subject.Topic) error {
			if n++; n > 2 {
				return fault.New(fault.Unavailable, "call", "", nil)
			}
			return nil
		}
		r.start()
		after(500 * time.Millisecond)
		require.Len(t, r.f.bodies, 1)
		r.c.apply(2, "a", "b")
		r.c.with(func(c *controllers) {
			c.fail = nil
			c.mangle = func(_ wire.BodyRequest, reply *wire.BodyReply) { reply.Bodies = nil }
		})
		after(20 * time.Second)
		require.Empty(t, r.f.bodies)
		r.c.with(func(c *controllers) { c.mangle = nil })
		after(time.Minute)
		require.Equal(t, []string{"a.2", "b.2"}, r.now())
		require.Empty(t, r.f.bodies)
	})
}

func TestWhatChangesWhileItIsFetchedIsAskedForAnew(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "a", "b")
		r.c.between = func() {
			r.c.with(func(c *controllers) { c.between = nil })
			r.c.apply(2, "b")
		}
		r.start()
		after(100 * time.Millisecond)
		require.Equal(t, []string{"a.1", "b.2"}, r.now(), "in the same turn")

		form := 20
		r.c.with(func(c *controllers) {
			c.between = func() {
				form++
				r.c.apply(form, "b")
			}
		})
		r.c.apply(2, "a", "b")
		r.c.apply(3, "b")
		syncs := r.c.count(subject.Sync)
		r.f.Hint(0)
		after(100 * time.Millisecond)
		require.Equal(t, syncs+rounds, r.c.count(subject.Sync), "not for ever")
		require.Contains(t, r.f.Source().Trouble, "they change faster than they can be fetched")
		require.Equal(t, []string{"a.1", "b.2"}, r.now())
		r.c.with(func(c *controllers) { c.between = nil })
		after(40 * time.Second)
		require.Equal(t, "a.2", r.now()[0])
		require.Empty(t, r.f.Source().Trouble)
	})
}

func TestNoForgedBodyIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		mangle  func(r wire.BodyRequest, reply *wire.BodyReply)
		trouble string
	}{
		"another form": {func(_ wire.BodyRequest, reply *wire.BodyReply) {
			reply.Bodies[len(reply.Bodies)-1] = service("b", 9).Canonical()
		}, "a body that was not asked for"},
		"a byte is changed": {func(_ wire.BodyRequest, reply *wire.BodyReply) { reply.Bodies[len(reply.Bodies)-1][3] ^= 1 }, "a body that was not asked for"},
		"a byte is lost": {func(_ wire.BodyRequest, reply *wire.BodyReply) {
			reply.Bodies[len(reply.Bodies)-1] = service("b", 1).Canonical()[1:]
		}, "a body that was not asked for"},
		"one before": {func(_ wire.BodyRequest, reply *wire.BodyReply) {
			reply.Bodies = slices.Insert(reply.Bodies, 0, []byte("{}"))
		}, "a body that was not asked for"},
		"nothing":               {func(_ wire.BodyRequest, reply *wire.BodyReply) { *reply = wire.BodyReply{} }, "it holds nothing new"},
		"an empty body":         {func(_ wire.BodyRequest, reply *wire.BodyReply) { reply.Bodies = [][]byte{{}} }, "a body that was not asked for"},
		"the same again":        {func(_ wire.BodyRequest, reply *wire.BodyReply) { reply.Bodies = [][]byte{service("a", 1).Canonical()} }, "it holds nothing new"},
		"what nobody asked for": {func(_ wire.BodyRequest, reply *wire.BodyReply) { *reply = wire.BodyReply{Missing: []string{"x"}} }, "it holds nothing new"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.c.apply(1, "a", "b")
				r.c.mangle = c.mangle
				r.start()
				after(5 * time.Minute)
				require.Empty(t, r.now())
				require.Empty(t, r.book.declarations)
				require.Contains(t, r.f.Source().Trouble, c.trouble)
				r.c.with(func(c *controllers) { c.mangle = nil })
				after(time.Minute)
				require.Equal(t, []string{"a.1", "b.1"}, r.now())
			})
		})
	}
}

func TestTheOrderOfBodiesDoesNotMatter(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "a", "b", "c")
		r.c.mangle = func(_ wire.BodyRequest, reply *wire.BodyReply) {
			slices.Reverse(reply.Bodies)
			reply.Bodies = append(reply.Bodies, bytes.Clone(reply.Bodies[0]))
		}
		r.start()
		after(time.Second)
		require.Equal(t, []string{"a.1", "b.1", "c.1"}, r.now())
	})
}

func TestABatchFitsIntoAnAnswer(t *testing.T) {
	sized := func(sizes ...int) []wire.Entry {
		var all []wire.Entry
		for n, size := range sizes {
			all = append(all, wire.Entry{Digest: fmt.Sprint(n), Size: size})
		}
		return all
	}
	require.Len(t, batch(sized(wire.MaxPage/2, wire.MaxPage/2, 1)), 2)
	require.Len(t, batch(sized(wire.MaxPage+1, 1)), 1, "at least one")
	require.Len(t, batch(sized(make([]int, 2*maxDigests)...)), maxDigests)
}
