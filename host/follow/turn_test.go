package follow

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/accept"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
)

// begun is a host that holds db and web, and has nothing to complain of.
func begun(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	bubble(t, func(t *testing.T, r *rig) {
		r.c.apply(1, "db", "web")
		r.start()
		after(time.Second)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		require.Empty(t, r.f.Source().Trouble)
		test(t, r)
	})
}

func TestWhatChangesInTheMeshChangesHere(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.apply(2, "web", "cache")
		r.c.withdraw("db")
		after(40 * time.Second)
		require.Equal(t, []string{"cache.1", "web.2"}, r.now())
		require.NotContains(t, r.book.declarations, "db")
		require.Equal(t, "e1", r.book.declarations["web"].Epoch)
		n, commits := r.handed(), r.book.commits
		after(time.Hour)
		require.Equal(t, n, r.handed(), "the same is not handed on again")
		require.Equal(t, commits, r.book.commits)

		r.c.with(func(c *controllers) { clear(c.set); c.revision++ })
		after(40 * time.Second)
		require.Empty(t, r.now(), "an index that is empty withdraws, since it says so")
	})
}

// Whatever is answered that is not the mesh's word, newer and for this node:
// nothing changes, it is said, and the right answer is taken afterwards.
func TestNoLieChangesAnything(t *testing.T) {
	other := newControllers(t, "home")
	for name, c := range map[string]struct {
		lie     func(c *controllers, old *wire.Signed) func(wire.SyncRequest, *wire.SyncReply)
		trouble string
	}{
		"signed by somebody else": {func(c *controllers, _ *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(r wire.SyncRequest, reply *wire.SyncReply) { reply.Signed = other.sign(c.index(r)) }
		}, "not signed by mesh home"},
		"without a signature": {func(*controllers, *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(_ wire.SyncRequest, reply *wire.SyncReply) { reply.Signed.Signature = nil }
		}, "not signed by mesh home"},
		"a byte is changed": {func(*controllers, *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(_ wire.SyncRequest, reply *wire.SyncReply) { reply.Signed.Index[20] ^= 1 }
		}, "not signed by mesh home"},
		"an old index": {func(_ *controllers, old *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(_ wire.SyncRequest, reply *wire.SyncReply) { reply.Signed = old }
		}, "its revision 2 is older than 3, which is held"},
		"nothing at all": {func(*controllers, *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(_ wire.SyncRequest, reply *wire.SyncReply) { *reply = wire.SyncReply{} }
		}, "it holds no index"},
		"a proof is asked for again and again": {func(*controllers, *wire.Signed) func(wire.SyncRequest, *wire.SyncReply) {
			return func(_ wire.SyncRequest, reply *wire.SyncReply) { *reply = wire.SyncReply{Prove: true} }
		}, "it does not take the proof"},
	} {
		t.Run(name, func(t *testing.T) {
			begun(t, func(t *testing.T, r *rig) {
				old := r.c.sign(r.c.index(wire.SyncRequest{}))
				r.c.apply(2, "web")
				after(time.Minute)
				require.Equal(t, []string{"db.1", "web.2"}, r.now())
				r.c.withdraw("db")
				r.c.with(func(k *controllers) { k.lie = c.lie(k, old) })
				n := r.handed()
				after(5 * time.Minute)
				require.Equal(t, n, r.handed())
				require.Contains(t, r.f.Source().Trouble, c.trouble)
				require.Equal(t, uint64(3), r.f.Source().Revision)
				require.Equal(t, r.f.Source().Trouble, r.c.last(subject.Sync).sync.Trouble, "controllers are told")
				require.Equal(t, 1, strings.Count(r.log.String(), "not accepted"), "it is logged once")
				r.c.with(func(k *controllers) { k.lie = nil })
				after(time.Minute)
				require.Equal(t, []string{"web.2"}, r.now())
				require.Empty(t, r.f.Source().Trouble)
			})
		})
	}
}

