package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
)

func TestWhatIsCommittedIsReadBackByEveryController(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	first := c.Now()
	require.Equal(t, m.Keys.ID(), first.Mesh)
	require.NotEmpty(t, first.Epoch)
	require.Empty(t, first.Follows)
	require.EqualValues(t, 1, first.Revision)
	require.NoError(t, first.Unsound)

	after := c.put(declare(t, "web", "1", nil), node("ws1", map[string]string{"role": "web"}), declare(t, "db", "1", nil))
	require.EqualValues(t, 4, after.Revision)
	require.EqualValues(t, 2, after.Declarations["web"].Revision)
	require.EqualValues(t, 3, after.Nodes["ws1"].Revision)
	require.Empty(t, first.Declarations, "a state that was handed out is never changed")
	require.Equal(t, after, c.Now(), "one's own commit is there")
	require.NoError(t, other.Reach(t.Context(), after.Revision))
	require.Empty(t, cmp.Diff(after, other.Now()))

	web := after.Declarations["web"]
	require.Equal(t, "web", web.Service.Name)
	require.True(t, web.Service.All, "with its addressing")
	require.Equal(t, web.Service.Canonical(), web.Canonical)
	require.Equal(t, "operator alice", web.By)

	last := other.put(withdraw(web), declare(t, "db", "2", after.Declarations["db"]), state.Change{Node: &assign.Node{Name: "ws1", Removed: true}})
	require.True(t, last.Declarations["web"].Withdrawn)
	require.Nil(t, last.Declarations["web"].Service)
	require.EqualValues(t, 1, last.Declarations["web"].Generation, "a name that is gone keeps its generation")
	require.EqualValues(t, 2, last.Declarations["db"].Generation)
	require.True(t, last.Nodes["ws1"].Removed)
	require.True(t, c.opened(m, "declaration.web").Deleted, "it is a tombstone in the store too")
	require.False(t, web.Withdrawn)

	fresh := start(t, m, marker(t))
	require.Empty(t, cmp.Diff(last, fresh.Now()), "whoever comes later reads the same")
}

func TestCommitOnAnOldStateIsAConflict(t *testing.T) {
	m, c := alone(t)
	other := start(t, m, marker(t))
	base := c.Now()
	after, err := other.Commit(t.Context(), base, []state.Change{node("ws1", nil)})
	require.NoError(t, err, "a state is that of every controller")
	for _, who := range []*controller{c, other} {
		_, err = who.Commit(t.Context(), base, []state.Change{node("ws2", nil)})
		require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	}
	require.NoError(t, c.Reach(t.Context(), after.Revision))
	require.NotContains(t, c.Now().Nodes, "ws2")
	_, err = c.Commit(t.Context(), after, []state.Change{node("ws2", nil)})
	require.NoError(t, err)
}

func TestCommitsOfSeveralControllersLoseNothing(t *testing.T) {
	m := meshtest.New(t)
	const controllers, workers, rounds = 3, 4, 8
	var all []*controller
	var wait sync.WaitGroup
	var mu sync.Mutex
	for range controllers { // all at once, on a store that nobody wrote to yet
		path := marker(t)
		wait.Go(func() {
			c := start(t, m, path)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, c)
		})
	}
	wait.Wait()
	require.Len(t, all, controllers)
	decided := 0
	for i, c := range all {
		require.Equal(t, all[0].Now().Epoch, c.Now().Epoch, "there is one epoch")
		for w := range workers {
			wait.Go(func() {
				for range rounds {
					before, after, err := c.Decide(t.Context(), func(s *assign.State) ([]state.Change, error) {
						mu.Lock()
						decided++
						mu.Unlock()
						n := node("count", map[string]string{"n": "1"})
						if old := s.Nodes["count"]; old != nil {
							n.Node.Labels["n"] = old.Labels["n"] + "1"
						}
						return []state.Change{n, node(fmt.Sprintf("c%d-w%d", i, w), nil)}, nil
					})
					if err != nil {
						t.Errorf("decide: %v", err)
						return
					}
					if len(after.Nodes["count"].Labels["n"]) != len(labelOf(before))+1 || after.Revision < before.Revision+2 {
						t.Errorf("after is not what follows before")
					}
				}
			})
		}
	}
	wait.Wait()
	t.Logf("%d decisions for %d commits", decided, controllers*workers*rounds)
	revision := uint64(1 + 2*controllers*workers*rounds)
	for _, c := range all {
		require.NoError(t, c.Reach(t.Context(), revision))
		require.Len(t, labelOf(c.Now()), controllers*workers*rounds, "a commit was lost")
		require.Equal(t, revision, c.Now().Revision)
		require.NoError(t, c.Now().Unsound)
	}
}

