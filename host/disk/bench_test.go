package disk

import (
	"crypto/sha256"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/unit"
)

// thousand is a world of units that stand as declared: unit file, one drop-in,
// one link each.
func thousand(t testing.TB) (*world, []plan.Query, []string) {
	w := newWorld(t, nil)
	var qs []plan.Query
	var cs []plan.Change
	var files []string
	for i := range 1000 {
		n := unit.Name(fmt.Sprintf("unit-%d.service", i))
		s := enabled(service(n, fmt.Sprintf("[Unit]\nDescription=%d\n%sRestart=always\nUser=nobody\n\n[Install]\nWantedBy=multi-user.target\n", i, plain)), true)
		s.DropIns = map[string]string{"10-limits.conf": "[Service]\nMemoryMax=1G\n"}
		qs = append(qs, plan.Query{Unit: n, Service: s, Status: unit.Status{Fragment: etc + "/" + string(n), DropIns: []string{etc + "/" + string(n) + ".d/10-limits.conf"}}})
	}
	all, err := w.Look(t.Context(), qs)
	require.NoError(t, err)
	for i, d := range all {
		qs[i].Memory.Found = make(map[string]plan.Entry)
		for _, want := range d.Wants {
			qs[i].Memory.Found[want.Path] = absent()
			files = append(files, want.Path)
			cs = append(cs, plan.Change{Path: want.Path, Entry: want.Entry, Content: want.Content})
		}
	}
	w.apply(cs...)
	return w, qs, files
}

// floor looks at the same files in the plainest way.
func floor(t testing.TB, w *world, files []string) {
	for _, p := range files {
		p = w.at(p)
		st, err := os.Lstat(p)
		require.NoError(t, err)
		if st.Mode()&os.ModeSymlink != 0 {
			_, err = os.Readlink(p)
			require.NoError(t, err)
			continue
		}
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		sha256.Sum256(data)
	}
}

// A look is held against its floor in one run, taking turns, best of many.
func TestLookIsNearItsFloor(t *testing.T) {
	w, qs, files := thousand(t)
	best := func(have *time.Duration, f func()) {
		start := time.Now()
		f()
		*have = min(*have, time.Since(start))
	}
	look, bare := time.Hour, time.Hour
	for range 15 {
		best(&bare, func() { floor(t, w, files) })
		best(&look, func() {
			all, err := w.Look(t.Context(), qs)
			require.NoError(t, err)
			for _, want := range all[999].Wants {
				require.Equal(t, want.Entry, all[999].At[want.Path])
			}
		})
	}
	t.Logf("1,000 units, %d paths: look %v, floor %v, %.2f", len(files), look, bare, float64(look)/float64(bare))
	if !raced {
		require.Less(t, float64(look), 1.25*float64(bare))
	}
}

func BenchmarkLookThousand(b *testing.B) {
	w, qs, files := thousand(b)
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			floor(b, w, files)
		}
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			_, err := w.Look(b.Context(), qs)
			require.NoError(b, err)
		}
	})
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			_, err := w.Look(b.Context(), qs[:1])
			require.NoError(b, err)
		}
	})
}

func BenchmarkApplyThousand(b *testing.B) {
	w := newWorld(b, nil)
	for _, way := range []string{"one by one", "batch"} {
		n := 0
		b.Run(way, func(b *testing.B) {
			for b.Loop() {
				n++
				var cs []plan.Change
				for i := range 1000 {
					cs = append(cs, put(fmt.Sprintf("%s/u%d.service", etc, i), fmt.Sprint(plain, n)))
				}
				w.look(plan.Query{Unit: "u.service", Memory: plan.Memory{Found: paths(cs)}})
				size := len(cs)
				if way == "one by one" {
					size = few
				}
				for len(cs) > 0 {
					w.Apply(b.Context(), cs[:min(size, len(cs))])
					cs = cs[min(size, len(cs)):]
				}
			}
		})
	}
}

func paths(cs []plan.Change) map[string]plan.Entry {
	all := make(map[string]plan.Entry)
	for _, c := range cs {
		all[c.Path] = plan.Entry{}
	}
	return all
}
