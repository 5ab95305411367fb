package systemd

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/subject"
	"stead/mesh/wire"
	"stead/seats"
)

func TestModuleServesEveryVerbOfItsSeat(t *testing.T) {
	var want []subject.Verb
	for _, v := range seats.Seeded()[0].Verbs {
		want = append(want, v.Name)
	}
	slices.Sort(want)
	require.Equal(t, want, newFakeNode().rig(t).d.Served(seats.NodeServiceManager))
}

func TestModuleWithoutWhatItStandsOn(t *testing.T) {
	f := newFakeNode()
	whole := Options{
		Reader: f, User: f, Journal: f, UserJournal: func(uint32) Journal { return f }, Acts: f, Declared: func() []wire.DeclaredUnit { return nil },
	}
	m, err := New(whole)
	require.NoError(t, err)
	require.NotEmpty(t, m.o.UserFolders)
	for _, strip := range []func(*Options){
		func(o *Options) { o.Reader = nil }, func(o *Options) { o.User = nil }, func(o *Options) { o.UserJournal = nil }, func(o *Options) { o.Journal = nil }, func(o *Options) { o.Acts = nil }, func(o *Options) { o.Declared = nil },
	} {
		o := whole
		strip(&o)
		_, err := New(o)
		require.Equal(t, fault.Internal, fault.ClassOf(err))
	}
}

func TestClosestNames(t *testing.T) {
	known := []unit.Name{"web.service", "web.socket", "web-data.mount", "db.service", "getty@.service", "getty@tty1.service", "web.service", "a.service"}
	for name, want := range map[string][]unit.Name{
		"web":             {"web.socket", "web.service", "web-data.mount"},
		"web.timer":       {"web.socket", "web.service", "web-data.mount"},
		"wbe.socket":      {"web.socket", "web.service"},
		"WEB.service":     {"web.service", "web.socket", "web-data.mount"},
		"getty.service":   {"getty@.service", "getty@tty1.service"},
		"dbx.service":     {"db.service"},
		"xy*":             {},
		"*":               {},
		"b.service":       {},
		"data.mount":      {"web-data.mount"},
		"gety*":           {"getty@.service", "getty@tty1.service"},
		"*-data.*":        {"web-data.mount"},
		"[wx]ebdata.":     {},
		"unknown.service": {},
	} {
		require.Equal(t, want, closest(name, known), name)
	}
}

func FuzzClosest(f *testing.F) {
	f.Add("web*", "web.service")
	f.Fuzz(func(t *testing.T, name, other string) {
		known := []unit.Name{"web.service"}
		if unit.CheckName(other) == nil {
			known = append(known, unit.Name(other))
		}
		for _, n := range closest(name, known) {
			require.Contains(t, known, n)
		}
	})
}
