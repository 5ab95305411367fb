package disk

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/plan"
	"stead/host/unit"
)

// thousand is a world of units that stand as declared, with a unit file and a
// link each, and a drop-in where dropins is true.
func thousand(t testing.TB, dropins bool) (*world, []plan.Query, []string) {
	w := newWorld(t, nil)
	// As on a machine: below no root of its own.
	base := w.root
	var search []string
	for _, p := range searchPath() {
		search = append(search, base+p)
	}
	d, err := New(Options{ConfigDir: base + etc, RuntimeDir: base + "/run/systemd/system", UnitPath: search, Kept: base + "/kept"})
	require.NoError(t, err)
	w.Disk, w.root = d, "/"
	etc := base + etc
	var qs []plan.Query
	for i := range 1000 {
		n := unit.Name(fmt.Sprintf("unit-%d.service", i))
		s := enabled(service(n, fmt.Sprintf("[Unit]\nDescription=%d\n%sRestart=always\nUser=nobody\n\n[Install]\nWantedBy=multi-user.target\n", i, plain)), true)
		q := plan.Query{Unit: n, Service: s, Status: unit.Status{Fragment: etc + "/" + string(n)}}
		if dropins {
			s.DropIns = map[string]string{"10-limits.conf": "[Service]\nMemoryMax=1G\n"}
			q.Status.DropIns = []string{etc + "/" + string(n) + ".d/10-limits.conf"}
		}
		qs = append(qs, q)
	}
	return w, qs, w.settle(qs)
}

// settle puts down what is declared, and returns the paths.
func (w *world) settle(qs []plan.Query) (files []string) {
	all, err := w.Look(w.t.Context(), qs)
	require.NoError(w.t, err)
	var cs []plan.Change
	for i, d := range all {
		qs[i].Memory.Found = make(map[string]plan.Entry)
		for _, want := range d.Wants {
			qs[i].Memory.Found[want.Path] = absent()
			files = append(files, want.Path)
			cs = append(cs, plan.Change{Path: want.Path, Entry: want.Entry, Content: want.Content})
		}
	}
	for _, err := range w.Apply(w.t.Context(), cs).Errs {
		require.NoError(w.t, err)
	}
	return files
}

// floor looks at the same files in the plainest way. What is in a drop-in folder
// is not known before it is listed.
func floor(t testing.TB, w *world, files []string) {
	for _, p := range files {
		p = w.at(p)
		if dir := filepath.Dir(p); filepath.Ext(dir) == ".d" {
			_, err := os.ReadDir(dir)
			require.NoError(t, err)
		}
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

func BenchmarkLookThousand(b *testing.B) {
	w, qs, files := thousand(b, true)
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
