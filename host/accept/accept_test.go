package accept

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/mesh/wire"
)

func TestOnlyWhatChangedIsWritten(t *testing.T) {
	m := newMesh(t, "home")
	h, change := m.take(Holding{}, m.index(1, "a", "b", "c"))
	require.Len(t, change.Put, 3)
	require.Equal(t, time.Unix(100, 0), change.Held.At)

	i := m.index(2, "a", "c", "d")
	i.Entries[1] = entry("c", 2)
	h, change = m.take(h, i)
	require.Equal(t, []string{"b"}, change.Delete)
	require.Equal(t, []string{"c", "d"}, []string{change.Put[0].Name, change.Put[1].Name})
	require.Equal(t, body("c", 2), h.Declarations["c"].Body)

	i.Revision = 3
	h, change = m.take(h, i)
	require.Empty(t, change.Put)
	require.Empty(t, change.Delete)
	require.NotNil(t, change.Held, "a newer revision holds off older ones")

	h, change = m.take(h, i)
	require.True(t, change.Empty(), "the same again")

	i.Revision, i.Entries[0].UID = 4, "another"
	h, change = m.take(h, i)
	require.Equal(t, "another", change.Put[0].UID, "another declaration of the name, which says the same")
	require.Equal(t, body("a", 1), h.Declarations["a"].Body)
}

// A controller of an older version knows of no account: what it says at the revision
// that is held takes none away, and one that does know completes what is held.
func TestAnAccountIsHeldLikeADeclaration(t *testing.T) {
	m := newMesh(t, "home")
	h, _ := m.take(Holding{}, m.index(1, "a"))
	i := m.index(1, "a")
	i.Account, i.Linger = "opal", "on"
	h, change := m.take(h, i)
	require.NotNil(t, change.Held)
	require.Equal(t, "opal", h.Index.Account)
	require.Equal(t, "on", h.Index.Linger)
	h, change = m.take(h, m.index(1, "a"))
	require.True(t, change.Empty())
	require.Equal(t, "opal", h.Index.Account)
	h, change = m.take(h, m.index(2, "a"))
	require.NotNil(t, change.Held)
	require.Empty(t, h.Index.Account, "somebody took it away")
}

func TestABodyIsFetchedOnceAndNotAgain(t *testing.T) {
	m := newMesh(t, "home")
	h, _ := m.take(Holding{}, m.index(1, "a", "b"))
	i := m.index(2, "a", "b", "c")
	i.Entries[1] = entry("b", 2)
	d, err := Decide(m.self, h, m.sign(i))
	require.NoError(t, err)
	require.Equal(t, []wire.Entry{entry("b", 2), entry("c", 1)}, d.Lack)
	i.Epoch, i.Follows = "e2", []string{"e1"}
	d, err = Decide(m.self, h, m.sign(i))
	require.NoError(t, err)
	require.Len(t, d.Lack, 2, "an epoch changes no body")
}

func TestWithoutEveryBodyNothingIsAccepted(t *testing.T) {
	m := newMesh(t, "home")
	i := m.index(1, "a", "b")
	d, err := Decide(m.self, Holding{}, m.sign(i))
	require.NoError(t, err)
	for name, c := range map[string]func(all map[string][]byte){
		"lacking":     func(all map[string][]byte) { delete(all, entry("b", 1).Digest) },
		"another one": func(all map[string][]byte) { all[entry("b", 1).Digest] = body("b", 2) },
		"cut short":   func(all map[string][]byte) { all[entry("b", 1).Digest] = body("b", 1)[:3] },
	} {
		all := bodies(i)
		c(all)
		change, next, err := d.Complete(all, time.Now())
		require.True(t, fault.Is(err, fault.Refused), name)
		require.ErrorContains(t, err, "accept declaration: b: ")
		require.True(t, change.Empty())
		require.Empty(t, next.Declarations)
	}
	wrong := m.index(1, "a")
	wrong.Entries[0].Size++
	d, err = Decide(m.self, Holding{}, m.sign(wrong))
	require.NoError(t, err)
	_, _, err = d.Complete(bodies(wrong), time.Now())
	require.ErrorContains(t, err, "bytes instead of")
}

func TestWhatIsHeldIsNotChangedByADecision(t *testing.T) {
	m := newMesh(t, "home")
	h, _ := m.take(Holding{}, m.index(1, "a", "b"))
	before := fmt.Sprint(h.Declarations, *h.Index)
	i := m.index(2, "a")
	i.Epoch, i.Follows = "e2", []string{"e1"}
	m.take(h, i)
	require.Equal(t, before, fmt.Sprint(h.Declarations, *h.Index))
}

