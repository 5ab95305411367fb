package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// bubble runs a test on a clock of its own.
func bubble(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newRig(t)) })
}

// after lets time pass, until everything rests.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWhatIsInForceIsHandedOnBeforeAnythingIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "db", "web")
		r.start()
		after(time.Second)
		r.end()

		r.c.with(func(c *controllers) { c.delay = func(subject.Topic) time.Duration { return time.Hour } })
		asked := r.c.count(subject.Sync)
		inForce := []string(nil)
		r.o.Declare = func(_ context.Context, set Set) error {
			require.Equal(t, asked, r.c.count(subject.Sync))
			for _, d := range set.Declared {
				inForce = append(inForce, d.Service.Name)
			}
			return nil
		}
		r.start()
		after(0)
		require.Equal(t, []string{"db", "web"}, inForce)
		after(10 * time.Minute)
		require.Equal(t, uint64(2), r.f.Source().Revision)
		require.Contains(t, r.f.Source().Silence, "deadline")
		require.Empty(t, r.f.Source().Trouble)
	})
}

// The account is part of what is held: it is handed on when it changes alone, and
// while the mesh is cut off.
func TestTheAccountIsHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		var handed []string
		declare := func(_ context.Context, set Set) error {
			handed = append(handed, fmt.Sprintf("%s %d", set.Account, len(set.Declared)))
			return nil
		}
		r.o.Declare = declare
		r.c.apply(1, "web")
		r.start()
		after(time.Second)
		r.c.with(func(c *controllers) { c.account, c.revision = "opal", c.revision+1 })
		after(time.Minute)
		require.Equal(t, []string{" 0", " 1", "opal 1"}, handed)
		r.end()

		handed = nil
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", errors.New("cut off")) }
		})
		r.o.Declare = declare
		r.start()
		after(time.Minute)
		require.Equal(t, []string{"opal 1"}, handed)
	})
}

func TestSourceSaysHowItStands(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.book.declarations["old"] = accept.Identity{UID: "u", Name: "old", Generation: 1, Body: service("old", 1).Canonical(), Digest: service("old", 1).Digest()}
		r.c.apply(1, "web")
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error {
				return fault.New(fault.Unavailable, "call", "", errors.New("there is no connection"))
			}
		})
		r.start()
		after(0)
		require.Equal(t, wire.Source{Mesh: "home", Kept: []string{"old"}}, r.f.Source().Source, "nothing was heard yet")
		<-r.f.Changed()
		after(time.Second / 2)
		require.Equal(t, "call: there is no connection", r.f.Source().Silence)
		require.Zero(t, r.f.Source().Answered)
		<-r.f.Changed()

		r.c.with(func(c *controllers) { c.fail = nil })
		after(time.Minute)
		s := r.f.Source()
		require.Equal(t, wire.Source{Mesh: "home", Epoch: "e1", Revision: 2, Accepted: s.Accepted, Kept: []string{"old"}}, s.Source)
		require.Less(t, time.Since(s.Accepted), 36*time.Second)
		require.Empty(t, s.Silence)
		<-r.f.Changed()
		after(time.Hour)
		require.Less(t, time.Since(r.f.Source().Accepted), 37*time.Second, "found the same, again and again")
		require.Empty(t, r.f.Changed(), "which is nothing new")

		at := r.f.Source().Accepted
		r.end()
		r.c.with(func(c *controllers) { c.delay = func(subject.Topic) time.Duration { return time.Hour } })
		r.start()
		after(time.Second)
		require.Less(t, r.f.Source().Accepted, at, "a host that starts anew knows when it accepted, and no more")
		require.NotZero(t, r.f.Source().Accepted)
	})
}

// TestSourceNamesWhatWasHandedOn: whoever reads Source goes by it for reports, so
// a revision stands in it when the loop has the set, and not before.
func TestSourceNamesWhatWasHandedOn(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		before := r.f.Source().Source
		require.Equal(t, before.Revision, before.Current())
		var during wire.Source
		r.handing = func() { during = r.f.Source().Source }
		r.c.apply(2, "web")
		r.f.Hint(0)
		after(time.Second)
		require.Equal(t, before.Revision, during.Current())
		require.Equal(t, before.Revision+1, r.f.Source().Current())
		<-r.f.Changed()

		r.c.with(func(c *controllers) { c.revision, c.written = 30, 29 })
		r.f.Hint(30)
		after(time.Second)
		require.Equal(t, before.Revision+1, r.f.Source().Revision, "the index in force is the one of before")
		require.Equal(t, uint64(29), r.f.Source().Current())
		<-r.f.Changed()
	})
}

func TestWhoIsAskedForItsProfileSendsIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		sent := 0
		r.o.Introduce = func() { sent++ }
		r.start()
		after(time.Second)
		require.Zero(t, sent)
		r.c.with(func(c *controllers) {
			c.lie = func(_ wire.SyncRequest, reply *wire.SyncReply) { reply.Profile, c.lie = true, nil }
		})
		r.f.Hint(0)
		after(time.Minute)
		require.Equal(t, 1, sent)
	})
}

func TestAHintIsFollowedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.c.apply(1, "web")
		r.f.Hint(2)
		after(50 * time.Millisecond)
		require.Equal(t, []string{"web.1"}, r.now())
		require.Equal(t, uint64(2), r.c.last(subject.Sync).sync.Least)

		n := r.c.count(subject.Sync)
		after(time.Second)
		r.f.Hint(2)
		after(time.Second)
		require.Equal(t, n, r.c.count(subject.Sync), "that was known when it was answered")
		r.f.Hint(0)
		after(time.Second)
		require.Equal(t, n+1, r.c.count(subject.Sync), "whoever knows no revision is asked after")
		require.Zero(t, r.c.last(subject.Sync).sync.Least)
		r.f.Hint(2)
		after(time.Second)
		require.Equal(t, n+1, r.c.count(subject.Sync))

		r.c.with(func(c *controllers) { c.garble = true })
		after(40 * time.Second)
		r.c.with(func(c *controllers) { c.garble = false })
		n = r.c.count(subject.Sync)
		r.f.Hint(2)
		after(200 * time.Millisecond)
		require.Equal(t, n+1, r.c.count(subject.Sync), "in trouble every hint is a reason")
	})
}

func TestAStormOfHintsAsksTenTimesASecond(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		before := r.c.count(subject.Sync)
		for n := range 10_000 {
			r.f.Hint(uint64(1000 + n))
			r.f.Hint(0)
			time.Sleep(time.Millisecond)
		}
		after(time.Second)
		require.LessOrEqual(t, r.c.count(subject.Sync)-before, 103)
		require.GreaterOrEqual(t, r.c.count(subject.Sync)-before, 90)
	})
}

// A hint is nobody's word: one with a revision that never comes holds nothing up.
func TestARevisionThatNeverComesIsForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "web")
		r.start()
		after(time.Second)
		r.f.Hint(1 << 62)
		after(50 * time.Millisecond)
		require.Equal(t, uint64(1<<62), r.c.last(subject.Sync).sync.Least)
		n := r.c.count(subject.Sync)
		after(1300 * time.Millisecond)
		require.Equal(t, n+1, r.c.count(subject.Sync), "the controller may be behind: once more")
		require.Zero(t, r.c.last(subject.Sync).sync.Least)
		after(20 * time.Second)
		require.Equal(t, n+1, r.c.count(subject.Sync))

		// Controllers that wait for it too long are not told of it again.
		r.c.with(func(c *controllers) { c.delay = func(subject.Topic) time.Duration { return time.Hour } })
		n = len(r.c.asks)
		r.f.Hint(1 << 62)
		after(16 * time.Second)
		r.c.with(func(c *controllers) { c.delay = nil })
		after(30 * time.Second)
		for _, a := range r.c.asks[n:] {
			require.Zero(t, a.sync.Least)
		}
		require.Empty(t, r.f.Source().Silence)
	})
}

func TestAHintWhileNobodyCanBeAskedIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", nil) }
		})
		r.f.Hint(7)
		after(time.Second)
		r.c.with(func(c *controllers) { c.fail = nil })
		after(5 * time.Second)
		asks := r.c.asks
		require.True(t, slices.ContainsFunc(asks, func(a asked) bool { return a.sync.Least == 7 }))
	})
}

func TestItAsksEveryHalfMinuteAndNotTogether(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(2 * time.Hour)
		var gaps []time.Duration
		for i, a := range r.c.asks[1:] {
			gaps = append(gaps, a.at.Sub(r.c.asks[i].at))
		}
		require.InDelta(t, 240, len(gaps), 20)
		require.GreaterOrEqual(t, slices.Min(gaps), 24*time.Second)
		require.LessOrEqual(t, slices.Max(gaps), 36*time.Second+2*time.Millisecond)
		require.Greater(t, slices.Max(gaps)-slices.Min(gaps), 5*time.Second, "spread")
		require.NotContains(t, r.log.String(), "accepted\" revision=0")
		require.LessOrEqual(t, strings.Count(r.log.String(), "\n"), 1, "a quiet host logs nothing")
	})
}

