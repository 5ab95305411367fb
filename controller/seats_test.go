package controller_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/controller"
	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

func TestASeatFromItsMakingToItsHolder(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	all, _ := w.pages(alice, wire.GetRequest{Kind: wire.Seats})
	require.Len(t, all.Seats, 1)
	s := all.Seats[0]
	require.Equal(t, []any{manager, "controller c1", 1, 0}, []any{s.Name, s.By, s.Nodes, s.Held})
	require.Len(t, s.Verbs, 8)
	require.JSONEq(t, string(seats.Seeded()[0].Verbs[0].Arguments), string(s.Verbs[0].Arguments))
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Modules, Nodes: []string{"ws1"}})
	require.Len(t, all.Modules, 1)
	require.Equal(t, []any{"systemd", 1}, []any{all.Modules[0].Name, all.Modules[0].On})
	all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Holders})
	require.Equal(t, []wire.Holder{{Holder: seats.Holder{Seat: manager, Node: "ws1"}}}, all.Holders, "nobody holds it yet")

	run := w.agent("ws1")
	reply := run.sync()
	require.Equal(t, all.Revision, reply.Revision)
	require.Equal(t, []string{"systemd"}, run.modules())
	require.Len(t, run.held.Seats, 1)
	require.Empty(t, run.held.Held)
	require.True(t, run.sync().Same)

	require.Equal(t, []string{""}, run.claim(claimOf("ws1", "systemd", verbs())))
	require.NotNil(t, run.sync().Signed, "who holds a seat is news at the same revision")
	require.Equal(t, all.Revision, run.held.Revision)
	require.Equal(t, []string{"node-service-manager systemd"}, run.holds())
	require.Equal(t, []string{""}, run.claim(claimOf("ws1", "systemd", verbs())), "it holds it")
	require.True(t, run.sync().Same)

	require.Eventually(t, func() bool {
		all, _ = w.pages(alice, wire.GetRequest{Kind: wire.Holders, Names: []string{string(manager)}, Nodes: []string{"ws1"}})
		return all.Holders[0].Module == "systemd" && !all.Holders[0].Since.IsZero()
	}, patience, tick)
	all, _ = w.pages(w.viewer("vera"), wire.GetRequest{Kind: wire.Seats, Names: []string{string(manager)}})
	require.Equal(t, 1, all.Seats[0].Held)
	var texts []string
	require.Eventually(t, func() bool {
		page, err := alice.Events(w.within(patience), wire.EventsRequest{Last: 100})
		require.NoError(t, err)
		texts = nil
		for _, e := range page.Events {
			texts = append(texts, e.Who+": "+e.Text)
		}
		return slices.Contains(texts, "controller c1: seat node-service-manager comes with stead") && slices.Contains(texts, "controller c1: module systemd comes with stead") &&
			slices.Contains(texts, `runtime ws1: module "systemd" holds seat node-service-manager`) && slices.Contains(texts, "host ws1: known, reports service-manager, linger auto")
	}, patience, 50*time.Millisecond, "%v", &texts)

	w.end()
	w.start()
	require.True(t, run.sync().Same, "a restart writes nothing")
}

func TestWhatIsAskedOfSeatsAndIsNotThereIsNamed(t *testing.T) {
	w := newWorld(t)
	alice := w.operator("alice")
	w.join("ws1")
	for kind, name := range map[string]string{wire.Seats: "node-service-manger", wire.Holders: "node-service-managers", wire.Modules: "sistemd"} {
		all, _ := w.pages(alice, wire.GetRequest{Kind: kind, Names: []string{name}, Nodes: []string{"ws2"}})
		require.Equal(t, []string{name, "ws2"}, all.Missing, kind)
		require.Contains(t, []string{string(manager), "systemd"}, all.Closest[name], kind)
		require.Empty(t, all.Seats)
		require.Empty(t, all.Modules)
		require.Empty(t, all.Holders)
	}
	for _, kind := range []string{wire.Seats, wire.Holders} {
		all, _ := w.pages(alice, wire.GetRequest{Kind: kind, Names: []string{string(manager)}})
		require.Empty(t, all.Missing, kind)
		require.Equal(t, 1, len(all.Seats)+len(all.Holders))
	}
}