// Root takes a node from a mesh to another and back: what the first one declared
// is kept, although it is of an epoch that is held again.
func TestANodeThatComesBackToItsMeshKeepsWhatItHad(t *testing.T) {
	home, away := newMesh(t, "home"), newMesh(t, "away")
	h, _ := home.take(Holding{}, home.index(10, "a", "b"))
	other := away.index(3, "c")
	other.Epoch = "x"
	h, _ = away.take(h, other)
	require.Equal(t, []string{"a", "b"}, h.Kept(away.self))
	h, _ = home.take(h, home.index(5, "a"))
	require.Equal(t, []string{"b", "c"}, h.Kept(home.self))
	h, change := home.take(h, home.index(6, "a"))
	require.Empty(t, change.Delete, "b is kept, and an index that lacks it is no news")
	h, _ = home.take(h, home.index(7, "a", "b"))
	require.Equal(t, []string{"c"}, h.Kept(home.self))
	_, change = home.take(h, home.index(8, "a"))
	require.Equal(t, []string{"b"}, change.Delete, "it is the mesh's again")
}

// Root gives a node another name in its mesh: that name's set may be another, and
// nothing goes for that.
func TestANodeThatGetsAnotherNameKeepsWhatItHad(t *testing.T) {
	m := newMesh(t, "home")
	h, _ := m.take(Holding{}, m.index(10, "a", "b"))
	m.self.Node = "ws2"
	i := m.index(9, "a", "c")
	i.Node = "ws2"
	h, change := m.take(h, i)
	require.Empty(t, change.Delete)
	require.Equal(t, []string{"b"}, h.Kept(m.self))
	i.Revision = 10
	h, change = m.take(h, i)
	require.Empty(t, change.Delete)
	i.Revision, i.Entries = 11, i.Entries[:1]
	_, change = m.take(h, i)
	require.Equal(t, []string{"c"}, change.Delete)
}

func TestWhatADeclaredNameOutlives(t *testing.T) {
	m := newMesh(t, "home")
	h := Holding{Declarations: map[string]Identity{"a": identity("a", ""), "b": identity("b", "")}}
	h, _ = m.take(h, m.index(1, "a"))
	require.Equal(t, []string{"b"}, h.Kept(m.self), "the folder's b is kept")
	i := m.index(2, "a")
	i.Keep = []string{"b", "z"}
	h, _ = m.take(h, i)
	require.Equal(t, []string{"b"}, h.Kept(m.self))
	i.Revision, i.Keep, i.Entries = 3, []string{"a"}, nil
	h, change := m.take(h, i)
	require.Empty(t, change.Delete, "a cannot be read in mesh state")
	i.Revision, i.Keep = 4, nil
	_, change = m.take(h, i)
	require.Equal(t, []string{"a"}, change.Delete, "it can, and is not this node's")
}

func TestARequestTellsWhatIsHeldOfItsOwnMesh(t *testing.T) {
	m := newMesh(t, "home")
	h, _ := m.take(Holding{Declarations: map[string]Identity{"z": identity("z", ""), "b": identity("b", "")}}, m.index(7, "a"))
	require.Equal(t, wire.SyncRequest{Wire: 1, Mesh: "home", Epoch: "e1", Revision: 7, Digest: h.Index.Digest(),
		Kept: []string{"b", "z"}, KeptUIDs: []string{"uid-b", "uid-z"}}, h.Request(m.self))
	require.Equal(t, wire.SyncRequest{Wire: 1, Mesh: "away", Kept: []string{"a", "b", "z"}, KeptUIDs: []string{"uid-a", "uid-b", "uid-z"}},
		h.Request(newMesh(t, "away").self), "and nothing of another's")
	require.Equal(t, wire.SyncRequest{Wire: 1, Mesh: "home"}, Holding{}.Request(m.self))
}

func TestARequestFitsIntoAMessage(t *testing.T) {
	m := newMesh(t, "home")
	var entries []string
	kept := make(map[string]Identity)
	for n := range 5000 {
		name := fmt.Sprintf("kept%05d.%s", n, strings.Repeat("x", 100))
		kept[name] = identity(name, "")
		if n < wire.MaxEntries {
			entries = append(entries, fmt.Sprintf("%05d.%s", n, strings.Repeat("x", 120)))
		}
	}
	i := m.index(1, entries...)
	for n := range i.Entries {
		i.Entries[n].UID = strings.Repeat("u", 32)
	}
	h := Holding{Index: &i, Signed: m.sign(i), Declarations: kept}
	r := h.Request(m.self)
	r.Proof, r.Trouble = &h.Signed, strings.Repeat("x", 1000)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Less(t, len(text), 1<<20-16<<10, "a megabyte, headers left out")
	require.Greater(t, len(r.Kept), 500)
	require.Len(t, r.KeptUIDs, len(r.Kept))
}

func TestALedgerWhoseIndexCannotBeReadIsNamed(t *testing.T) {
	for _, text := range []string{"", "{", `{"epoch":"e"}`, `{"mesh":"m"}`} {
		_, err := Open(&Held{Index: []byte(text)}, nil)
		require.ErrorContains(t, err, "read held index")
	}
	h, err := Open(nil, map[string]Identity{"a": identity("a", "")})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, h.Kept(Trust{Mesh: "any"}))
}
