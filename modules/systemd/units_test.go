package systemd

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/wire"
	"stead/seats"
)

// someUnits is a node with units in most states.
func someUnits() *fakeNode {
	idle := service("idle.service").state(unit.Inactive, "dead")
	idle.Enablement = "disabled"
	away := service("away.service").state(unit.Inactive, "dead")
	away.loaded = false
	gone := service("gone.service").state(unit.Inactive, "dead")
	gone.Load, gone.Enablement = unit.NotFound, ""
	ghost := service("ghost.service")
	ghost.Load, ghost.Enablement = unit.NotFound, ""
	f := newFakeNode(service("web.service", "www.service"), service("web-data.mount").state(unit.Active, "mounted"),
		service("bad.service").state(unit.FailedState, "failed"), idle, away, gone, ghost)
	f.files = []unit.ListedFile{
		{Name: "web.service", State: "enabled", Preset: "enabled"}, {Name: "www.service", State: "alias"},
		{Name: "away.service", State: "disabled", Preset: "disabled"}, {Name: "job@.service", State: "static"},
	}
	return f
}

func TestUnitsAreThoseThatSystemctlLists(t *testing.T) {
	r := someUnits().rig(t)
	for _, c := range []struct {
		name string
		a    seats.UnitsArguments
		want []string
	}{
		{"what is up, and what failed", seats.UnitsArguments{}, []string{"bad.service", "ghost.service", "web-data.mount", "web.service"}},
		{"all", seats.UnitsArguments{All: true}, []string{"bad.service", "ghost.service", "gone.service", "idle.service", "web-data.mount", "web.service"}},
		{"states", seats.UnitsArguments{States: []string{"failed", "mounted"}}, []string{"bad.service", "web-data.mount"}},
		{"types", seats.UnitsArguments{Types: []string{"mount"}}, []string{"web-data.mount"}},
		{"a pattern", seats.UnitsArguments{Patterns: []string{"web*"}}, []string{"web-data.mount", "web.service"}},
		{"no such pattern", seats.UnitsArguments{Patterns: []string{"nope*"}}, []string{}},
		{"a name, whatever its state", seats.UnitsArguments{Patterns: []string{"idle.service", "gone.service"}}, []string{"idle.service"}},
		{"a bare name of what is not loaded", seats.UnitsArguments{Patterns: []string{"away"}}, []string{"away.service"}},
		{"a name in another state", seats.UnitsArguments{Patterns: []string{"idle", "bad"}, States: []string{"failed"}}, []string{"bad.service"}},
		{"a name of another type", seats.UnitsArguments{Patterns: []string{"idle", "web*"}, Types: []string{"mount"}}, []string{"web-data.mount"}},
		{"an alias", seats.UnitsArguments{Patterns: []string{"www.service", "web.service"}}, []string{"web.service"}},
		{"no such name", seats.UnitsArguments{Patterns: []string{"nope", "job@.service"}, All: true}, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply, err := r.units(c.a)
			require.NoError(t, err)
			require.Equal(t, c.want, namesIn(reply.Units))
			require.False(t, reply.More)
		})
	}
}

func TestUnitLineSaysWhatSystemdSays(t *testing.T) {
	f := someUnits()
	f.declared = []wire.DeclaredUnit{{Unit: "www.service", Scope: "system", Name: "web", Generation: 3, Ensure: "running", Enabled: truth(true)}}
	long := service("long.service")
	long.Description = "x" + strings.Repeat("ü", 5000)
	f.units["long.service"] = long
	reply, err := f.rig(t).units(seats.UnitsArguments{Patterns: []string{"web.service", "long.service"}})
	require.NoError(t, err)
	require.Equal(t, seats.UnitLine{
		Name: "web.service", Scope: "system", Description: "about web.service", Load: "loaded", Active: "active", Sub: "running",
		Enablement: "enabled", DeclaredBy: &seats.DeclaredBy{Name: "web", Generation: 3, Ensure: "running", Enabled: truth(true)},
	}, reply.Units[1])
	require.Equal(t, "x"+strings.Repeat("ü", 2047)+"…", reply.Units[0].Description)
	require.Nil(t, reply.Units[0].DeclaredBy)
}