func TestAfterErrorsItAsksSoonerWithGrowingDelay(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", nil) }
		})
		r.start()
		after(10 * time.Minute)
		want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 30}
		for i, w := range want {
			got := r.c.asks[i+1].at.Sub(r.c.asks[i].at)
			require.InDelta(t, (w * time.Second).Seconds(), got.Seconds(), 0.2*(w*time.Second).Seconds()+0.01, "delay %d", i)
		}
		require.Equal(t, 1, strings.Count(r.log.String(), "no controller answers"), "it is logged once")

		r.c.with(func(c *controllers) { c.fail = nil })
		after(time.Minute)
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", nil) }
		})
		n := len(r.c.asks)
		r.f.Hint(0)
		after(2500 * time.Millisecond)
		require.Equal(t, n+2, len(r.c.asks), "the delay began anew")
	})
}

func TestAReconnectAsksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", nil) }
		})
		r.start()
		after(10 * time.Minute)
		r.conn <- struct{}{}
		after(200 * time.Millisecond)
		n := r.c.count(subject.Sync)
		after(1500 * time.Millisecond)
		require.Equal(t, n+1, r.c.count(subject.Sync), "the delay begins anew")
		r.c.apply(1, "web")
		r.c.with(func(c *controllers) { c.fail = nil })
		r.conn <- struct{}{}
		after(200 * time.Millisecond)
		require.Equal(t, []string{"web.1"}, r.now())
	})
}

func TestConnectionsThatComeAndGoAskTenTimesASecond(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		n := r.c.count(subject.Sync)
		for range 1000 {
			r.conn <- struct{}{}
			time.Sleep(time.Millisecond)
		}
		require.LessOrEqual(t, r.c.count(subject.Sync)-n, 11)
		require.GreaterOrEqual(t, r.c.count(subject.Sync)-n, 8)
	})
}

func TestADefectCostsOneTurn(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "web")
		r.start()
		after(time.Second)
		r.c.apply(2, "web")
		r.c.with(func(c *controllers) { c.lie = func(wire.SyncRequest, *wire.SyncReply) { panic("a defect") } })
		// The fake holds its lock when it panics; it is made new, as a process is.
		next := newControllers(t, "home")
		next.key, next.trust, next.epoch, next.revision, next.set = r.c.key, r.c.trust, r.c.epoch, r.c.revision, r.c.set
		first := r.c
		r.f.o.Mesh = switched{first, next}
		r.f.Hint(0)
		after(50 * time.Millisecond)
		require.Contains(t, r.f.Source().Trouble, "a defect of stead: a defect")
		require.Equal(t, []string{"web.1"}, r.now())
		after(3 * time.Second)
		require.Empty(t, r.f.Source().Trouble)
		require.Equal(t, []string{"web.2"}, r.now())
		require.Contains(t, r.log.String(), "turn ended by a defect")
	})
}

// switched asks the first one once.
type switched struct{ first, next *controllers }

func (s switched) Ask(ctx context.Context, topic subject.Topic, payload []byte) ([]byte, error) {
	if s.first.lie != nil {
		lie := s.first.lie
		s.first.lie = nil
		lie(wire.SyncRequest{}, nil)
	}
	return s.next.Ask(ctx, topic, payload)
}

func TestWhoCannotTakeTheSetOverEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "web")
		r.o.Ledger, r.o.Logger = r.book, r.discard()
		n := 0
		r.o.Declare = func(context.Context, Set) error {
			if n++; n == 2 {
				return fault.New(fault.Failed, "declare", "", errors.New("it ended"))
			}
			return nil
		}
		f, err := New(r.o)
		require.NoError(t, err)
		require.ErrorContains(t, f.Run(t.Context()), "hand on declarations: declare: it ended")

		ctx, cancel := context.WithCancel(t.Context())
		r.o.Declare = func(ctx context.Context, _ Set) error {
			cancel()
			return ctx.Err()
		}
		f, err = New(r.o)
		require.NoError(t, err)
		require.NoError(t, f.Run(ctx), "that is its end")
	})
}

func TestItEndsInTheMiddleOfAQuestion(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.delay = func(subject.Topic) time.Duration { return time.Hour } })
		r.start()
		after(time.Second)
		began := time.Now()
		r.end()
		require.Zero(t, time.Since(began))
		require.Empty(t, r.f.Source().Silence, "nobody was silent")
	})
}

func TestALedgerThatHoldsNoIndexIsNotBegunOn(t *testing.T) {
	r := newRig(t)
	r.o.Logger, r.o.Held = r.discard(), &accept.Held{Index: []byte("{")}
	_, err := New(r.o)
	require.ErrorContains(t, err, "read held index")
}

func TestASecondForAThousandNodesIsNotOneMoment(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 1000 {
		d := jitter(time.Second)
		require.GreaterOrEqual(t, d, 800*time.Millisecond)
		require.LessOrEqual(t, d, 1200*time.Millisecond)
		seen[d.Round(10*time.Millisecond)] = true
	}
	require.Greater(t, len(seen), 30, fmt.Sprint(len(seen)))
}
