package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/shape"
	"stead/host/unit"
)

func TestAdopt(t *testing.T) {
	fresh := func(in *Input) { in.Memory = Memory{} }
	t.Run("what stands as wanted was found", func(t *testing.T) {
		m, wants, changed := Adopt(scene(fresh))
		require.True(t, changed)
		require.Len(t, wants, 2)
		require.Equal(t, map[string]Entry{path: entry("d1"), wants[1].Path: wantLink}, m.Found)
		require.Equal(t, m.Found, m.Wrote)
		require.Equal(t, unit.Active, m.Activity)
		in := scene(func(in *Input) { in.Memory = m })
		_, again, changed := Adopt(in)
		require.Empty(t, again)
		require.False(t, changed)
	})
	t.Run("activity that is not declared is not remembered", func(t *testing.T) {
		m, _, _ := Adopt(scene(fresh, func(in *Input) { in.Service.Ensure = shape.Unmanaged }))
		require.Empty(t, m.Activity)
	})
	for name, change := range map[string]func(*Input){
		"a masked unit":     func(in *Input) { in.Disk.Mask = path },
		"a unit given back": func(in *Input) { in.Service = nil },
	} {
		t.Run(name+" is not taken over", func(t *testing.T) {
			m, wants, changed := Adopt(scene(fresh, change))
			require.False(t, changed)
			require.Empty(t, wants)
			require.Equal(t, Memory{}, m)
		})
	}
}
