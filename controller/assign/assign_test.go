package assign

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/shape"
	"stead/mesh/wire"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// declared is a declaration of that name, as it would stand.
func declared(name string, a Address) *Declaration {
	services, _ := shape.Parse("f", []byte("shape: service\nname: "+name+"\nensure: running\n"))
	s := services[0]
	return &Declaration{Name: name, UID: "u-" + name, Generation: 1, Digest: s.Digest(), Canonical: s.Canonical(), Service: s, Address: a, By: "operator alice", At: noon, Revision: 1}
}

func labels(pairs ...string) map[string]string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return m
}

func stateOf(nodes []*Node, declarations ...*Declaration) *State {
	s := &State{Mesh: "m", Epoch: "e2", Follows: []string{"e1"}, Revision: 40, Declarations: map[string]*Declaration{}, Nodes: map[string]*Node{}}
	for _, n := range nodes {
		s.Nodes[n.Name] = n
	}
	for _, d := range declarations {
		s.Declarations[d.Name] = d
	}
	return s
}

func threeNodes() []*Node {
	return []*Node{
		{Name: "web1", Labels: labels("role", "web", "zone", "a")},
		{Name: "web2", Labels: labels("role", "web", "zone", "b")},
		{Name: "db1", Labels: labels("role", "db", "zone", "a")},
		{Name: "old", Labels: labels("role", "web"), Removed: true, By: "operator bob", At: noon},
	}
}

func names(set []*Declaration) []string {
	var all []string
	for _, d := range set {
		all = append(all, d.Name)
	}
	return all
}

func TestASetHoldsWhatIsAddressedToTheNode(t *testing.T) {
	gone := declared("gone", Address{All: true})
	gone.Withdrawn = true
	s := stateOf(threeNodes(), gone,
		declared("everywhere", Address{All: true}),
		declared("web", Address{Labels: labels("role", "web")}),
		declared("web-a", Address{Labels: labels("role", "web", "zone", "a")}),
		declared("nobody", Address{Labels: labels("role", "cache")}),
		declared("named", Address{Nodes: []string{"web2", "db1", "old", "unknown", "web2"}}),
		declared("unread", Address{All: true}))
	s.UnreadableDeclarations = map[string]string{"unread": "it is not sealed"}
	p := Place(s)

	for node, want := range map[string][]string{
		"web1": {"everywhere", "web", "web-a"}, "web2": {"everywhere", "named", "web"}, "db1": {"everywhere", "named"}, "old": nil, "unknown": nil,
	} {
		require.Equal(t, want, names(p.Set(node)), node)
		require.Equal(t, len(want), p.Count(node), node)
	}
	for name, want := range map[string][]string{
		"everywhere": {"db1", "web1", "web2"}, "web": {"web1", "web2"}, "web-a": {"web1"}, "nobody": nil, "named": {"db1", "web2"},
	} {
		require.Equal(t, want, p.NodesOf(s.Declarations[name].Address), name)
	}
	require.Equal(t, []string{"db1", "web1"}, p.NodesOf(Address{Labels: labels("zone", "a")}), "a selection that nothing is declared for")
	require.Nil(t, p.NodesOf(Address{}), "nobody is addressed by nothing")
	require.Equal(t, []string{"everywhere", "named", "nobody", "web", "web-a"}, names(p.Declared()))
	require.Equal(t, []string{"db1", "web1", "web2"}, p.Nodes())
	require.Same(t, s, p.State())
}

// TestPlacementIsWhatAddressesSay holds the indexes of a placement against the
// plain reading of every address by every node.
func TestPlacementIsWhatAddressesSay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s := random(r)
		p := Place(s)
		for _, n := range s.Nodes {
			var want []string
			for _, name := range slices.Sorted(maps.Keys(s.Declarations)) {
				if d := s.Declarations[name]; !d.Withdrawn && d.Address.Holds(n) {
					want = append(want, name)
				}
			}
			require.Equal(t, want, names(p.Set(n.Name)))
			require.Equal(t, len(want), p.Count(n.Name))
			for _, d := range p.Declared() {
				require.Equal(t, d.Address.Holds(n), slices.Contains(p.NodesOf(d.Address), n.Name), "%s on %s", d.Name, n.Name)
			}
		}
	}
}