func TestDetailsOfUnitsAreSinceAndResult(t *testing.T) {
	f, at := someUnits(), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.units["bad.service"].Since, f.units["bad.service"].Result = &at, "exit-code"
	q := seats.UnitsArguments{States: []string{"failed"}, Details: true}
	reply, err := f.rig(t).units(q)
	require.NoError(t, err)
	require.Equal(t, &at, reply.Units[0].Since)
	require.Equal(t, "exit-code", reply.Units[0].Result)
	q.Details = false
	reply, err = f.rig(t).units(q)
	require.NoError(t, err)
	require.Nil(t, reply.Units[0].Since, "they cost two looks at each unit")
	require.Empty(t, reply.Units[0].Result)
}

func TestDeclaredUnitsAreListedWhateverTheirState(t *testing.T) {
	f := someUnits()
	f.declared = []wire.DeclaredUnit{
		{Unit: "away.service", Scope: "system", Name: "away"}, {Unit: "gone.service", Scope: "system", Name: "gone"},
		{Unit: "nowhere.service", Scope: "system", Name: "nowhere"}, {Unit: "www.service", Scope: "system", Name: "web"},
		{Unit: "idle.service", Scope: "user", Name: "other-scope"}, {Unit: "job@.service", Scope: "system", Name: "job"},
		{Unit: "bad.service", Aliases: []string{"web-data.mount"}, Scope: "system", Name: "bad"},
	}
	r := f.rig(t)
	for _, c := range []struct {
		name string
		a    seats.UnitsArguments
		want []string
	}{
		{"all", seats.UnitsArguments{}, []string{"away.service", "bad.service", "gone.service", "nowhere.service", "web.service"}},
		{"a pattern", seats.UnitsArguments{Patterns: []string{"*w*"}}, []string{"away.service", "nowhere.service", "web.service"}},
		{"a name", seats.UnitsArguments{Patterns: []string{"www", "idle"}}, []string{"web.service"}},
		{"a state", seats.UnitsArguments{States: []string{"not-found"}}, []string{"gone.service", "nowhere.service"}},
		{"a type", seats.UnitsArguments{Types: []string{"mount"}}, []string{}},
		{"files", seats.UnitsArguments{Files: true}, []string{"away.service", "job@.service", "web.service", "www.service"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.a.Declared = true
			reply, err := r.units(c.a)
			require.NoError(t, err)
			require.Equal(t, c.want, namesIn(reply.Units))
			for _, l := range reply.Units {
				require.NotNil(t, l.DeclaredBy, l.Name)
			}
		})
	}
}

func TestUnitFilesAreListed(t *testing.T) {
	f := someUnits()
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web"}}
	r := f.rig(t)
	reply, err := r.units(seats.UnitsArguments{Files: true})
	require.NoError(t, err)
	by := &seats.DeclaredBy{Name: "web"}
	require.Equal(t, []seats.UnitLine{
		{Name: "away.service", Scope: "system", Enablement: "disabled", Preset: "disabled"},
		{Name: "job@.service", Scope: "system", Enablement: "static"},
		{Name: "web.service", Scope: "system", Enablement: "enabled", Preset: "enabled", DeclaredBy: by},
		{Name: "www.service", Scope: "system", Enablement: "alias", DeclaredBy: by},
	}, reply.Units)
	reply, err = r.units(seats.UnitsArguments{Files: true, Patterns: []string{"web", "*@*"}, States: []string{"static", "enabled"}})
	require.NoError(t, err)
	require.Equal(t, []string{"job@.service", "web.service"}, namesIn(reply.Units))
}