func labelOf(s *assign.State) string {
	if n := s.Nodes["count"]; n != nil {
		return n.Labels["n"]
	}
	return ""
}

func TestDecisionThatChangesNothingCommitsNothing(t *testing.T) {
	_, c := alone(t)
	revision := c.Now().Revision
	before, after, err := c.Decide(t.Context(), func(*assign.State) ([]state.Change, error) { return nil, nil })
	require.NoError(t, err)
	require.Same(t, before, after)
	reason := errors.New("no")
	_, _, err = c.Decide(t.Context(), func(*assign.State) ([]state.Change, error) { return nil, reason })
	require.Equal(t, reason, err)
	require.Equal(t, revision, c.Now().Revision)
	require.Equal(t, revision, c.stored("mesh.epoch").Revision)
}

func TestBadChangesAreRefusedBeforeAnythingIsWritten(t *testing.T) {
	_, c := alone(t)
	good := declare(t, "web", "1", nil)
	bad := func(change func(*assign.Declaration)) []state.Change {
		d := *declare(t, "db", "1", nil).Declaration
		change(&d)
		return []state.Change{good, {Declaration: &d}}
	}
	large := strings.Repeat("x", state.MaxCanonical)
	for name, x := range map[string]struct {
		class   fault.Class
		changes []state.Change
	}{
		"none":            {fault.Invalid, nil},
		"too many":        {fault.Invalid, make([]state.Change, state.MaxChanges+1)},
		"nothing":         {fault.Internal, []state.Change{good, {}}},
		"both":            {fault.Internal, []state.Change{{Declaration: good.Declaration, Node: node("ws1", nil).Node}}},
		"twice":           {fault.Invalid, []state.Change{good, good}},
		"another digest":  {fault.Internal, bad(func(d *assign.Declaration) { d.Digest = good.Declaration.Digest })},
		"no uid":          {fault.Internal, bad(func(d *assign.Declaration) { d.UID = "" })},
		"no generation":   {fault.Internal, bad(func(d *assign.Declaration) { d.Generation = 0 })},
		"half withdrawn":  {fault.Internal, bad(func(d *assign.Declaration) { d.Withdrawn = true })},
		"another's name":  {fault.Internal, bad(func(d *assign.Declaration) { d.Name = "cache" })},
		"no key":          {fault.Invalid, []state.Change{node("ws 1", nil)}},
		"a pattern":       {fault.Invalid, []state.Change{node("*", nil)}},
		"a node too much": {fault.Invalid, []state.Change{node("ws1", map[string]string{"k": large})}},
	} {
		if name == "a node too much" {
			x.changes[0].Node.Labels["l"] = large
		}
		_, err := c.Commit(t.Context(), c.Now(), x.changes)
		require.Equal(t, x.class, fault.ClassOf(err), "%s: %v", name, err)
	}
	require.EqualValues(t, 1, c.Now().Revision)
	require.Equal(t, c.Now().Revision, c.stored("mesh.epoch").Revision)
	c.put(good)
}

func TestCommitOfAThousandIsReadBack(t *testing.T) {
	m, c := alone(t)
	var changes []state.Change
	for i := range state.MaxChanges {
		changes = append(changes, declare(t, fmt.Sprintf("d%d", i), fmt.Sprint(i), nil))
	}
	begun := time.Now()
	after := c.put(changes...)
	t.Logf("committed and read back in %s", time.Since(begun))
	require.Len(t, after.Declarations, state.MaxChanges)
	begun = time.Now()
	fresh := start(t, m, marker(t))
	t.Logf("opened in %s", time.Since(begun))
	require.Len(t, fresh.Now().Declarations, state.MaxChanges)
	begun = time.Now()
	for range 20 {
		c.put(node("ws1", nil))
	}
	t.Logf("one change beside them takes %s", time.Since(begun)/20)
	require.NoError(t, c.Now().Unsound)
}

