package assign

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/shape"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// manager is a seat with two verbs.
func manager() *Seat {
	text := json.RawMessage(`{"type":"object","pattern":"<a>"}`)
	return &Seat{Seat: seats.Seat{Name: "node-manager", Scope: seats.NodeScope, Requires: "manager", Decision: "0001", Meaning: "m", Verbs: []seats.Verb{
		{Name: "ask", Class: subject.Read, Arguments: text, Reply: text}, {Name: "do", Class: subject.Write, Arguments: text, Reply: text},
	}}, Record: Record{Revision: 3}}
}

// module serves those verbs where a node reports requires.
func module(name, requires string, claims []subject.Seat, verbs ...subject.Verb) *Module {
	m := &Module{Manifest: modules.Manifest{Name: name, Version: 1, Meaning: "m", Requires: requires, Claims: claims}, Record: Record{Revision: 4}}
	for _, v := range verbs {
		m.Tools = append(m.Tools, modules.Tool{Name: v, Class: subject.Read, Arguments: json.RawMessage(`{}`), Reply: json.RawMessage(`{}`)})
	}
	return m
}

// staffed is three nodes, of which web1 and web2 report "manager" and web2 "desk"
// besides.
func staffed(declarations ...*Declaration) *State {
	s := stateOf(threeNodes(), declarations...)
	s.Nodes["web1"].Capabilities, s.Nodes["web2"].Capabilities = []string{"manager"}, []string{"desk", "manager"}
	s.Nodes["old"].Capabilities = []string{"manager"}
	s.Seats = map[string]*Seat{"node-manager": manager(), "node-gone": {Seat: seats.Seat{Name: "node-gone"}, Record: Record{Gone: true}}}
	claims := []subject.Seat{"node-manager", "node-gone"}
	s.Modules = map[string]*Module{
		"everywhere": module("everywhere", "", nil), "other": module("other", "desk", claims, "ask", "do"), "systemd": module("systemd", "manager", claims, "ask", "do"),
		"gone": {Manifest: modules.Manifest{Name: "gone"}, Record: Record{Gone: true}}, "idle": module("idle", "manager", nil, "ask", "do"),
	}
	return s
}

func claim(module, node string, verbs ...subject.Verb) seats.Claim {
	return seats.Claim{Seat: "node-manager", Module: module, Node: subject.Node(node), Verbs: verbs}
}

func TestModulesAreAssignedByWhatANodeReports(t *testing.T) {
	p := Place(staffed())
	for node, want := range map[string][]string{
		"web1": {"everywhere", "idle", "systemd"}, "web2": {"everywhere", "idle", "other", "systemd"}, "db1": {"everywhere"}, "old": nil, "unknown": nil,
	} {
		var got []string
		for _, m := range p.Modules(node) {
			got = append(got, m.Name)
		}
		require.Equal(t, want, got, node)
	}
	require.Equal(t, []string{"web1", "web2"}, p.NodesOf(p.State().Modules["systemd"].Address()))
	require.Equal(t, []string{"db1", "web1", "web2"}, p.NodesOf(p.State().Modules["everywhere"].Address()))
}

// TestWhatAModuleDeclaresIsPartOfTheSetWhereItIsAssigned: it is declared with the
// module's own addressing, and needs nothing else.
func TestWhatAModuleDeclaresIsPartOfTheSetWhereItIsAssigned(t *testing.T) {
	s := staffed()
	own := declared("web", Address{All: true})
	service, err := own.Service.ForModule("other")
	require.NoError(t, err)
	d := &Declaration{Name: service.Name, UID: "u", Generation: 1, Digest: service.Digest(), Canonical: service.Canonical(), Service: service, Address: s.Modules["other"].Address()}
	s.Declarations[d.Name] = d
	p := Place(s)
	require.Equal(t, []string{"other.web"}, names(p.Set("web2")))
	require.Equal(t, 1, p.Count("web2"))
	require.Empty(t, p.Set("web1"))
	require.Equal(t, "capability desk", d.Address.String())

	less := *s
	less.Nodes = maps.Clone(s.Nodes)
	node := *s.Nodes["web2"]
	node.Capabilities = []string{"manager"}
	less.Nodes["web2"] = &node
	require.Empty(t, Place(&less).Set("web2"))
	require.Equal(t, []string{"web2"}, Changed(p, Place(&less)))
}

func TestAHolderCountsWhileItsModuleIsAssigned(t *testing.T) {
	p := Place(staffed())
	held := func(node, module string) []seats.Holder {
		return p.Holders(node, map[subject.Seat]string{"node-manager": module, "node-gone": module})
	}
	require.Equal(t, []seats.Holder{{Seat: "node-manager", Node: "web1", Module: "systemd"}}, held("web1", "systemd"))
	require.Empty(t, held("web1", "other"), "it is not assigned there")
	require.Len(t, held("web2", "other"), 1)
	require.Empty(t, held("web1", "idle"), "it does not claim the seat")
	for _, node := range []string{"db1", "old", "unknown"} {
		require.Empty(t, held(node, "systemd"), node)
	}
	require.Empty(t, held("web1", "gone"))
	require.Empty(t, p.Holders("web1", nil))
}