func random(r *rand.Rand) *State {
	var nodes []*Node
	for i := range r.IntN(6) {
		l := map[string]string{}
		for range r.IntN(3) {
			l[fmt.Sprintf("k%d", r.IntN(2))] = fmt.Sprintf("v%d", r.IntN(2))
		}
		n := &Node{Name: fmt.Sprintf("n%d", i), Labels: l, Removed: r.IntN(5) == 0, Account: []string{"", "", "opal"}[r.IntN(3)],
			Linger: []string{"auto", "auto", "", "on"}[r.IntN(4)]}
		for k := range r.IntN(3) {
			n.Capabilities = append(n.Capabilities, fmt.Sprintf("c%d", k))
		}
		nodes = append(nodes, n)
	}
	s := stateOf(nodes)
	for i := range r.IntN(6) {
		a := Address{All: true}
		switch r.IntN(4) {
		case 3:
			a = Address{Capability: fmt.Sprintf("c%d", r.IntN(2))}
		case 0:
			a = Address{Labels: labels(fmt.Sprintf("k%d", r.IntN(2)), fmt.Sprintf("v%d", r.IntN(2)), fmt.Sprintf("k%d", r.IntN(3)), "v0")}
		case 1:
			a = Address{Nodes: []string{fmt.Sprintf("n%d", r.IntN(6)), fmt.Sprintf("n%d", r.IntN(6))}}
		}
		d := declared(fmt.Sprintf("d%d", i), a)
		d.Withdrawn, d.Generation = r.IntN(5) == 0, uint64(r.IntN(2))
		s.Declarations[d.Name] = d
	}
	return s
}

func TestAnIndexSaysWhoseTheUserUnitsAre(t *testing.T) {
	nodes := threeNodes()
	bare, err := Place(stateOf(nodes)).Index(nodes[0].Name, wire.SyncRequest{})
	require.NoError(t, err)
	for _, c := range []struct{ account, linger, said string }{{"", "auto", ""}, {"opal", "auto", ""}, {"opal", "on", "on"}, {"", "off", "off"}} {
		nodes[0] = withAccount(nodes[0], c.account, c.linger)
		index, err := Place(stateOf(nodes)).Index(nodes[0].Name, wire.SyncRequest{})
		require.NoError(t, err)
		require.Equal(t, []string{c.account, c.said}, []string{index.Account, index.Linger})
		require.Equal(t, c.account == "" && c.said == "", index.Digest() == bare.Digest(), "it is another set, unless nothing is set")
	}
}

func TestAnIndexSaysWhatIsDeclaredForTheNode(t *testing.T) {
	web := declared("web", Address{Labels: labels("role", "web")})
	s := stateOf(threeNodes(), web, declared("all", Address{All: true}))
	s.UnreadableDeclarations = map[string]string{"x": "why", "b": "why"}
	index, err := Place(s).Index("web1", wire.SyncRequest{})
	require.NoError(t, err)
	require.Equal(t, wire.Index{Wire: wire.Version, Mesh: "m", Epoch: "e2", Follows: []string{"e1"}, Revision: 40, Node: "web1", Keep: []string{"b", "x"},
		Entries: []wire.Entry{
			{Name: "all", UID: "u-all", Generation: 1, Digest: s.Declarations["all"].Digest, Size: len(s.Declarations["all"].Canonical)},
			{Name: "web", UID: "u-web", Generation: 1, Digest: web.Digest, Size: len(web.Canonical)},
		}}, index)
	none, err := Place(stateOf(threeNodes())).Index("db1", wire.SyncRequest{})
	require.NoError(t, err)
	require.NotNil(t, none.Entries, "an empty list is said, it is not left out")
	answers, err := Place(s).Index("web1", wire.SyncRequest{Nonce: "n1"})
	require.NoError(t, err)
	require.Equal(t, "n1", answers.Nonce, "it is known which question it answers")
	require.Equal(t, index.Digest(), answers.Digest(), "and it declares the same")
	long, err := Place(s).Index("web1", wire.SyncRequest{Nonce: strings.Repeat("n", wire.MaxNonce+1)})
	require.NoError(t, err)
	require.Empty(t, long.Nonce)
}

