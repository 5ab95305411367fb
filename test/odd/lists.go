package odd

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/seats"
)

// list asks for all pages.
func (c comparison) list(a seats.UnitsArguments) []seats.UnitLine {
	c.Helper()
	var out []seats.UnitLine
	a.Scope = c.scope
	for {
		reply, err := answer[seats.UnitsReply](c, seats.Units, a)
		require.NoError(c, err)
		if out = append(out, reply.Units...); !reply.More {
			return out
		}
		a.Cursor = reply.Cursor
	}
}

func (c comparison) units() {
	for _, one := range []struct {
		args string
		a    seats.UnitsArguments
	}{
		{"--all", seats.UnitsArguments{All: true}},
		{"", seats.UnitsArguments{}},
		{"--all *odd*", seats.UnitsArguments{All: true, Patterns: []string{"*odd*"}}},
		{"--type=timer,socket --all", seats.UnitsArguments{All: true, Types: []string{"timer", "socket"}}},
		{"--state=failed", seats.UnitsArguments{States: []string{"failed"}}},
		{"--state=not-found,masked,auto-restart", seats.UnitsArguments{States: []string{"not-found", "masked", "auto-restart"}}},
		{"odd-running.service run-odd.mount", seats.UnitsArguments{Patterns: []string{"odd-running", "run-odd.mount"}}},
	} {
		var got []unit.Listed
		for _, l := range c.list(one.a) {
			got = append(got, unit.Listed{
				Name: unit.Name(l.Name), Description: l.Description, Load: unit.LoadState(l.Load), Active: unit.ActiveState(l.Active), Sub: l.Sub,
			})
			require.Equal(c, c.scope, l.Scope)
			require.Nil(c, l.DeclaredBy)
		}
		want := Units(c.run, strings.Fields(one.args)...)
		for i := range want {
			want[i].Job = unit.Job{} // a list does not tell it
		}
		require.Empty(c, cmp.Diff(want, got, cmpopts.EquateEmpty()), one.args)
	}
	odd := c.list(seats.UnitsArguments{All: true, Patterns: []string{"*odd*"}})
	for _, l := range odd {
		require.Equal(c, strings.TrimSpace(c.run("systemctl", "show", "-P", "UnitFileState", "--", l.Name)), l.Enablement, l.Name)
	}
	require.GreaterOrEqual(c, len(odd), c.least.listed)
}

func (c comparison) files() {
	for _, one := range []struct {
		args string
		a    seats.UnitsArguments
	}{
		{"", seats.UnitsArguments{}},
		{"*odd*", seats.UnitsArguments{Patterns: []string{"*odd*"}}},
		{"--type=timer --type=socket --state=static,disabled", seats.UnitsArguments{Types: []string{"timer", "socket"}, States: []string{"static", "disabled"}}},
	} {
		one.a.Files = true
		var got []unit.ListedFile
		for _, l := range c.list(one.a) {
			got = append(got, unit.ListedFile{Name: unit.Name(l.Name), State: l.Enablement, Preset: l.Preset})
		}
		require.NotEmpty(c, got, one.args)
		require.Empty(c, cmp.Diff(Files(c.run, strings.Fields(one.args)...), got, cmpopts.EquateEmpty()), one.args)
	}
}