func TestClaimsAreRefusedByName(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.start(with(rival()))
	w.join("ws1").tells(can("desk", "service-manager"))
	run := w.agent("ws1")
	run.sync()
	require.Equal(t, []string{"rival", "systemd"}, run.modules())
	require.Equal(t, []string{
		`claim of seat node-service-manager by module "x" on node "ws1" refused: verb "journal" is not served`,
		`claim of seat node-service-manager by module "x" on node "ws1" refused: there is no such module`,
		`claim of seat node-service-manager by module "systemd" on node "ws2" refused: node "ws1" files it`,
		`claim of seat node-desk by module "systemd" on node "ws1" refused: there is no such seat, and controllers alone make them`,
		`claim of seat node.* by module "systemd" on node "ws1" refused: there is no such seat, and controllers alone make them`,
		"",
		`claim of seat node-service-manager by module "rival" on node "ws1" refused: module "systemd" holds it`,
		`claim of seat node-service-manager by module "systemd" on node "ws1" refused: verbs "start", "stop" are not served`,
	}, run.claim(
		claimOf("ws1", "x", verbs("journal")), claimOf("ws1", "x", verbs()), claimOf("ws2", "systemd", verbs()),
		seats.Claim{Seat: "node-desk", Module: "systemd", Node: "ws1", Verbs: verbs()}, seats.Claim{Seat: "node.*", Module: "systemd", Node: "ws1", Verbs: verbs()},
		claimOf("ws1", "systemd", verbs()), claimOf("ws1", "rival", verbs()), claimOf("ws1", "systemd", verbs("start", "stop")),
	))
	run.sync()
	require.Equal(t, []string{"node-service-manager systemd"}, run.holds(), "what is refused changes nothing")

	var reply wire.ClaimReply
	err := run.ask(subject.Claim, wire.ClaimRequest{Wire: wire.Version, Claims: make([]seats.Claim, wire.MaxClaims+1)}, &reply)
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
	require.True(t, fault.Is(run.ask(subject.Claim, wire.ClaimRequest{Wire: 7}, &reply), fault.Unsupported))
	require.True(t, fault.Is(run.ask(subject.Tools, wire.ToolsRequest{Wire: 7}, &reply), fault.Unsupported))
}

// TestNobodyElseMakesASeat: there is nothing that can be asked for one, and what is
// put into the store is none.
func TestNobodyElseMakesASeat(t *testing.T) {
	w := newWorld(t)
	w.join("ws1")
	alice := w.connect(identity.Operator, "alice")
	for _, operation := range []subject.Operation{"seat", "seats", "module", "claim"} {
		_, err := alice.Call(w.within(patience), subject.ForOperation(subject.Write, operation), []byte(`{"wire":1,"name":"node-mine"}`))
		require.True(t, fault.Is(err, fault.Unavailable), "%s: %v", operation, err)
	}
	thief := w.connect(identity.Controller, "thief")
	for _, key := range []string{"seat.node-mine", "module.mine"} {
		_, err := thief.Call(w.within(patience), "$KV.state."+key, []byte(`{"name":"node-mine","seat":{"name":"node-mine"}}`))
		require.NoError(t, err)
	}
	w.apply(w.operator("bob"), service("web", "all: true", "1"))
	run := w.agent("ws1")
	run.sync()
	require.Len(t, run.held.Seats, 1)
	require.Equal(t, []string{"systemd"}, run.modules())
	require.Contains(t, run.claim(seats.Claim{Seat: "node-mine", Module: "systemd", Node: "ws1", Verbs: verbs()})[0], "there is no such seat")
	_, err := controller.New(controller.Options{Dir: w.dir, Logger: quiet(), Seats: []seats.Seat{{Name: "desk", Scope: "mesh"}}})
	require.True(t, fault.Is(err, fault.Invalid), "%v", err)
}

