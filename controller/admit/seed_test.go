package admit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/controller/assign"
	"stead/host/fault"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/modules"
	"stead/seats"
)

// desk is a module that declares one unit to be running.
func desk(name, requires, unit string) modules.Manifest {
	return modules.Manifest{Name: name, Version: 1, Meaning: "m", Requires: requires, Declarations: []string{
		fmt.Sprintf("shape: service\nname: %s\nensure: running\n", strings.TrimSuffix(unit, ".service")),
	}}
}

// seed seeds what is built in and these modules.
func (w *world) seed(edition int, more ...modules.Manifest) Decision {
	w.t.Helper()
	d, err := Seed(w.seedBasis(), Catalogue{Edition: edition, Seats: seats.Seeded(), Modules: append(modules.Catalogue(), more...)})
	require.NoError(w.t, err)
	w.commit(d)
	return d
}

func (w *world) seedBasis() Basis {
	b := w.basis()
	b.Who = "controller c1"
	return b
}

// writes are the names of all that a decision writes.
func writes(d Decision) []string {
	var all []string
	for _, s := range d.Seats {
		all = append(all, "seat "+string(s.Name))
	}
	for _, m := range d.Modules {
		all = append(all, "module "+m.Name)
	}
	return append(all, written(d)...)
}

func TestWhatIsBuiltInIsSeededOnce(t *testing.T) {
	w := newWorld(t)
	d := w.seed(1)
	require.Equal(t, []string{"seat node-service-manager", "module systemd"}, writes(d))
	seat := w.state.Seats["node-service-manager"]
	require.Equal(t, assign.Record{Edition: 1, By: "controller c1", At: w.basis().Now, Revision: 11}, seat.Record)
	require.True(t, alike(seats.Seeded()[0], seat.Seat))
	require.Empty(t, writes(w.seed(1)), "it stands so")
	require.Empty(t, writes(w.seed(2)), "a later edition that says the same")
}

func TestWhatDiffersIsWrittenAnew(t *testing.T) {
	w := newWorld(t).node("web1")
	w.seed(1)
	seat := *w.state.Seats["node-service-manager"]
	seat.Meaning = "another"
	w.state.Seats["node-service-manager"] = &seat
	require.Equal(t, []string{"seat node-service-manager"}, writes(w.seed(1)))
	require.NotEqual(t, "another", w.state.Seats["node-service-manager"].Meaning)
	delete(w.state.Modules, "systemd")
	w.state.UnreadableModules["systemd"] = "it is no module"
	require.Equal(t, []string{"module systemd"}, writes(w.seed(1)), "what cannot be read")
	require.Empty(t, w.state.UnreadableModules)
}

func TestWhatLeftTheCatalogueIsTakenOut(t *testing.T) {
	w := newWorld(t).node("web1")
	w.state.Nodes["web1"].Capabilities = []string{"desk"}
	w.seed(1, desk("tray", "desk", "panel.service"))
	require.Equal(t, []string{"tray.panel"}, setOf(w, "web1"))
	d, err := Seed(w.seedBasis(), Catalogue{Edition: 1})
	require.NoError(t, err)
	require.Equal(t, []string{"seat node-service-manager", "module systemd", "module tray", "tray.panel"}, writes(d))
	w.commit(d)
	require.True(t, w.state.Seats["node-service-manager"].Gone)
	require.Empty(t, w.state.Seats["node-service-manager"].Verbs)
	require.True(t, w.state.Modules["tray"].Gone)
	require.Empty(t, setOf(w, "web1"))
	require.Equal(t, wire.Gone, d.Reply.Changes[0].How)
	require.Equal(t, 1, d.Reply.Changes[0].Loses)
	d, err = Seed(w.seedBasis(), Catalogue{Edition: 1})
	require.NoError(t, err)
	require.Empty(t, writes(d), "it is gone already")

	was := w.state.Declarations["tray.panel"]
	d = w.seed(1, desk("tray", "desk", "panel.service"))
	require.Equal(t, []string{"seat node-service-manager", "module systemd", "module tray", "tray.panel"}, writes(d), "it comes back")
	require.Equal(t, was.Generation+1, w.state.Declarations["tray.panel"].Generation, "a name never goes back")
	require.NotEqual(t, was.UID, w.state.Declarations["tray.panel"].UID)
}

func setOf(w *world, node string) []string {
	var names []string
	for _, d := range assign.Place(w.state).Set(node) {
		names = append(names, d.Name)
	}
	return names
}