// A connection that is lost at any moment of a commit leaves it done or not, and
// the caller is told which.
func TestCommitWhoseAnswerIsLostIsLookedFor(t *testing.T) {
	m := meshtest.New(t)
	watching := start(t, m, marker(t))
	way := m.Way()
	c := start(t, m, marker(t), through(m.ConnectBy(way, identity.Controller, "c2")))
	var changes []state.Change
	for i := range 200 {
		changes = append(changes, declare(t, fmt.Sprintf("d%d", i), "1", nil))
	}
	done, refused, unknown := 0, 0, 0
	const rounds = 8
	for round := range rounds {
		base := c.Now()
		for i := range changes {
			changes[i] = declare(t, fmt.Sprintf("d%d", i), fmt.Sprint(round), base.Declarations[fmt.Sprintf("d%d", i)])
		}
		result := make(chan error, 1)
		var after *assign.State
		go func() {
			var err error
			after, err = c.Commit(t.Context(), base, changes)
			result <- err
		}()
		delay := time.Duration(round*20) * time.Millisecond
		if round == rounds-1 {
			delay = patience // one is left alone
		}
		var err error
		select {
		case err = <-result:
		case <-time.After(delay):
			way.Kill()
			err = <-result
		}
		require.Eventually(t, func() bool { return c.conn.State().Connected }, patience, time.Millisecond)
		require.NoError(t, watching.Reach(t.Context(), base.Revision))
		switch {
		case err == nil:
			done++
			require.NoError(t, watching.Reach(t.Context(), after.Revision))
			require.Equal(t, base.Revision+200, after.Revision)
			require.Equal(t, after.Declarations["d7"].Digest, watching.Now().Declarations["d7"].Digest)
		case fault.Is(err, fault.Unavailable):
			refused++
			require.Equal(t, base.Revision, watching.Now().Revision, "%v: and it was done", err)
		default:
			require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
			unknown++
		}
		require.NoError(t, watching.Now().Unsound)
		require.Eventually(t, func() bool { return c.Reach(t.Context(), watching.Now().Revision) == nil }, patience, time.Millisecond)
	}
	t.Logf("%d done, %d known not to be, %d not known", done, refused, unknown)
	require.Positive(t, done)
	require.Zero(t, unknown, "the server was there all the time")
}

// The commit lands, and nobody hears that it did.
func TestCommitThatLandedUnheardIsFound(t *testing.T) {
	m := meshtest.New(t)
	other := start(t, m, marker(t))
	way := m.Way()
	c := start(t, m, marker(t), through(m.ConnectBy(way, identity.Controller, "c2")))
	unheard := func(meanwhile func(*assign.State) error, changes ...state.Change) (*assign.State, error) {
		base := c.Now()
		var after *assign.State
		result := make(chan error, 1)
		way.Deafen(true)
		go func() {
			var err error
			after, err = c.Commit(t.Context(), base, changes)
			result <- err
		}()
		landed := other.until("the commit", func(s *assign.State) bool { return s.Revision > base.Revision })
		require.NoError(t, meanwhile(landed))
		way.Kill()
		way.Deafen(false)
		err := <-result
		require.Eventually(t, func() bool { return c.Reach(t.Context(), other.Now().Revision) == nil }, patience, time.Millisecond)
		return after, err
	}
	nothing := func(*assign.State) error { return nil }
	one, err := unheard(nothing, node("ws1", nil))
	require.NoError(t, err)
	require.Contains(t, one.Nodes, "ws1")
	require.Equal(t, one, other.Now())

	// Somebody went on from it: what is left of it tells.
	again := func(names ...string) func(*assign.State) error {
		return func(s *assign.State) error {
			var changes []state.Change
			for _, name := range names {
				changes = append(changes, node(name, map[string]string{"by": "other"}))
			}
			_, err := other.Commit(t.Context(), s, changes)
			return err
		}
	}
	two, err := unheard(again("ws1"), node("ws1", nil))
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "nothing is left of it: %v", err)
	require.ErrorContains(t, err, "written again since")
	require.Nil(t, two)
	require.NoError(t, c.Now().Unsound)
	require.Equal(t, other.Now(), c.Now())
}