// Indexes that the mesh did sign, of another place or time.
func TestNoIndexOfAnotherPlaceOrTimeChangesAnything(t *testing.T) {
	for name, c := range map[string]struct {
		forge   func(r wire.SyncRequest, i *wire.Index)
		trouble string
	}{
		"another node's":         {func(_ wire.SyncRequest, i *wire.Index) { i.Node = "ws2" }, `it is of node "ws2"`},
		"another mesh's":         {func(_ wire.SyncRequest, i *wire.Index) { i.Mesh = "x" }, `it is of mesh "x"`},
		"another epoch's":        {func(_ wire.SyncRequest, i *wire.Index) { i.Epoch = "x" }, "does not follow epoch e1"},
		"an empty epoch":         {func(_ wire.SyncRequest, i *wire.Index) { i.Epoch, i.Entries = "x", nil }, "does not follow epoch e1"},
		"older":                  {func(_ wire.SyncRequest, i *wire.Index) { i.Revision = 1 }, "its revision 1 is older than 2"},
		"at the revision held":   {func(_ wire.SyncRequest, i *wire.Index) { i.Revision = 2 }, "its revision 2 is held with other declarations"},
		"another wire version":   {func(_ wire.SyncRequest, i *wire.Index) { i.Wire = 3 }, "bring controllers and nodes to one version"},
		"malformed":              {func(_ wire.SyncRequest, i *wire.Index) { i.Entries[0].UID = "" }, "has no uid and generation"},
		"a revision of nonsense": {func(_ wire.SyncRequest, i *wire.Index) { i.Revision = 0 }, "has no epoch and revision"},
	} {
		t.Run(name, func(t *testing.T) {
			begun(t, func(t *testing.T, r *rig) {
				r.c.with(func(k *controllers) { k.forge = c.forge })
				r.c.withdraw("db")
				after(5 * time.Minute)
				require.Equal(t, []string{"db.1", "web.1"}, r.now())
				require.Contains(t, r.f.Source().Trouble, c.trouble)
				require.Len(t, r.book.declarations, 2)
				r.c.with(func(k *controllers) { k.forge = nil })
				after(time.Minute)
				require.Equal(t, []string{"web.1"}, r.now())
			})
		})
	}
}

func TestAnAnswerThatIsNoAnswerIsNotReadAsOne(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.garble = true })
		after(time.Minute)
		require.Contains(t, r.f.Source().Trouble, "read the controller's answer: sync")
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
	})
	bubble(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.lie = func(_ wire.SyncRequest, reply *wire.SyncReply) { *reply = wire.SyncReply{Same: true} }
		})
		r.start()
		after(time.Second / 2)
		require.Contains(t, r.f.Source().Trouble, "nothing is held yet")
		require.Zero(t, r.f.Source().Accepted)
		r.c.with(func(c *controllers) {
			c.lie = func(_ wire.SyncRequest, reply *wire.SyncReply) { *reply = wire.SyncReply{Prove: true} }
		})
		after(time.Minute)
		require.Contains(t, r.f.Source().Trouble, "a proof of what this node does not hold")
		require.Empty(t, r.c.proofSeen)
	})
}

func TestARemovedNodeKeepsAllAndSaysSo(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error {
				return fault.New(fault.Refused, "sync", "ws1", errors.New("node ws1 was removed from the mesh by operator alice")).
					WithHint("stead node add ws1")
			}
		})
		after(10 * time.Minute)
		require.Equal(t, "sync: ws1: node ws1 was removed from the mesh by operator alice; stead node add ws1", r.f.Source().Trouble)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		r.end()
		r.start()
		after(time.Minute)
		require.Equal(t, []string{"db.1", "web.1"}, r.now(), "also after it was started anew")
		r.c.with(func(c *controllers) { c.fail = nil })
		after(time.Minute)
		require.Empty(t, r.f.Source().Trouble)
	})
}

func TestATroubleOutlastsSilence(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error {
				return fault.New(fault.Failed, "sync", "", errors.New("mesh state is not sound"))
			}
		})
		after(time.Minute)
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error { return fault.New(fault.Unavailable, "call", "", errors.New("cut off")) }
		})
		after(time.Minute)
		require.Equal(t, "sync: mesh state is not sound", r.f.Source().Trouble)
		require.Equal(t, "call: cut off", r.f.Source().Silence)
		r.c.with(func(c *controllers) { c.fail = nil })
		after(time.Minute)
		require.Empty(t, r.f.Source().Trouble+r.f.Source().Silence)
	})
}

