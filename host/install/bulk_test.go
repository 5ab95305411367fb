package install_test

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/disk"
	"stead/host/install"
	"stead/host/plan"
	"stead/host/shape"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/test/lab"
)

const etc = "/etc/systemd/system"

var units = flag.Int("units", 1000, "how many units to generate at once")

// kept are seeds of units of which once another link was wanted than systemd makes: one in each line. A run that finds more adds them.
//
//go:embed testdata/seeds
var kept string

const found = "/tmp/seeds"

// TestLinksOfAThousandUnits lays out generated units side by side: what host/disk says that shall stand for each is what the manager makes when it is asked to enable it.
func TestLinksOfAThousandUnits(t *testing.T) {
	if !*install.Inside {
		n := lab.Start(t, lab.Options{})
		n.RunTest(t, lab.Self(t), "-test.run", "^"+t.Name()+"$", "-inside", fmt.Sprintf("-seed=%d", *install.Seed), fmt.Sprintf("-units=%d", *units))
		if more, err := n.ReadFile(found); err == nil {
			require.NoError(t, os.WriteFile("testdata/seeds", append([]byte(kept), more...), 0o644))
		}
		return
	}
	scenes := generated(t)
	before := links(t)
	m := manager(t)
	wanted := wants(t, m, scenes, before)
	failed := 0
	for _, s := range scenes {
		if _, err := m.Enable(t.Context(), []unit.Name{s.Ask}); err != nil {
			failed++
		}
	}
	after := links(t)
	made, wrong := 0, ""
	for _, s := range scenes {
		seed := strconv.FormatUint(s.Seed, 10)
		want, is := wanted[s.Seed], after[seed]
		made += len(is) - len(before[seed])
		for p := range want {
			if old, there := before[seed][p]; there && old == is[p] && sameFile(p, old, want[p]) {
				want[p] = old // the manager leaves what leads to the same file by another way, ours may write it anew
			}
		}
		if _, stood := before[seed][etc+"/"+string(s.Ask)]; s.Nothing && !stood {
			delete(is, etc+"/"+string(s.Ask)) // the manager brings a unit that has nothing to enable into its search path; ours refuses to enable it
		}
		if diff := cmp.Diff(is, want); diff != "" && len(is)+len(want) > 0 {
			wrong += seed + "\n"
			t.Errorf("seed %s: %v\n(-systemd +ours)\n%s", seed, s, diff)
		}
	}
	fmt.Printf("%d links of %d units compared from seed %d on, systemd %d; %d calls answered with an error, seeds that differ: %q\n",
		made, len(scenes), *install.Seed, install.Version(t), failed, strings.Fields(wrong))
	require.Greater(t, made, len(scenes))
	require.Less(t, failed, len(scenes)*2/3)
	if wrong != "" {
		require.NoError(t, os.WriteFile(found, []byte(wrong), 0o644))
	}
}

// generated writes the scenes of the kept seeds and of as many as asked for.
func generated(t *testing.T) []install.Placed {
	first := *install.Seed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1e12
	}
	var seeds []uint64
	for word := range strings.FieldsSeq(kept) {
		s, err := strconv.ParseUint(word, 10, 64)
		require.NoError(t, err)
		seeds = append(seeds, s)
	}
	for i := range *units {
		seeds = append(seeds, first+uint64(i))
	}
	slices.Sort(seeds)
	var scenes []install.Placed
	for _, s := range slices.Compact(seeds) {
		p := install.Place(s)
		require.NoError(t, p.Write(), "seed %d", s)
		scenes = append(scenes, p)
	}
	return scenes
}

func manager(t *testing.T) *systemd.Manager {
	m, err := systemd.New(systemd.Options{Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- m.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	require.Eventually(t, m.Connected, 10*time.Second, time.Millisecond)
	return m
}

// wants asks host/disk about all units, and returns which links there are, beside those that are there before, when what it says was done.
func wants(t *testing.T, m *systemd.Manager, scenes []install.Placed, before map[string]map[string]string) map[uint64]map[string]string {
	search, err := m.UnitPath(t.Context())
	require.NoError(t, err)
	facts, err := disk.HostSpecifiers("/")
	require.NoError(t, err)
	d, err := disk.New(disk.Options{UnitPath: search, Specifiers: facts, Version: install.Version(t)})
	require.NoError(t, err)
	yes := true
	var queries []plan.Query
	for _, s := range scenes {
		queries = append(queries, plan.Query{Unit: s.Ask, Service: &shape.Service{Name: "x", Unit: s.Ask, Enabled: &yes}})
	}
	looks, err := d.Look(t.Context(), queries)
	require.NoError(t, err)
	all := make(map[uint64]map[string]string)
	is257 := install.Version(t) >= 254 // it replaces links that lead nowhere
	for i, s := range scenes {
		is := map[string]string{}
		maps.Copy(is, before[strconv.FormatUint(s.Seed, 10)])
		for _, w := range looks[i].Wants {
			_, link := is[w.Path]
			_, gone := os.Stat(w.Path)
			if link && path.Dir(w.Path) == etc && !(is257 && errors.Is(gone, fs.ErrNotExist)) || !link && s.Stands(w.Path) {
				continue // the manager takes nothing away for an alias
			}
			is[w.Path] = w.Entry.Target
		}
		all[s.Seed], scenes[i].Nothing = install.Spelled(is), !looks[i].Text.HasInstall
	}
	return all
}

// links are all links below the configuration folder, by the seed whose they are.
func links(t *testing.T) map[string]map[string]string {
	all := map[string]map[string]string{}
	require.NoError(t, filepath.WalkDir(etc, func(p string, d os.DirEntry, err error) error {
		if target, no := os.Readlink(p); err == nil && no == nil {
			seed := install.SeedOf(strings.TrimPrefix(p, etc))
			if all[seed] == nil {
				all[seed] = map[string]string{}
			}
			all[seed][p] = target
		}
		return err
	}))
	for _, of := range all {
		install.Spelled(of)
	}
	return all
}

// sameFile reports whether two targets of a link at p lead to one file.
func sameFile(p, a, b string) bool {
	var ends [2]string
	for i, target := range []string{a, b} {
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(p), target)
		}
		var err error
		if ends[i], err = filepath.EvalSymlinks(target); err != nil {
			return false
		}
	}
	return ends[0] == ends[1]
}