func TestWhoIsToldNothing(t *testing.T) {
	s := stateOf(threeNodes(), declared("all", Address{All: true}))
	s.UnreadableNodes = map[string]string{"web2": "it is not sealed"}
	unsound := *s
	unsound.Unsound = errors.New("the key node.web1 vanished")
	for name, c := range map[string]struct {
		state       *State
		node, error string
		class       fault.Class
	}{
		"unknown":    {s, "web9", "make index: web9: this mesh knows no such node", fault.NotFound},
		"removed":    {s, "old", "make index: old: the node was removed by operator bob on 2026-11-30 at 12:00 UTC", fault.Refused},
		"unreadable": {s, "web2", "make index: web2: its record in mesh state cannot be read: it is not sealed", fault.Failed},
		"unsound":    {&unsound, "web1", "make index: web1: mesh state is not sound, and nothing is told to nodes: the key node.web1 vanished", fault.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			index, err := Place(c.state).Index(c.node, wire.SyncRequest{})
			require.EqualError(t, err, c.error)
			require.Equal(t, c.class, fault.ClassOf(err))
			require.NotEmpty(t, fault.HintOf(err))
			require.Zero(t, index)
		})
	}
}

// TestOnlyATombstoneOfTheKeptDeclarationWithdrawsIt: what a host keeps of an epoch
// or a mesh before is taken by nothing but a withdrawal that was meant for it.
func TestOnlyATombstoneOfTheKeptDeclarationWithdrawsIt(t *testing.T) {
	tombstone := func(uid string, revision uint64) *Declaration {
		return &Declaration{Name: "web", UID: uid, Generation: 3, Withdrawn: true, Revision: revision}
	}
	asked := wire.SyncRequest{Mesh: "m", Epoch: "e2", Revision: 30, Kept: []string{"db", "web"}, KeptUIDs: []string{"u-db", "u-web"}}
	elsewhere, before, bare, unsorted := asked, asked, asked, asked
	elsewhere.Mesh, before.Epoch, bare.KeptUIDs = "another", "e1", nil
	unsorted.Kept, unsorted.KeptUIDs = []string{"web", "db"}, []string{"u-web", "u-db"}
	for name, c := range map[string]struct {
		stands     *Declaration
		asked      wire.SyncRequest
		unreadable bool
		want       []string
	}{
		"nothing stands":                             {nil, asked, false, nil},
		"it is declared, for others":                 {declared("web", Address{Nodes: []string{"db1"}}), asked, false, nil},
		"another declaration was withdrawn":          {tombstone("u-other", 35), asked, false, nil},
		"a tombstone without a uid":                  {tombstone("", 35), asked, false, nil},
		"the same was withdrawn":                     {tombstone("u-web", 35), asked, false, []string{"web"}},
		"the same was withdrawn long ago":            {tombstone("u-web", 2), asked, false, []string{"web"}},
		"the same was withdrawn in an epoch before":  {tombstone("u-web", 35), before, false, []string{"web"}},
		"the name was withdrawn":                     {tombstone(wire.AnyUID, 35), asked, false, []string{"web"}},
		"the name was withdrawn before it was known": {tombstone(wire.AnyUID, 30), asked, false, nil},
		"the name, of an epoch before":               {tombstone(wire.AnyUID, 35), before, false, nil},
		"the name, of another mesh":                  {tombstone(wire.AnyUID, 35), elsewhere, false, nil},
		"what stands there cannot be read":           {tombstone("u-web", 35), asked, true, nil},
		"uids are not said":                          {tombstone("u-web", 35), bare, false, nil},
		"names are not sorted":                       {tombstone("u-web", 35), unsorted, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := stateOf(threeNodes())
			if c.stands != nil {
				s.Declarations["web"] = c.stands
			}
			if c.unreadable {
				s.UnreadableDeclarations = map[string]string{"web": "why"}
			}
			index, err := Place(s).Index("web1", c.asked)
			require.NoError(t, err)
			require.Equal(t, c.want, index.Withdrawn)
			require.Len(t, index.WithdrawnUIDs, len(c.want))
		})
	}
}