func TestClaimsAreJudged(t *testing.T) {
	s := staffed()
	s.Modules["far"] = module("far", "", []subject.Seat{"node-manager"}, "ask", "do")
	p := Place(s)
	for name, c := range map[string]struct {
		claim   seats.Claim
		claimed string
		error   string
		class   fault.Class
	}{
		"all is well":            {claim: claim("systemd", "web1", "do", "ask", "more")},
		"it holds it":            {claim: claim("systemd", "web1", "do", "ask"), claimed: "systemd"},
		"who held it is gone":    {claim: claim("systemd", "web1", "do", "ask"), claimed: "gone"},
		"who held it went":       {claim: claim("systemd", "web1", "do", "ask"), claimed: "other"},
		"a verb is missing":      {claim("x", "web1", "ask"), "", `claim of seat node-manager by module "x" on node "web1" refused: verb "do" is not served`, fault.Refused},
		"all verbs are missing":  {claim("systemd", "web1"), "", `claim of seat node-manager by module "systemd" on node "web1" refused: verbs "ask", "do" are not served`, fault.Refused},
		"a second claimant":      {claim("other", "web2", "ask", "do"), "systemd", `claim of seat node-manager by module "other" on node "web2" refused: module "systemd" holds it`, fault.Conflict},
		"no such module":         {claim("x", "web1", "ask", "do"), "", `claim of seat node-manager by module "x" on node "web1" refused: there is no such module`, fault.Refused},
		"a module that is gone":  {claim("gone", "web1", "ask", "do"), "", `claim of seat node-manager by module "gone" on node "web1" refused: there is no such module`, fault.Refused},
		"it is not assigned":     {claim("other", "web1", "ask", "do"), "", `claim of seat node-manager by module "other" on node "web1" refused: the module is not assigned: the node does not report "desk"`, fault.Refused},
		"its manifest is silent": {claim("idle", "web1", "ask", "do"), "", `claim of seat node-manager by module "idle" on node "web1" refused: the manifest of the module does not claim it`, fault.Refused},
		"the node lacks it":      {claim("far", "db1", "ask", "do"), "", `claim of seat node-manager by module "far" on node "db1" refused: the node does not report "manager"`, fault.Refused},
		"a removed node":         {claim("far", "old", "ask", "do"), "", `claim of seat node-manager by module "far" on node "old" refused: this mesh knows no such node`, fault.Refused},
		"a seat of its own":      {seats.Claim{Seat: "node-mine", Module: "systemd", Node: "web1"}, "", `claim of seat node-mine by module "systemd" on node "web1" refused: there is no such seat, and controllers alone make them`, fault.Refused},
		"a seat that is gone":    {seats.Claim{Seat: "node-gone", Module: "systemd", Node: "web1"}, "", `claim of seat node-gone by module "systemd" on node "web1" refused: there is no such seat, and controllers alone make them`, fault.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Judge(c.claim, c.claimed)
			if c.error == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, c.error)
			require.Equal(t, c.class, fault.ClassOf(err))
		})
	}
	near := claim("systemd", "web1", "ask", "do")
	near.Seat = "node-manger"
	require.Equal(t, "did you mean node-manager?", fault.HintOf(p.Judge(near, "")))
}

func TestToolsAreWhatARuntimeServes(t *testing.T) {
	aliased, problems := shape.Parse("f", []byte("shape: service\nname: db\nunit: db.service\nenabled: true\ncontent: |\n  [Service]\n  ExecStart=/bin/db\n  [Install]\n  Alias=data.service\n"))
	require.NoError(t, problems.Err())
	db := declared("db", Address{All: true})
	db.Service, db.Generation = aliased[0], 7
	s := staffed(declared("web", Address{All: true}), db)
	held := []seats.Holder{{Seat: "node-manager", Node: "web2", Module: "systemd"}}
	tools, err := Place(s).Tools("web2", held)
	require.NoError(t, err)
	yes := true
	require.Equal(t, wire.Tools{Wire: wire.Version, Mesh: "m", Epoch: "e2", Follows: []string{"e1"}, Revision: 40, Node: "web2",
		Modules: []modules.Manifest{s.Modules["everywhere"].Manifest, s.Modules["idle"].Manifest, s.Modules["other"].Manifest, s.Modules["systemd"].Manifest},
		Seats:   []seats.Seat{s.Seats["node-manager"].Seat}, Held: held,
		Units: []wire.DeclaredUnit{
			{Unit: "db.service", Aliases: []string{"data.service"}, Scope: "system", Name: "db", Generation: 7, Enabled: &yes},
			{Unit: "web.service", Scope: "system", Name: "web", Generation: 1, Ensure: "running"},
		}}, tools)

	text, err := json.Marshal(tools)
	require.NoError(t, err)
	var back wire.Tools
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, tools.Digest(), back.Digest(), "it is that of what arrives")
	back.Revision, back.Follows = 41, nil
	require.Equal(t, tools.Digest(), back.Digest(), "a revision asks for nothing")
	back.Held = nil
	require.NotEqual(t, tools.Digest(), back.Digest())

	bare, err := Place(s).Tools("db1", nil)
	require.NoError(t, err)
	text, err = json.Marshal(bare)
	require.NoError(t, err)
	require.Contains(t, string(text), `"seats":[],"held":[]`, "an empty list is said, it is not left out")
}

