package state_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/controller/state"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/meshtest"
	"stead/mesh/seal"
	"stead/mesh/wire"
)

// refused holds the error of a controller that does not start against what it
// must say.
func refused(t *testing.T, err error, with string) {
	t.Helper()
	require.Equal(t, fault.Refused, fault.ClassOf(err), "%v", err)
	require.ErrorContains(t, err, with)
	require.Contains(t, fault.HintOf(err), "--begin-epoch")
}

// reads is what the marker at path says.
func reads(t *testing.T, path string) (m struct {
	Epoch    string
	Revision uint64
	Proof    string
	Strays   []string
}) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

// held is the signed index that a node holds.
func held(t *testing.T, m *meshtest.Mesh, i wire.Index) wire.Signed {
	t.Helper()
	text, err := json.Marshal(i)
	require.NoError(t, err)
	return wire.Signed{Index: text, Signature: seal.Index(m.Keys.DeclarationKey(), text)}
}

func TestTheMarkerKeepsUpAndSurvives(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	require.EqualValues(t, 1, reads(t, path).Revision, "it is written at the start")
	require.Equal(t, c.Now().Epoch, reads(t, path).Epoch)
	for range 5 {
		c.put(node("ws1", nil))
	}
	require.Eventually(t, func() bool { return reads(t, path).Revision == 6 }, patience, 10*time.Millisecond)
	other := start(t, m, marker(t))
	other.put(node("ws2", nil))
	require.Eventually(t, func() bool { return reads(t, path).Revision == 7 }, patience, 10*time.Millisecond, "others' commits too")
	c.put(node("ws3", nil))
	c.end()
	require.EqualValues(t, 8, reads(t, path).Revision, "and at the end")

	for range 3 {
		again := start(t, m, path)
		require.EqualValues(t, 8, again.Now().Revision, "a start writes nothing")
		again.end()
		again = start(t, m, path, begin)
		require.EqualValues(t, 8, again.Now().Revision, "and begins nothing without need")
		require.Equal(t, c.Now().Epoch, again.Now().Epoch)
		again.end()
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(strings.TrimSuffix(path, "/epoch.json"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left beside it")
}

func TestBadMarkersAreRefused(t *testing.T) {
	m := meshtest.New(t)
	for text, class := range map[string]fault.Class{
		"":                                       fault.Failed,
		"{":                                      fault.Failed,
		`{"schema":2}`:                           fault.Unsupported,
		`{"schema":1,"mesh":"another"}`:          fault.Refused,
		`{"schema":1,"mesh":1,"epoch":"x"}`:      fault.Failed,
		`{"schema":1,"mesh":"","epoch":"other"}`: fault.Refused,
	} {
		path := marker(t)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := try(t, m, path)
		require.Equal(t, class, fault.ClassOf(err), "%q: %v", text, err)
	}
	_, err := try(t, m, t.TempDir()+"/missing/epoch.json")
	require.Error(t, err, "a marker that cannot be written")
}

func TestLostStoreIsNotTakenForAnEmptyMesh(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	first := c.put(declare(t, "web", "1", nil))

	// While the controller runs.
	m.Stop()
	m.Wipe()
	m.Start()
	c.unsound("the store is gone")
	require.Contains(t, c.Now().Declarations, "web", "what was known is shown")
	c.end()

	_, err := try(t, m, path)
	refused(t, err, "the store is empty; revision 2 of epoch "+first.Epoch+" was seen")
	_, err = c.js().Stream(t.Context(), "KV_state")
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "nothing was made in what may be another's store")

	cured := start(t, m, path, begin)
	require.NoError(t, cured.Now().Unsound)
	require.Equal(t, []string{first.Epoch}, cured.Now().Follows)
	require.Empty(t, cured.Now().Declarations)
	cured.put(declare(t, "web", "2", nil))
	cured.end()
	again := start(t, m, path)
	require.Equal(t, cured.Now(), again.Now())
}

func TestBucketThatIsTakenAwayAndMadeAnewByOthersIsFoundOut(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	c.put(declare(t, "web", "1", nil))
	require.NoError(t, c.js().DeleteStream(t.Context(), "KV_state"))
	c.unsound("the store is gone")
	other := start(t, m, marker(t)) // knows nothing, and begins
	require.NoError(t, other.Now().Unsound)
	c.unsound("does not go on from it")
	c.end()
	_, err := try(t, m, path)
	refused(t, err, "does not go on from it")
	require.Equal(t, 1, len(c.messages()), "and nothing was written")

	cured := start(t, m, path, begin)
	require.Len(t, cured.Now().Follows, 2, "what both knew: %v", cured.Now().Follows)
	other.until("the cure", func(s *assign.State) bool { return s.Epoch == cured.Now().Epoch && s.Unsound == nil })
}

func TestOldStoreThatIsPutBackIsFoundOut(t *testing.T) {
	m := meshtest.New(t)
	path, other := marker(t), marker(t)
	c, d := start(t, m, path), start(t, m, other)
	c.put(declare(t, "web", "1", nil), declare(t, "db", "1", nil))
	m.Stop()
	old := m.Save()
	m.Start()
	require.Eventually(t, func() bool { return c.conn.State().Connected && d.conn.State().Connected }, patience, time.Millisecond)
	first := c.Now()
	now := c.put(withdraw(first.Declarations["web"]), declare(t, "db", "2", first.Declarations["db"]))
	require.NoError(t, d.Reach(t.Context(), now.Revision))
	m.Stop()
	right := m.Save()
	old()
	m.Start()

	// While controllers run.
	c.unsound("the store was rolled back: revision 5 of this epoch was seen, the store is at 3")
	d.unsound("the store was rolled back")
	m.Stop()
	right()
	m.Start()
	c.until("the right store", func(s *assign.State) bool { return s.Unsound == nil })
	d.until("the right store", func(s *assign.State) bool { return s.Unsound == nil })
	c.put(node("ws1", nil))
	c.end()
	d.end()

	// And when they start on it.
	m.Stop()
	old()
	m.Start()
	_, err := try(t, m, path)
	refused(t, err, "the store was rolled back: revision 6 of this epoch was seen, the store is at 3")
	require.Len(t, c.messages(), 3, "nothing was written")
	cured := start(t, m, path, begin)
	require.NoError(t, cured.Now().Unsound)
	require.Equal(t, []string{first.Epoch}, cured.Now().Follows)
	require.False(t, cured.Now().Declarations["web"].Withdrawn, "as it stood in the old store")
	late := start(t, m, other) // knows the epoch before at revision 6
	require.NoError(t, late.Now().Unsound)
	require.Equal(t, cured.Now(), late.Now())
	late.put(withdraw(cured.Now().Declarations["web"]))
	require.Equal(t, 2, numberOf(t, late), "epochs are counted")
}

func numberOf(t *testing.T, c *controller) int {
	t.Helper()
	_, body, _ := strings.Cut(string(c.stored("mesh.epoch").Value), "\n")
	_, body, _ = strings.Cut(body, "\n")
	var e struct{ Number int }
	require.NoError(t, json.Unmarshal([]byte(body), &e))
	return e.Number
}

// An old store that was written to since it was put back may be at the same
// revision as the right one.
func TestStoreThatWentAnotherWayIsFoundOut(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	c.put(node("ws1", nil))
	m.Stop()
	old := m.Save()
	m.Start()
	require.Eventually(t, func() bool { return c.conn.State().Connected }, patience, time.Millisecond)
	c.put(node("ws2", nil))
	c.end()
	m.Stop()
	old()
	m.Start()
	other := start(t, m, marker(t))
	other.put(node("ws3", nil))
	require.Equal(t, c.Now().Revision, other.Now().Revision)
	_, err := try(t, m, path)
	refused(t, err, "the store was exchanged: it holds another revision 3 of this epoch")
}

func TestForeignStoreIsNotWrittenTo(t *testing.T) {
	m := meshtest.New(t)
	c := start(t, m, marker(t))
	c.put(node("ws1", nil))
	c.end()
	_, err := try(t, m, marker(t), func(o *state.Options) { o.Mesh = "another" })
	refused(t, err, "no value in the store is of this mesh")
	require.Len(t, c.messages(), 2)
}

func TestNodeProvesThatTheStoreWasRolledBack(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path) // it knows no more than the store
	now := c.put(declare(t, "web", "1", nil))
	index := wire.Index{Wire: wire.Version, Mesh: now.Mesh, Epoch: now.Epoch, Revision: 418, Node: "ws1"}
	otherMesh, otherNode, noEpoch := index, index, index
	otherMesh.Mesh, otherNode.Node, noEpoch.Epoch = "another", "ws2", ""
	forged := held(t, m, index)
	forged.Index = append(forged.Index, ' ')
	claim := held(t, m, index)
	claim.Signature = nil
	for name, proof := range map[string]wire.Signed{
		"a claim": claim, "forged": forged, "of another mesh": held(t, m, otherMesh), "of another node": held(t, m, otherNode),
		"of no epoch": held(t, m, noEpoch), "nothing": {}, "no index": {Index: []byte("x"), Signature: seal.Index(m.Keys.DeclarationKey(), []byte("x"))},
		"a sealed value": {Index: c.stored("declaration.web").Value, Signature: []byte(seal.Seal(c.stored("declaration.web").Value))},
	} {
		err := c.Prove(t.Context(), "ws1", proof)
		require.Equal(t, fault.Refused, fault.ClassOf(err), "%s: %v", name, err)
		require.NoError(t, c.Now().Unsound, name)
	}
	older := index
	older.Revision = now.Revision
	require.NoError(t, c.Prove(t.Context(), "ws1", held(t, m, older)))
	require.NoError(t, c.Now().Unsound, "what is not newer proves nothing")

	require.NoError(t, c.Prove(t.Context(), "ws1", held(t, m, index)))
	c.unsound("the store was rolled back: node ws1 holds revision 418 of this epoch, the store is at 2")
	index.Node, index.Revision = "ws2", 300
	require.NoError(t, c.Prove(t.Context(), "ws2", held(t, m, index)))
	c.unsound("node ws1 holds revision 418")
	c.end()
	require.Equal(t, "node ws1", reads(t, path).Proof)
	_, err := try(t, m, path)
	refused(t, err, "node ws1 holds revision 418")
	cured := start(t, m, path, begin)
	require.NoError(t, cured.Now().Unsound)
	require.Equal(t, []string{now.Epoch}, cured.Now().Follows)
	require.Empty(t, reads(t, path).Proof)
	require.NoError(t, cured.Prove(t.Context(), "ws2", held(t, m, index)), "of the epoch before: nothing to say")
	require.NoError(t, cured.Now().Unsound)
}

// A node that is ahead of the copy, and not of the store, proves nothing.
func TestNodeThatIsAheadOfTheCopyIsWaitedFor(t *testing.T) {
	m := meshtest.New(t)
	way := m.Way()
	c := start(t, m, marker(t), through(m.ConnectBy(way, identity.Controller, "c2")))
	other := start(t, m, marker(t))
	way.Swallow(true)
	var now *assign.State
	for range 20 {
		now = other.put(node("ws1", nil))
	}
	proof := held(t, m, wire.Index{Wire: wire.Version, Mesh: now.Mesh, Epoch: now.Epoch, Revision: now.Revision, Node: "ws1"})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.Error(t, c.Prove(ctx, "ws1", proof), "it cannot know")
	require.NoError(t, c.Now().Unsound)
	result := make(chan error, 1)
	go func() { result <- c.Prove(t.Context(), "ws1", proof) }()
	time.Sleep(100 * time.Millisecond)
	way.Swallow(false)
	require.NoError(t, <-result)
	require.NoError(t, c.Now().Unsound)
	require.Equal(t, now.Revision, c.Now().Revision)
}

// A controller that lost all but its keys knows no epoch to go on from. The nodes
// do.
func TestEpochThatNodesHoldIsFollowedByTheNextOne(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	c := start(t, m, path)
	index := wire.Index{Wire: wire.Version, Mesh: m.Keys.ID(), Epoch: "before", Revision: 418, Node: "ws1"}
	for range 3 {
		require.NoError(t, c.Prove(t.Context(), "ws1", held(t, m, index)))
	}
	require.NoError(t, c.Now().Unsound, "one node of long ago stops nobody")
	require.Contains(t, c.log.String(), "a node holds an epoch that the store does not know")
	for i := range 40 {
		index.Epoch = "stray" + strings.Repeat("x", i)
		require.NoError(t, c.Prove(t.Context(), "ws1", held(t, m, index)))
	}
	c.end()
	require.Len(t, reads(t, path).Strays, 16)
	same := start(t, m, path)
	require.Equal(t, c.Now().Epoch, same.Now().Epoch)
	same.end()
	cured := start(t, m, path, begin)
	require.Contains(t, cured.Now().Follows, "before")
	require.Contains(t, cured.Now().Follows, c.Now().Epoch)
	require.Empty(t, reads(t, path).Strays)
}

func TestEpochsAreRememberedUpToABound(t *testing.T) {
	m := meshtest.New(t)
	path := marker(t)
	last := ""
	for range 40 {
		c := start(t, m, path, begin)
		require.NoError(t, c.Now().Unsound)
		if last != "" {
			require.Equal(t, last, c.Now().Follows[0])
		}
		last = c.Now().Epoch
		require.NoError(t, c.js().DeleteStream(t.Context(), "KV_state"))
		c.end()
	}
	require.Len(t, start(t, m, path, begin).Now().Follows, 32)
}