// TestAHolderCountsWhileItsModuleIsAssigned: what a node reports decides it, and
// the seat is free for another then.
func TestAHolderCountsWhileItsModuleIsAssigned(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.start(with(rival()))
	alice := w.operator("alice")
	ws1 := w.join("ws1")
	ws1.tells(can("service-manager"))
	run := w.agent("ws1")
	run.sync()
	require.Equal(t, []string{""}, run.claim(claimOf("ws1", "systemd", verbs())))
	run.sync()
	before := run.held.Revision

	// While its manager does not answer, its host cannot tell, and nothing is taken.
	ws1.tells(func(p *wire.Profile) { p.Systemd, p.Capabilities = "", nil })
	require.True(t, run.sync().Same)

	ws1.tells(can("desk"))
	require.NotNil(t, run.sync().Signed)
	require.Greater(t, run.held.Revision, before, "an assignment is a change of mesh state")
	require.Equal(t, []string{"rival"}, run.modules())
	require.Empty(t, run.holds())
	require.Contains(t, run.claim(claimOf("ws1", "rival", verbs()))[0], `the node does not report "service-manager"`)

	ws1.tells(can("desk", "service-manager"))
	run.sync()
	require.Equal(t, []string{"node-service-manager systemd"}, run.holds(), "it is assigned again, and nobody took it meanwhile")
	w.end()
	w.start(func(o *controller.Options) { o.Modules = []modules.Manifest{rival()} })
	run.sync()
	require.Equal(t, []string{"rival"}, run.modules())
	require.Empty(t, run.holds())
	require.Equal(t, []string{""}, run.claim(claimOf("ws1", "rival", verbs())), "who held it is gone")
	run.sync()
	require.Equal(t, []string{"node-service-manager rival"}, run.holds())

	_, err := alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Remove: true, Yes: true})
	require.NoError(t, err)
	var reply wire.ToolsReply
	err = run.ask(subject.Tools, run.request(), &reply)
	require.True(t, fault.Is(err, fault.Refused), "%v", err)
	require.ErrorContains(t, err, "removed from the mesh by operator alice")
	_, err = alice.Settings(w.within(patience), wire.SettingsRequest{Node: "ws1", Add: true})
	require.NoError(t, err)
	run.sync()
	require.Equal(t, []string{"rival"}, run.modules(), "what it reported is known still")
	require.Empty(t, run.holds(), "claims are forgotten with the node")
}

// TestOneOfTwoClaimantsWins: the claims of two modules reach two controllers.
func TestOneOfTwoClaimantsWins(t *testing.T) {
	w := newWorld(t)
	w.end()
	w.start(with(rival()))
	w.beside2("c2", with(rival()))
	for i := range 8 {
		name := fmt.Sprintf("ws%d", i)
		w.join(name).tells(can("desk", "service-manager"))
		run := w.agent(name)
		run.sync()
		var group sync.WaitGroup
		got := make([]string, 2)
		for k, module := range []string{"systemd", "rival"} {
			group.Go(func() { got[k] = run.claim(claimOf(name, module, verbs()))[0] })
		}
		group.Wait()
		run.sync()
		require.Len(t, run.held.Held, 1)
		held := run.held.Held[0].Module
		for k, module := range []string{"systemd", "rival"} {
			want := ""
			if module != held {
				want = fmt.Sprintf("claim of seat node-service-manager by module %q on node %q refused: module %q holds it", module, name, held)
			}
			require.Equal(t, want, got[k])
		}
		for range 6 { // whichever is asked, it knows
			run.held = wire.Tools{}
			run.sync()
			require.Equal(t, held, run.held.Held[0].Module)
		}
	}
}