func TestNoToolsAreToldOfWhatIsNotKnown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*State)
		node   string
		error  string
	}{
		"unsound":              {func(s *State) { s.Unsound = errors.New("a key vanished") }, "web1", "make tools: web1: mesh state is not sound"},
		"a removed node":       {func(*State) {}, "old", "the node was removed"},
		"an unknown node":      {func(*State) {}, "web9", "this mesh knows no such node"},
		"an unreadable seat":   {func(s *State) { s.UnreadableSeats = map[string]string{"x": "why"} }, "web1", `make tools: web1: seat "x" in mesh state cannot be read`},
		"an unreadable module": {func(s *State) { s.UnreadableModules = map[string]string{"x": "why"} }, "web1", `make tools: web1: module "x" in mesh state cannot be read`},
	} {
		t.Run(name, func(t *testing.T) {
			s := staffed()
			c.change(s)
			_, err := Place(s).Tools(c.node, nil)
			require.ErrorContains(t, err, c.error)
			require.NotEmpty(t, fault.HintOf(err))
		})
	}
}

// TestToolsFitIntoOneMessage: what is declared must not keep a runtime from
// hearing what it serves.
func TestToolsFitIntoOneMessage(t *testing.T) {
	s := staffed()
	for i := range wire.MaxEntries {
		d := declared(fmt.Sprintf("d%04d-%s", i, strings.Repeat("x", 50)), Address{All: true})
		service := *d.Service
		content := fmt.Sprintf("[Install]\nAlias=a%d%s.service\n", i, strings.Repeat("y", 200))
		service.Content = &content
		d.Service = &service
		s.Declarations[d.Name] = d
	}
	tools, err := Place(s).Tools("web1", nil)
	require.NoError(t, err)
	require.True(t, tools.Bare)
	require.Zero(t, tools.Unlisted)
	require.Len(t, tools.Units, wire.MaxEntries)
	require.LessOrEqual(t, sizeOf(tools), wire.MaxPage)

	for _, d := range s.Declarations {
		d.Service.Unit = unit.Name(d.Name + strings.Repeat(`\x2d`, 45) + ".service")
	}
	tools, err = Place(s).Tools("web1", nil)
	require.NoError(t, err)
	require.True(t, tools.Bare)
	require.NotZero(t, tools.Unlisted)
	require.Equal(t, wire.MaxEntries, len(tools.Units)+tools.Unlisted)
	require.LessOrEqual(t, sizeOf(tools), wire.MaxPage)
	require.Greater(t, sizeOf(tools), wire.MaxPage-1024)
}

func TestChangedNamesTheNodesWhoseToolsDiffer(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*State)
		want   []string
	}{
		"nothing": {func(*State) {}, nil},
		"a module is another": {func(s *State) {
			m := *s.Modules["other"]
			m.Revision = 41
			s.Modules["other"] = &m
		}, []string{"web2"}},
		"a module goes": {func(s *State) {
			s.Modules["systemd"] = &Module{Manifest: modules.Manifest{Name: "systemd"}, Record: Record{Gone: true, Revision: 41}}
		}, []string{"web1", "web2"}},
		"a module is new":     {func(s *State) { s.Modules["new"] = module("new", "", nil) }, []string{"db1", "web1", "web2"}},
		"one that nobody has": {func(s *State) { s.Modules["new"] = module("new", "none", nil) }, nil},
		"a seat is another": {func(s *State) {
			m := manager()
			m.Revision = 41
			s.Seats["node-manager"] = m
		}, []string{"web1", "web2"}},
		"a seat that nobody claims": {func(s *State) { s.Seats["node-x"] = &Seat{Seat: seats.Seat{Name: "node-x"}} }, nil},
		"a node reports more": {func(s *State) {
			n := *s.Nodes["db1"]
			n.Capabilities = []string{"manager"}
			s.Nodes["db1"] = &n
		}, []string{"db1"}},
		"a node reports what nobody wants": {func(s *State) {
			n := *s.Nodes["db1"]
			n.Capabilities = []string{"new"}
			s.Nodes["db1"] = &n
		}, nil},
		"a unit of a node is paused": {func(s *State) {
			n := *s.Nodes["db1"]
			n.Pauses = []wire.Pause{{Unit: "web.service", Scope: "system", By: "operator alice"}}
			s.Nodes["db1"] = &n
		}, []string{"db1"}},
		"a node reports less": {func(s *State) {
			n := *s.Nodes["web2"]
			n.Capabilities = []string{"manager"}
			s.Nodes["web2"] = &n
		}, []string{"web2"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := staffed()
			after := *before
			after.Nodes, after.Modules, after.Seats = maps.Clone(before.Nodes), maps.Clone(before.Modules), maps.Clone(before.Seats)
			c.change(&after)
			require.Equal(t, c.want, Changed(Place(before), Place(&after)))
		})
	}
}