// Somebody else was first while nobody heard anything.
func TestCommitThatIsUnheardAndTooLateIsAConflict(t *testing.T) {
	m := meshtest.New(t)
	other := start(t, m, marker(t))
	way := m.Way()
	c := start(t, m, marker(t), through(m.ConnectBy(way, identity.Controller, "c2")))
	base := c.Now()
	way.Deafen(true)
	other.put(node("ws1", map[string]string{"by": "other"}))
	result := make(chan error, 1)
	go func() {
		_, err := c.Commit(t.Context(), base, []state.Change{node("ws1", nil)})
		result <- err
	}()
	time.Sleep(200 * time.Millisecond)
	way.Kill()
	way.Deafen(false)
	err := <-result
	require.Equal(t, fault.Conflict, fault.ClassOf(err), "%v", err)
	require.NoError(t, c.Reach(t.Context(), other.Now().Revision))
	require.Equal(t, "other", c.Now().Nodes["ws1"].Labels["by"])
}

// The network swallows the commit, or its answer: the caller is told within its
// patience, and what it is told is right.
func TestCommitIntoSilenceIsFoundOut(t *testing.T) {
	m := meshtest.New(t)
	watching := start(t, m, marker(t))
	way := m.Way()
	who := m.Credentials(identity.Controller, "c2", way)
	conn := m.Dial(mesh.Options{Credentials: func() (identity.Credentials, error) { return who, nil }, Timeout: time.Second, Ping: time.Second})
	c := start(t, m, marker(t), through(conn))
	base := c.Now()
	way.Swallow(true)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := c.Commit(ctx, base, []state.Change{node("ws1", nil)})
	require.Equal(t, fault.Timeout, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, "it may have been done")

	// With more patience it is done in the end, once.
	result := make(chan error, 1)
	go func() {
		_, err := c.Commit(t.Context(), base, []state.Change{node("ws2", nil)})
		result <- err
	}()
	time.Sleep(1500 * time.Millisecond)
	way.Swallow(false)
	err = <-result
	require.Eventually(t, func() bool {
		_, _, err := c.Decide(t.Context(), func(*assign.State) ([]state.Change, error) { return []state.Change{node("ws3", nil)}, nil })
		return err == nil
	}, patience, 10*time.Millisecond)
	now := c.Now()
	require.NoError(t, watching.Reach(t.Context(), now.Revision))
	require.Equal(t, now, watching.Now())
	require.NoError(t, now.Unsound)
	require.Equal(t, err == nil, now.Nodes["ws2"] != nil, "%v", err)
	if err != nil { // the first one was on its way all the time, or the connection was given up
		require.Contains(t, []fault.Class{fault.Conflict, fault.Unavailable}, fault.ClassOf(err), "%v", err)
	}
	require.EqualValues(t, len(now.Nodes), now.Revision-base.Revision, "each was done once")
}

func TestCommitThatIsNotSentWasNotDone(t *testing.T) {
	m, c := alone(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Commit(ctx, c.Now(), []state.Change{node("ws1", nil)})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	m.Stop()
	require.Eventually(t, func() bool { return !c.conn.State().Connected }, patience, time.Millisecond)
	_, err = c.Commit(t.Context(), c.Now(), []state.Change{node("ws1", nil)})
	require.Equal(t, fault.Unavailable, fault.ClassOf(err), "%v", err)
	require.NoError(t, c.Now().Unsound, "a server that is away makes nothing unsound")
	m.Start()
	require.Eventually(t, func() bool {
		_, _, err := c.Decide(t.Context(), func(*assign.State) ([]state.Change, error) { return []state.Change{node("ws1", nil)}, nil })
		return err == nil
	}, patience, 10*time.Millisecond)
}