func TestALongTroubleIsCut(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.fail = func(subject.Topic) error {
				return fault.New(fault.Failed, "sync", "", errors.New(strings.Repeat("ü", 5000)))
			}
		})
		after(time.Minute)
		require.Len(t, r.f.Source().Trouble, maxTrouble+len("…")) // 994 of ü, whole
	})
}

func TestAStoreThatWasRolledBackIsShownWhatIsHeld(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		held := *r.book.held
		r.c.with(func(c *controllers) { c.revision, c.set = 1, map[string]declared{} })
		after(time.Minute)
		require.NotEmpty(t, r.c.proofSeen)
		require.Equal(t, wire.Signed{Index: held.Index, Signature: held.Signature}, r.c.proofSeen[0])
		require.Contains(t, r.f.Source().Trouble, "its revision 1 is older than 2", "and whatever it makes of that, nothing is lost")
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
	})
}

func TestAControllerThatIsBehindIsWaitedFor(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			first := true
			c.lie = func(request wire.SyncRequest, reply *wire.SyncReply) {
				if first {
					*reply, first = wire.SyncReply{Same: true, Revision: 2}, false
				}
			}
		})
		r.c.apply(2, "web")
		r.f.Hint(3)
		after(100 * time.Millisecond)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		after(1500 * time.Millisecond)
		require.Equal(t, []string{"db.1", "web.2"}, r.now())
	})
}

func TestALedgerThatRefusesIsTriedAgain(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		before := maps.Clone(r.book.declarations)
		r.book.with(func(b *book) {
			b.fail = fault.New(fault.Failed, "write ledger", "l", errors.New("no space left on device"))
		})
		r.c.apply(2, "web")
		r.c.withdraw("db")
		bodies := r.c.count(subject.Body)
		r.f.Hint(0)
		after(5 * time.Minute)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		require.Equal(t, before, r.book.declarations)
		require.Contains(t, r.f.Source().Trouble, "no space left on device")
		require.Equal(t, uint64(2), r.f.Source().Revision)
		require.Equal(t, bodies+1, r.c.count(subject.Body), "what was fetched is not fetched again")
		r.book.with(func(b *book) { b.fail = nil })
		after(time.Minute)
		require.Equal(t, []string{"web.2"}, r.now())
		require.Empty(t, r.f.Source().Trouble)
	})
}

func TestOtherCredentialsKeepEverything(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		away := newControllers(t, "away")
		away.epoch = "x"
		away.apply(1, "web", "mail")
		r.end()
		r.o.Mesh, r.trust = away, away.trust
		r.start()
		after(time.Second)
		require.Equal(t, []string{"db.1", "mail.1", "web.1"}, r.now())
		require.Equal(t, []string{"db"}, r.f.Source().Kept)
		require.Equal(t, "away", r.f.Source().Mesh)
		first := away.asks[0].sync
		require.Empty(t, first.Epoch+first.Digest, "of the other mesh nothing is told")
		require.Equal(t, []string{"db", "web"}, first.Kept)

		// The mesh never had it; an operator withdraws it all the same.
		away.withdraw("db")
		after(time.Minute)
		require.Equal(t, []string{"mail.1", "web.1"}, r.now())
		require.Empty(t, r.f.Source().Kept)
	})
}

// Credentials that are replaced while it runs are believed with the next turn.
func TestCredentialsAreReadAnew(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		away := newControllers(t, "away")
		away.epoch = "x"
		r.mu.Lock()
		r.trust = away.trust
		r.mu.Unlock()
		after(time.Minute)
		require.Contains(t, r.f.Source().Trouble, "it is not signed by mesh away", "the connection is still of the other one")
		require.Equal(t, []string{"db", "web"}, r.f.Source().Kept)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		r.c.with(func(c *controllers) { c.key, c.trust, c.epoch = away.key, away.trust, "x"; clear(c.set) })
		after(time.Minute)
		require.Empty(t, r.f.Source().Trouble)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
	})
}

