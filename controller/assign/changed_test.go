package assign

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
	"stead/mesh/wire"
)

func TestChangedNamesTheNodesThatAreToldSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*State)
		want   []string
	}{
		"nothing": {func(*State) {}, nil},
		"a declaration is edited": {func(s *State) {
			d := *s.Declarations["web"]
			d.Generation++
			s.Declarations["web"] = &d
		}, []string{"web1", "web2"}},
		"a declaration is moved": {func(s *State) {
			d := *s.Declarations["web"]
			d.Address = Address{Nodes: []string{"db1", "web2"}}
			s.Declarations["web"] = &d
		}, []string{"db1", "web1"}},
		"it is addressed otherwise, to the same": {func(s *State) {
			d := *s.Declarations["web"]
			d.Address, d.Revision = Address{Nodes: []string{"web1", "web2"}}, 41
			s.Declarations["web"] = &d
		}, nil},
		"one is withdrawn": {func(s *State) {
			s.Declarations["web"] = &Declaration{Name: "web", Withdrawn: true}
		}, []string{"web1", "web2"}},
		"one is gone":               {func(s *State) { delete(s.Declarations, "web") }, []string{"web1", "web2"}},
		"one is new":                {func(s *State) { s.Declarations["new"] = declared("new", Address{Nodes: []string{"db1", "old"}}) }, []string{"db1"}},
		"an account is set":         {func(s *State) { s.Nodes["db1"] = withAccount(s.Nodes["db1"], "opal", "auto") }, []string{"db1"}},
		"linger is set":             {func(s *State) { s.Nodes["db1"] = withAccount(s.Nodes["db1"], "", "off") }, []string{"db1"}},
		"linger is said to be auto": {func(s *State) { s.Nodes["db1"] = withAccount(s.Nodes["db1"], "", "auto") }, nil},
		"a label goes":              {func(s *State) { s.Nodes["web1"] = &Node{Name: "web1"} }, []string{"web1"}},
		"a label that selects nothing": {func(s *State) {
			s.Nodes["web1"] = &Node{Name: "web1", Labels: labels("role", "web", "zone", "z")}
		}, nil},
		"a node is removed":             {func(s *State) { s.Nodes["web1"] = &Node{Name: "web1", Removed: true} }, nil},
		"a node comes back":             {func(s *State) { s.Nodes["old"] = &Node{Name: "old"} }, []string{"old"}},
		"a node is new":                 {func(s *State) { s.Nodes["web3"] = &Node{Name: "web3", Labels: labels("role", "web")} }, []string{"web3"}},
		"something cannot be read":      {func(s *State) { s.UnreadableDeclarations = map[string]string{"x": "why"} }, []string{"db1", "web1", "web2"}},
		"another epoch":                 {func(s *State) { s.Epoch = "e3" }, []string{"db1", "web1", "web2"}},
		"only the revision is a higher": {func(s *State) { s.Revision++ }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := stateOf(threeNodes(), declared("web", Address{Labels: labels("role", "web")}), declared("all", Address{All: true}))
			after := *before
			after.Declarations, after.Nodes = maps.Clone(before.Declarations), maps.Clone(before.Nodes)
			c.change(&after)
			require.Equal(t, c.want, Changed(Place(before), Place(&after)))
		})
	}
}

func withAccount(n *Node, account, linger string) *Node {
	copied := *n
	copied.Account, copied.Linger = account, linger
	return &copied
}

// TestChangedIsWhatIndexesSay holds Changed against the digests of all indexes
// before and after.
func TestChangedIsWhatIndexesSay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		before, after := Place(random(r)), Place(random(r))
		var want []string
		for _, node := range after.Nodes() {
			was, _ := before.Index(node, wire.SyncRequest{})
			is, err := after.Index(node, wire.SyncRequest{})
			require.NoError(t, err)
			if was.Account != is.Account || was.Linger != is.Linger || !slices.Equal(was.Entries, is.Entries) {
				want = append(want, node)
			}
		}
		require.Equal(t, want, Changed(before, after))
	}
}

