package duty

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/mesh/seal"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

func TestSeatsOfAssignedModulesAreClaimedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		require.True(t, holds(r.last(), modules.Systemd))
		require.Empty(t, r.k.Standing().Trouble)
		asked, claims := r.c.count()
		require.Equal(t, 2, asked, "before the claim and behind it")
		require.Equal(t, 1, claims)
		require.Len(t, r.c.claims[0].Claims[0].Verbs, 8)
		require.Equal(t, uint64(5), r.c.claims[0].Least)
		after(time.Hour)
		_, claims = r.c.count()
		require.Equal(t, 1, claims, "what is held is not claimed again")
		require.Equal(t, 2, r.times(), "the same is not served anew")
		asked, _ = r.c.count()
		require.InDelta(t, 120, asked, 30, "every half minute")
	})
}

func TestWhatWasKeptIsServedBeforeAnythingIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.end()
		r.c.with(func(c *controllers) { c.delay = time.Hour })
		before := r.times()
		asked, _ := r.c.count()
		r.start()
		after(0)
		require.Equal(t, before+1, r.times())
		require.True(t, holds(r.last(), modules.Systemd))
		now, _ := r.c.count()
		require.Equal(t, asked, now)
		r.c.with(func(c *controllers) { c.delay, c.down = 0, true })
		after(10 * time.Minute)
		require.True(t, holds(r.k.Standing().Tools, modules.Systemd), "without any controller")
		require.Contains(t, r.k.Standing().Trouble, "there is no connection")
		require.Equal(t, 1, strings.Count(r.log.String(), "there is no connection"), "told once")
		r.c.with(func(c *controllers) { c.down = false })
		after(40 * time.Second)
		require.Empty(t, r.k.Standing().Trouble)
		require.Contains(t, r.log.String(), "controllers answer again")
	})
}

// Whoever lies, on the way or behind it, changes nothing.
func TestLiesAndReplaysChangeNothing(t *testing.T) {
	_, stranger, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		lie  func(c *controllers, t wire.Tools) wire.Signed
		says string
	}{
		"an older revision": {func(c *controllers, t wire.Tools) wire.Signed {
			t.Revision = 4
			return c.sign(t)
		}, "they are of revision 4, and 5 is held"},
		"another node's": {func(c *controllers, t wire.Tools) wire.Signed {
			t.Node = "ws2"
			return c.sign(t)
		}, `they are of node "ws2"`},
		"another mesh's": {func(c *controllers, t wire.Tools) wire.Signed {
			t.Mesh = "away"
			return c.sign(t)
		}, "they are of mesh away"},
		"an epoch that does not go on": {func(c *controllers, t wire.Tools) wire.Signed {
			t.Epoch, t.Revision = "e2", 900
			return c.sign(t)
		}, "does not go on from e1"},
		"a version of tomorrow": {func(c *controllers, t wire.Tools) wire.Signed {
			t.Wire = wire.Version + 1
			return c.sign(t)
		}, "of version"},
		"a stranger's signature": {func(c *controllers, t wire.Tools) wire.Signed {
			s := c.sign(t)
			s.Signature = seal.Tools(stranger, s.Index)
			return s
		}, "it is not signed by this mesh"},
		"a signature of an index": {func(c *controllers, t wire.Tools) wire.Signed {
			s := c.sign(t)
			s.Signature = seal.Index(c.key, s.Index)
			return s
		}, "it is not signed by this mesh"},
		"a changed byte": {func(c *controllers, t wire.Tools) wire.Signed {
			s := c.sign(t)
			s.Index = []byte(strings.Replace(string(s.Index), "ws1", "ws3", 1))
			return s
		}, "it is not signed by this mesh"},
		"no document": {func(c *controllers, _ wire.Tools) wire.Signed {
			return wire.Signed{Index: []byte("nothing"), Signature: seal.Tools(c.key, []byte("nothing"))}
		}, "they cannot be read"},
		"nothing": {func(*controllers, wire.Tools) wire.Signed { return wire.Signed{} }, "it is not signed by this mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, r *rig) {
				r.start()
				after(time.Second)
				kept := *r.disk
				served := r.times()
				r.c.with(func(k *controllers) {
					k.lie = func(t wire.Tools) wire.Signed {
						t.Modules, t.Held = nil, nil
						return c.lie(k, t)
					}
				})
				r.k.Hint(7)
				after(time.Minute)
				require.Contains(t, r.k.Standing().Trouble, c.says)
				require.Equal(t, served, r.times())
				require.True(t, holds(r.k.Standing().Tools, modules.Systemd))
				require.Equal(t, kept, *r.disk)

				r.c.with(func(k *controllers) { k.lie, k.tools.Revision, k.tools.Modules, k.holder = nil, 8, nil, "" })
				after(time.Minute)
				require.Empty(t, r.k.Standing().Trouble)
				require.Empty(t, r.last().Modules, "the truth is taken over")
			})
		})
	}
}

func TestAnEpochThatGoesOnIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.c.with(func(c *controllers) { c.tools.Epoch, c.tools.Follows, c.tools.Revision = "e2", []string{"e0", "e1"}, 1 })
		r.k.Hint(0)
		after(time.Second)
		require.Equal(t, "e2", r.last().Epoch)
		require.Equal(t, uint64(1), r.last().Revision)
	})
}

func TestClaimThatIsRefusedIsToldAndFiledAgain(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.refuse = `module "other" holds the seat` })
		r.start()
		after(2 * time.Minute)
		require.Equal(t, []string{`module "other" holds the seat`}, r.k.Standing().Refused)
		require.Empty(t, r.k.Standing().Trouble)
		require.Equal(t, 1, strings.Count(r.log.String(), "claim refused"), "told once")
		_, claims := r.c.count()
		require.Greater(t, claims, 2)
		r.c.with(func(c *controllers) { c.refuse = "" })
		after(40 * time.Second)
		require.Empty(t, r.k.Standing().Refused)
		require.True(t, holds(r.last(), modules.Systemd))
	})
}

func TestHintIsFollowedAtOnceAndWaitedForOnce(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.c.with(func(c *controllers) {
			c.tools.Revision, c.tools.Units = 6, []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web", Generation: 1}}
		})
		r.k.Hint(6)
		after(50 * time.Millisecond)
		require.Len(t, r.last().Units, 1)
		require.Equal(t, uint64(6), r.c.lastAsked().Least)
		r.k.Hint(1 << 40)
		after(time.Second)
		require.Equal(t, uint64(1<<40), r.c.lastAsked().Least)
		after(time.Minute)
		require.Zero(t, r.c.lastAsked().Least, "one that never comes holds nothing up")
	})
}

func TestAStormOfHintsAsksTenTimesASecond(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		before, _ := r.c.count()
		for n := range 5000 {
			r.k.Hint(uint64(n))
			time.Sleep(time.Millisecond)
		}
		after(time.Second)
		now, _ := r.c.count()
		require.LessOrEqual(t, now-before, 53)
		require.GreaterOrEqual(t, now-before, 40)
	})
}

func TestAfterALossDelaysGrowAndAConnectionEndsThem(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.garble = true })
		r.start()
		after(10 * time.Minute)
		require.Contains(t, r.k.Standing().Trouble, "read answer")
		require.Nil(t, r.last())
		r.c.with(func(c *controllers) { c.garble = false })
		r.news <- struct{}{}
		after(200 * time.Millisecond)
		require.True(t, holds(r.last(), modules.Systemd), "at once")

		r.c.with(func(c *controllers) { c.delay = time.Hour })
		r.k.Hint(0)
		after(16 * time.Second)
		require.Contains(t, r.k.Standing().Trouble, "deadline", "patience with one question is bounded")
	})
}

func TestWhatCannotBeKeptIsNotServed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.broken = errors.New("no space left on device")
		r.start()
		after(time.Minute)
		require.Nil(t, r.last())
		require.Contains(t, r.k.Standing().Trouble, "no space left")
		r.mu.Lock()
		r.broken = nil
		r.mu.Unlock()
		after(40 * time.Second)
		require.True(t, holds(r.last(), modules.Systemd))
	})
}

func TestWhatIsOfAnotherMeshIsNotServed(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.start()
		after(time.Second)
		r.end()
		r.served = nil
		r.trust.Mesh = "away"
		r.c.with(func(c *controllers) { c.down = true })
		r.start()
		after(time.Minute)
		require.Nil(t, r.last())
		require.Contains(t, r.log.String(), "what was kept is not served")
		r.c.with(func(c *controllers) { c.down, c.tools.Mesh, c.tools.Epoch, c.tools.Revision = false, "away", "f1", 2 })
		after(40 * time.Second)
		require.Equal(t, uint64(2), r.last().Revision, "another mesh begins anew")
	})
}

func TestAModuleThatIsUnassignedClaimsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.tools.Modules, c.tools.Seats = []modules.Manifest{}, []seats.Seat{} })
		r.start()
		after(time.Minute)
		_, claims := r.c.count()
		require.Zero(t, claims)
		require.Empty(t, r.last().Held)
	})
}