func TestANewEpochWithdrawsNothing(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) {
			c.epoch, c.follows, c.revision = "e2", []string{"e1"}, 1
			delete(c.set, "db")
			// It began with a tombstone of somebody's in it, and one that was meant for all.
			c.tombs["db"] = wire.Entry{UID: wire.AnyUID, Generation: 1}
		})
		after(5 * time.Minute)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		require.Equal(t, []string{"db"}, r.f.Source().Kept)
		require.Equal(t, "e2", r.f.Source().Epoch)
		require.Equal(t, "e1", r.book.declarations["db"].Epoch)
		r.end()
		r.start()
		after(time.Minute)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		require.Equal(t, []string{"db"}, r.f.Source().Kept, "also after it was started anew")

		r.c.apply(2, "db")
		after(time.Minute)
		require.Empty(t, r.f.Source().Kept)
		r.c.withdraw("db")
		after(time.Minute)
		require.Equal(t, []string{"web.1"}, r.now())
	})
}

func TestWhatWasWithdrawnBeforeANewEpochGoesSoon(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.withdraw("db")
		r.c.with(func(c *controllers) { c.epoch, c.follows = "e2", []string{"e1"} })
		r.f.Hint(0)
		after(100 * time.Millisecond)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		after(1300 * time.Millisecond)
		require.Equal(t, []string{"web.1"}, r.now(), "this very declaration was withdrawn")
	})
}

func TestAnEpochThatDoesNotFollowIsRefusedWhole(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		r.c.with(func(c *controllers) { c.epoch, c.revision = "other", 9; clear(c.set) })
		r.c.apply(1, "new")
		after(10 * time.Minute)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
		require.Contains(t, r.f.Source().Trouble, "it is of epoch other, which does not follow epoch e1 that is held; the controller has another store")
		require.Contains(t, r.f.Source().Trouble, "stead controller run --begin-epoch")
		require.Equal(t, "e1", r.f.Source().Epoch)
	})
}

func TestAFoldersDeclarationsAreKeptWhenTheMeshIsJoined(t *testing.T) {
	bubble(t, func(t *testing.T, r *rig) {
		for _, name := range []string{"db", "web"} {
			s := service(name, 1)
			r.book.declarations[name] = accept.Identity{UID: "folder-" + name, Name: name, Generation: 4, Digest: s.Digest(), Body: s.Canonical()}
		}
		r.c.apply(1, "web")
		r.start()
		after(time.Minute)
		require.Equal(t, []string{"db.4", "web.1"}, r.now())
		require.Equal(t, []string{"db"}, r.f.Source().Kept)
		require.Zero(t, r.c.count(subject.Body), "what is declared is at hand already")
	})
}

func TestChangedTellsOfEverythingNew(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		told := func(why string, change func()) {
			t.Helper()
			select {
			case <-r.f.Changed():
			default:
			}
			after(time.Minute)
			require.Empty(t, r.f.Changed(), "nothing is new")
			change()
			after(time.Minute)
			require.Len(t, r.f.Changed(), 1, why)
		}
		told("the revision", func() { r.c.apply(2, "web") })
		told("trouble", func() { r.c.with(func(c *controllers) { c.garble = true }) })
		told("trouble is over", func() { r.c.with(func(c *controllers) { c.garble = false }) })
		told("the epoch, and what is kept", func() {
			r.c.with(func(c *controllers) { c.epoch, c.follows = "e2", []string{"e1"}; delete(c.set, "db") })
		})
		told("what is kept, at the same revision", func() {
			r.c.with(func(c *controllers) { c.tombs["db"] = wire.Entry{UID: r.book.declarations["db"].UID} })
		})
		require.Equal(t, []string{"web.2"}, r.now())
	})
}

func TestAChangeThatIsTakenBackWhileItIsFetchedIsNoChange(t *testing.T) {
	begun(t, func(t *testing.T, r *rig) {
		before := r.c.set["web"]
		r.c.apply(2, "web")
		r.c.with(func(c *controllers) {
			c.fail = func(topic subject.Topic) error {
				if topic == subject.Body {
					return fault.New(fault.Unavailable, "call", "", nil)
				}
				return nil
			}
		})
		after(time.Minute)
		require.Equal(t, 1, r.f.Source().Fetching)
		r.c.with(func(c *controllers) { c.set["web"] = before })
		after(time.Minute)
		require.Zero(t, r.f.Source().Fetching)
		require.Empty(t, r.f.Source().Silence)
		require.Equal(t, []string{"db.1", "web.1"}, r.now())
	})
}