func TestWrittenIsOfTheNodeAndOfWhatItHas(t *testing.T) {
	s := stateOf(threeNodes(), declared("web", Address{Labels: labels("role", "web")}), declared("db", Address{Nodes: []string{"db1", "old"}}))
	s.Declarations["lost"] = &Declaration{Name: "lost", Withdrawn: true, Revision: 39}
	s.Declarations["damaged"] = &Declaration{Name: "damaged", Address: Address{All: true}, Revision: 40}
	s.UnreadableDeclarations = map[string]string{"damaged": "why"}
	s.Declarations["db"].Revision, s.Nodes["web2"].Revision, s.Nodes["old"].Revision = 5, 7, 8
	p := Place(s)
	for node, want := range map[string]uint64{"web1": 1, "web2": 7, "db1": 5, "old": 0, "nobody": 0} {
		require.Equal(t, want, p.Written(node), node)
	}
	require.Equal(t, []string{"db1", "web1", "web2"}, p.WrittenAfter(0))
	require.Equal(t, []string{"db1", "web2"}, p.WrittenAfter(4))
	require.Empty(t, p.WrittenAfter(7))
}

// TestWrittenIsAlsoOfWhatWasTakenAway: a node that never heard of it holds the
// same set as before, and is to say that it knows.
func TestWrittenIsAlsoOfWhatWasTakenAway(t *testing.T) {
	s := stateOf(threeNodes(), declared("web", Address{Nodes: []string{"web1"}}), declared("db", Address{Nodes: []string{"db1"}}))
	s.Declarations["web"].Revision, s.Declarations["web"].Former = 9, Address{Nodes: []string{"web2", "web1"}}
	s.Declarations["gone"] = &Declaration{Name: "gone", Withdrawn: true, Address: Address{Labels: labels("role", "web")}, Revision: 8}
	s.Declarations["older"] = &Declaration{Name: "older", Withdrawn: true, Address: Address{Labels: labels("role", "web")}, Revision: 7}
	p := Place(s)
	require.Equal(t, []string{"web2"}, p.Formerly(s.Declarations["web"]))
	require.Equal(t, []string{"web1", "web2"}, p.Formerly(s.Declarations["gone"]))
	require.Empty(t, p.Formerly(s.Declarations["db"]))
	for node, want := range map[string]uint64{"web1": 9, "web2": 9, "db1": 1} {
		require.Equal(t, want, p.Written(node), node)
	}
	require.Equal(t, []string{"web1", "web2"}, p.WrittenAfter(7))

	s.Declarations["web"].Former = Address{}
	s.Declarations["all"] = &Declaration{Name: "all", Withdrawn: true, Former: Address{All: true}, Revision: 5}
	p = Place(s)
	for node, want := range map[string]uint64{"web1": 9, "web2": 8, "db1": 5, "old": 0} {
		require.Equal(t, want, p.Written(node), node)
	}
}

func TestDiff(t *testing.T) {
	for name, c := range map[string]struct{ before, after, gained, lost []string }{
		"nothing":  {},
		"the same": {[]string{"a", "b"}, []string{"a", "b"}, nil, nil},
		"all new":  {nil, []string{"a"}, []string{"a"}, nil},
		"all gone": {[]string{"a"}, nil, nil, []string{"a"}},
		"mixed":    {[]string{"a", "c", "e"}, []string{"b", "c", "d", "f"}, []string{"b", "d", "f"}, []string{"a", "e"}},
	} {
		t.Run(name, func(t *testing.T) {
			gained, lost := Diff(c.before, c.after)
			require.Equal(t, c.gained, gained)
			require.Equal(t, c.lost, lost)
		})
	}
	same := []string{"a"}
	gained, lost := Diff(same, same)
	require.Empty(t, gained)
	require.Empty(t, lost)
}