func TestWhatAModuleDeclaresIsADeclaration(t *testing.T) {
	w := newWorld(t).node("web1").node("web2")
	w.state.Nodes["web1"].Capabilities = []string{"desk"}
	d := w.seed(1, desk("tray", "desk", "panel.service"))
	one := w.state.Declarations["tray.panel"]
	require.Equal(t, assign.Address{Capability: "desk"}, one.Address)
	require.EqualValues(t, 1, one.Generation)
	require.Equal(t, "controller c1", one.By)
	require.Equal(t, "tray.panel", one.Service.Name)
	require.EqualValues(t, "panel.service", one.Service.Unit)
	require.Equal(t, 1, d.Reply.Changes[0].Gains)

	w.seed(1, desk("tray", "", "panel.service"))
	moved := w.state.Declarations["tray.panel"]
	require.Equal(t, assign.Address{All: true}, moved.Address)
	require.Equal(t, []any{one.UID, one.Generation}, []any{moved.UID, moved.Generation}, "only its addressing is another")
	require.Equal(t, []string{"tray.panel"}, setOf(w, "web2"))

	edited := desk("tray", "", "panel.service")
	edited.Declarations[0] += "enabled: true\n---\nshape: service\nname: clock\nensure: running\n"
	w.seed(1, edited)
	require.EqualValues(t, 2, w.state.Declarations["tray.panel"].Generation)
	require.Equal(t, one.UID, w.state.Declarations["tray.panel"].UID)
	require.Equal(t, []string{"tray.clock", "tray.panel"}, setOf(w, "web1"))
	w.seed(1, desk("tray", "", "panel.service"))
	require.True(t, w.state.Declarations["tray.clock"].Withdrawn, "it left the manifest")

	// People's declarations are not a catalogue's business.
	w.landed("shape: service\nname: web\nensure: running\nall: true\n")
	require.Empty(t, writes(w.seed(1, desk("tray", "", "panel.service"))))
	require.Equal(t, []string{"tray.panel", "web"}, setOf(w, "web1"))
}

// TestAnOlderEditionUndoesNothing: controllers of two versions run side by side
// while a mesh is upgraded.
func TestAnOlderEditionUndoesNothing(t *testing.T) {
	w := newWorld(t).node("web1")
	w.seed(1, desk("old", "", "old.service"), desk("both", "", "first.service"))
	w.seed(2, desk("both", "", "second.service"), desk("new", "", "new.service"))
	want := []string{"both.second", "new.new"}
	require.Equal(t, want, setOf(w, "web1"))
	require.Empty(t, writes(w.seed(1, desk("old", "", "old.service"), desk("both", "", "first.service"))))
	require.Equal(t, want, setOf(w, "web1"))

	w.state.UnreadableModules["strange"] = "a later version wrote it"
	orphan := *w.state.Declarations["new.new"]
	services, err := declarations(desk("strange", "", "x.service"))
	require.NoError(t, err)
	orphan.Name, orphan.Service = services[0].Name, services[0]
	w.state.Declarations[orphan.Name] = &orphan
	require.Empty(t, writes(w.seed(1)), "what cannot be read is not known to be gone")
	delete(w.state.UnreadableModules, "strange")
	require.Equal(t, []string{orphan.Name}, writes(w.seed(1)), "and what no module stands for is")
}

