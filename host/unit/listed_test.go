package unit

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFilterShowsWhatSystemctlShows(t *testing.T) {
	up := Listed{Name: "a.service", Load: Loaded, Active: Active, Sub: "running"}
	down := Listed{Name: "b.timer", Load: Loaded, Active: Inactive, Sub: "dead"}
	waits := Listed{Name: "c.service", Load: Loaded, Active: Inactive, Sub: "dead", Job: Job{ID: 1, Type: StartJob}}
	second := Listed{Name: "d.device", Load: Loaded, Active: Active, Sub: "plugged", Following: "e.device"}
	for name, c := range map[string]struct {
		f    Filter
		want []Listed
	}{
		"by default":              {Filter{}, []Listed{up, waits}},
		"all":                     {Filter{All: true}, []Listed{up, down, waits, second}},
		"a state":                 {Filter{States: []string{"dead"}}, []Listed{down, waits}},
		"a state and a type":      {Filter{States: []string{"dead", "nope"}, Types: []string{"timer"}}, []Listed{down}},
		"a device's further name": {Filter{States: []string{"plugged"}}, nil},
		"and with all":            {Filter{States: []string{"plugged"}, All: true}, []Listed{second}},
		"a type":                  {Filter{Types: []string{"timer"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []Listed
			for _, u := range []Listed{up, down, waits, second} {
				if c.f.Shows(u) {
					got = append(got, u)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
	require.True(t, Filter{}.Names("a.service"))
	require.True(t, Filter{Patterns: []string{"x", "a.*"}}.Names("a.service"))
	require.False(t, Filter{Patterns: []string{"a"}}.Names("a.service"))
	file := ListedFile{Name: "a.timer", State: "enabled"}
	require.True(t, Filter{Patterns: []string{"a*"}, Types: []string{"timer"}, States: []string{"enabled"}}.ShowsFile(file))
	require.False(t, Filter{States: []string{"static"}}.ShowsFile(file))
	require.False(t, Filter{Types: []string{"path"}}.ShowsFile(file))
}

func TestPresets(t *testing.T) {
	p := ParsePresets("# a comment\n; another\n\nenable a.service\ndisable a.service\n  disable\tb*.service \nignore i.service\nnonsense x.service\nenable\n",
		"enable t@.service one two\nenable u.service x\nenable v@.service\ndisable v@one.service\ndisable *\n")
	for name, want := range map[Name]string{
		"a.service": PresetEnabled, "b.service": PresetDisabled, "bb.service": PresetDisabled, "i.service": PresetIgnored, "x.service": PresetDisabled,
		"t@.service": PresetEnabled, "t@one.service": PresetEnabled, "t@three.service": PresetDisabled,
		"u.service": PresetDisabled, "v@.service": PresetEnabled, "v@one.service": PresetDisabled,
	} {
		require.Equal(t, want, p.Of(name), name)
	}
	require.Equal(t, PresetEnabled, Presets{}.Of("a.service"), "without a rule everything is enabled")
	require.False(t, HasPreset("static"))
	require.True(t, HasPreset("masked"))
}