func TestAMarkTellsInWhatTwoStatesDiffer(t *testing.T) {
	web := declared("web", Address{Nodes: []string{"web1", "web2"}})
	with := func(change func(*Declaration)) wire.Mark {
		d := *web
		change(&d)
		return Mark(&d)
	}
	now := Mark(web)
	for name, c := range map[string]struct {
		mark wire.Mark
		how  string
	}{
		"the same":             {now, wire.Unchanged},
		"in another order":     {with(func(d *Declaration) { d.Address.Nodes = []string{"web2", "web1", "web2"} }), wire.Unchanged},
		"by another":           {with(func(d *Declaration) { d.By, d.Revision = "operator bob", 9 }), wire.Unchanged},
		"edited":               {with(func(d *Declaration) { d.Generation = 2 }), wire.Edited},
		"moved":                {with(func(d *Declaration) { d.Address = Address{All: true} }), wire.Moved},
		"edited and moved":     {with(func(d *Declaration) { d.Generation, d.Address = 2, Address{All: true} }), wire.Edited},
		"declared anew":        {with(func(d *Declaration) { d.UID = "u2" }), wire.New},
		"withdrawn":            {with(func(d *Declaration) { d.Withdrawn = true }), wire.Gone},
		"not there":            {Mark(nil), wire.Gone},
		"a mark of nobody":     {"nonsense", wire.New},
		"of too many parts":    {now + ".x", wire.New},
		"labels are no nodes":  {with(func(d *Declaration) { d.Address = Address{Labels: labels("web1", "web2")} }), wire.Moved},
		"a capability":         {with(func(d *Declaration) { d.Address = Address{Capability: "x"} }), wire.Moved},
		"labels, by their key": {with(func(d *Declaration) { d.Address = Address{Labels: labels("web1", "x")} }), wire.Moved},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.how, Since(now, c.mark))
			require.Equal(t, c.how == wire.Unchanged, c.mark == now)
		})
	}
	require.Equal(t, wire.New, Since("", now), "it was never seen")
	require.Equal(t, wire.Unchanged, Since("", ""))
}

// FuzzSince: a mark comes from outside; whatever it is, the answer is one of the
// words, and it is Unchanged for the same mark alone.
func FuzzSince(f *testing.F) {
	now := Mark(declared("web", Address{All: true}))
	for _, s := range []string{"", string(now), "a.b.c", "..", "a.1.b.c", string(now) + "x", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		how := Since(wire.Mark(s), now)
		if !slices.Contains([]string{wire.New, wire.Edited, wire.Moved, wire.Unchanged}, how) || (how == wire.Unchanged) != (wire.Mark(s) == now) {
			t.Fatal(how)
		}
		if how := Since(wire.Mark(s), ""); how != wire.Gone && s != "" {
			t.Fatal(how)
		}
	})
}

func TestAddressesAreSaidShortly(t *testing.T) {
	for want, a := range map[string]Address{
		"all":                               {All: true},
		"labels role=web,zone=a":            {Labels: labels("zone", "a", "role", "web")},
		"nodes web1":                        {Nodes: []string{"web1"}},
		"nodes web1 and web2":               {Nodes: []string{"web1", "web2"}},
		"nodes web1, web2 and web3":         {Nodes: []string{"web1", "web2", "web3"}},
		"nodes web1, web2, web3 and 1 more": {Nodes: []string{"web1", "web2", "web3", "web4"}},
	} {
		require.Equal(t, want, a.String())
	}
	kept := AddressOf(&shape.Service{Nodes: []string{"b", "a", "b"}})
	require.Equal(t, Address{Nodes: []string{"a", "b"}}, kept, "it is kept in one form")
	require.True(t, kept.Same(Address{Nodes: []string{"b", "a"}}))
	require.False(t, kept.Same(Address{Labels: labels("a", "b")}))
	require.Equal(t, "none", List(nil))
	require.Equal(t, "removed", ByAt("removed", "", time.Time{}), "nobody knows when")
}