func TestManyUnitsComeInPages(t *testing.T) {
	at := time.Now()
	for _, q := range []seats.UnitsArguments{{}, {Files: true}, {Details: true}} {
		t.Run(fmt.Sprintf("files %v, details %v", q.Files, q.Details), func(t *testing.T) {
			f := newFakeNode()
			var want []string
			for i := range 2000 {
				u := service(unit.Name(fmt.Sprintf("%s-%04d.service", strings.Repeat("<n>", 60), i)))
				u.ID = unit.Name(strings.Map(func(r rune) rune {
					if strings.ContainsRune("<>", r) {
						return 'x'
					}
					return r
				}, string(u.ID)))
				u.Description, u.Enablement = strings.Repeat("<", 100), "enabled-runtime"
				u.Since, u.Result = &at, "start-limit-hit"
				f.units[u.ID] = u
				f.files = append(f.files, unit.ListedFile{Name: u.ID, State: "enabled-runtime", Preset: "disabled"})
				want = append(want, string(u.ID))
			}
			r := f.rig(t)
			slices.Sort(want)
			var got []string
			a := q
			for pages := 1; ; pages++ {
				reply, err := r.units(a)
				require.NoError(t, err)
				text, err := json.Marshal(reply)
				require.NoError(t, err)
				require.Less(t, len(text), wire.MaxPage+1<<10)
				got = append(got, namesIn(reply.Units)...)
				require.Equal(t, "system/"+got[len(got)-1], reply.Cursor)
				if a.Cursor = reply.Cursor; !reply.More {
					require.Greater(t, pages, 1)
					break
				}
				require.Greater(t, len(text), wire.MaxPage/2, "a page is full")
			}
			require.Equal(t, want, got)
			reply, err := r.units(a)
			require.NoError(t, err)
			require.Empty(t, reply.Units)
			require.False(t, reply.More)
		})
	}
}

// While units come and go between two pages, those that stay are in one of them.
func TestPagesGoOnBehindAUnitThatIsGone(t *testing.T) {
	f := someUnits()
	delete(f.units, "ghost.service")
	reply, err := f.rig(t).units(seats.UnitsArguments{Cursor: "system/ghost.service"})
	require.NoError(t, err)
	require.Equal(t, []string{"web-data.mount", "web.service"}, namesIn(reply.Units))
}

func TestAListThatCannotBeReadIsAnError(t *testing.T) {
	for method, a := range map[string]seats.UnitsArguments{
		"Units": {}, "Files": {Files: true}, "Enablement": {}, "Stands": {Details: true}, "Named": {Patterns: []string{"web"}},
	} {
		t.Run(method, func(t *testing.T) {
			f := someUnits()
			f.fails[method] = fault.New(fault.Unavailable, "list units", "", errors.New("no connection"))
			_, err := f.rig(t).units(a)
			requireFault(t, err, fault.Unavailable, "list units: no connection", "")
		})
	}
	f := someUnits()
	f.declared = []wire.DeclaredUnit{{Unit: "www.service", Scope: "system", Name: "web"}}
	f.fails["Named"] = fault.New(fault.Unavailable, "list units", "", errors.New("no connection"))
	for _, files := range []bool{false, true} {
		_, err := f.rig(t).units(seats.UnitsArguments{Files: files})
		require.True(t, fault.Is(err, fault.Unavailable), "whose a unit is may not be left out: %v", err)
	}
}

func TestNothingIsDeclaredAndNothingIsAskedForIt(t *testing.T) {
	f := someUnits()
	_, err := f.rig(t).units(seats.UnitsArguments{All: true})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Units": 1, "Enablement": 1}, f.calls)
	f.declared = []wire.DeclaredUnit{{Unit: "web.service", Scope: "system", Name: "web"}}
	_, err = f.rig(t).units(seats.UnitsArguments{All: true})
	require.NoError(t, err)
	require.Zero(t, f.calls["Named"], "a unit that is listed by its own name needs no second look")
}