func TestACatalogueThatContradictsItselfIsNotSeeded(t *testing.T) {
	verbs := func(names ...subject.Verb) []seats.Verb {
		var all []seats.Verb
		for _, n := range names {
			all = append(all, seats.Verb{Name: n, Class: subject.Read, Arguments: json.RawMessage("{}"), Reply: json.RawMessage("{}")})
		}
		return all
	}
	seat := func(change func(*seats.Seat)) Catalogue {
		s := seats.Seat{Name: "node-x", Scope: seats.NodeScope, Verbs: verbs("a", "b")}
		change(&s)
		return Catalogue{Seats: []seats.Seat{s}}
	}
	module := func(change func(*modules.Manifest)) Catalogue {
		m := desk("tray", "", "panel.service")
		change(&m)
		return Catalogue{Modules: []modules.Manifest{m}}
	}
	for name, c := range map[string]struct {
		catalogue Catalogue
		error     string
	}{
		"no seat of nodes":      {seat(func(s *seats.Seat) { s.Name = "mesh-x" }), `seat "mesh-x" of scope "node" is no seat of nodes`},
		"of another scope":      {seat(func(s *seats.Seat) { s.Scope = "mesh" }), `seat "node-x" of scope "mesh" is no seat of nodes`},
		"a bad name":            {seat(func(s *seats.Seat) { s.Name = "node-*" }), `must be 1 to 63`},
		"no verbs":              {seat(func(s *seats.Seat) { s.Verbs = nil }), `seat "node-x" has no verbs`},
		"verbs out of order":    {seat(func(s *seats.Seat) { s.Verbs = verbs("b", "a") }), `verb "a" of seat "node-x" is not in order`},
		"a verb twice":          {seat(func(s *seats.Seat) { s.Verbs = verbs("b", "b") }), `verb "b" of seat "node-x" is not in order`},
		"a verb of no class":    {seat(func(s *seats.Seat) { s.Verbs[0].Class = "" }), `verb "a" of seat "node-x" neither reads nor acts`},
		"a verb of a bad name":  {seat(func(s *seats.Seat) { s.Verbs[0].Name = "A" }), `must be 1 to 63`},
		"a verb without schema": {seat(func(s *seats.Seat) { s.Verbs[0].Reply = nil }), `verb "a" of seat "node-x" has no schemas`},
		"two seats":             {Catalogue{Seats: append(seats.Seeded(), seats.Seeded()...)}, `seat "node-service-manager" stands twice`},
		"two modules":           {Catalogue{Modules: []modules.Manifest{desk("a", "", "a.service"), desk("a", "", "b.service")}}, `"a" stands twice`},
		"a bad module":          {module(func(m *modules.Manifest) { m.Name = "A" }), "must be a DNS label"},
		"no such seat":          {module(func(m *modules.Manifest) { m.Claims = []subject.Seat{"node-y"} }), `module "tray" claims seat "node-y", and there is none`},
		"a bad declaration":     {module(func(m *modules.Manifest) { m.Declarations[0] += "colour: red\n" }), "colour"},
		"an addressed one":      {module(func(m *modules.Manifest) { m.Declarations[0] += "all: true\n" }), "is addressed"},
		"an empty one":          {module(func(m *modules.Manifest) { m.Declarations[0] = "\n" }), "it declares nothing"},
		"two of one name":       {module(func(m *modules.Manifest) { m.Declarations = append(m.Declarations, m.Declarations[0]) }), `"tray.panel" stands twice`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := Seed(w.seedBasis(), c.catalogue)
			require.ErrorContains(t, err, c.error)
			require.True(t, fault.Is(err, fault.Invalid), "%v", err)
		})
	}
	require.NoError(t, Catalogue{Edition: 1, Seats: seats.Seeded(), Modules: modules.Catalogue()}.Check())
	require.NoError(t, seat(func(*seats.Seat) {}).Check())
	require.NoError(t, module(func(*modules.Manifest) {}).Check())
}

func TestNothingIsSeededIntoAStateThatIsNotSound(t *testing.T) {
	w := newWorld(t)
	w.state.Unsound = fault.New(fault.Failed, "read", "x", nil)
	_, err := Seed(w.seedBasis(), Catalogue{})
	require.True(t, fault.Is(err, fault.Failed))
}

// TestWhatIsSeededIsTheSameWhicheverWayItCame: a catalogue leaves one state behind,
// whatever stood there before.
func TestWhatIsSeededIsTheSameWhicheverWayItCame(t *testing.T) {
	catalogues := [][]modules.Manifest{
		nil, {desk("a", "", "x.service")}, {desk("a", "desk", "x.service"), desk("b", "", "y.service")}, {desk("b", "desk", "z.service")},
	}
	for i := range catalogues {
		for k := range catalogues {
			w := newWorld(t).node("web1")
			w.state.Nodes["web1"].Capabilities = []string{"desk"}
			w.seed(1, catalogues[i]...)
			w.seed(1, catalogues[k]...)
			var want []string
			for _, m := range catalogues[k] {
				services, err := declarations(m)
				require.NoError(t, err)
				for _, s := range services {
					want = append(want, s.Name)
				}
			}
			slices.Sort(want)
			require.Equal(t, want, setOf(w, "web1"), "%d to %d", i, k)
			live := maps.Clone(w.state.Modules)
			maps.DeleteFunc(live, func(_ string, m *assign.Module) bool { return m.Gone })
			require.Len(t, live, len(catalogues[k])+1)
		}
	}
}
