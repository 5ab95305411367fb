package systemdtest

import (
	"path/filepath"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// listing are the cases about lists of units and unit files.
func listing() map[string]func(*kit) {
	return map[string]func(*kit){
		"units are listed as systemctl lists them": listsUnits,
		"units are listed by name":                 listsNamed,
		"unit files are listed with their state":   listsFiles,
		"patterns are globs over whole names":      listsPatterns,
	}
}

func (k *kit) units(f unit.Filter) []unit.Name {
	k.t.Helper()
	if f.Patterns == nil {
		f.Patterns = []string{"ct-*"}
	}
	list, err := k.Reader.Units(k.ctx, f)
	require.NoError(k.t, err)
	var names []unit.Name
	for _, u := range list {
		names = append(names, u.Name)
	}
	return names
}

func listsUnits(k *kit) {
	for _, n := range []string{"ct-down.service", "ct-up.service", "ct-bad.service", "ct-wait.service", "ct-gone.service"} {
		k.refer(n)
	}
	k.write("ct-down.service", sleeper)
	k.write("ct-up.service", "[Unit]\nDescription=it is up\n"+sleeper)
	k.write("ct-bad.service", service("ExecStart=/bin/false"))
	k.write("ct-wait.service", service("Type=notify", "NotifyAccess=all", "ExecStart=/bin/sleep infinity"))
	k.write("ct-up.target", "[Unit]\nDescription=t\n")
	k.write("ct-loose.service", sleeper)
	k.reload()
	for _, n := range []unit.Name{"ct-up.service", "ct-bad.service", "ct-up.target"} {
		require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, n))
	}
	k.becomes("ct-bad.service", "fails", failed)
	id := k.job(unit.StartJob, "ct-wait.service")
	k.told("ct-wait.service", func(d unit.Details) bool { return d.Active == unit.Activating })

	require.Equal(k.t, []unit.Name{"ct-bad.service", "ct-up.service", "ct-up.target", "ct-wait.service"}, k.units(unit.Filter{}))
	require.Equal(k.t, []unit.Name{"ct-bad.service", "ct-down.service", "ct-gone.service", "ct-up.service", "ct-up.target", "ct-wait.service"},
		k.units(unit.Filter{All: true}), "what is not kept loaded is not listed")
	require.Equal(k.t, []unit.Name{"ct-up.target"}, k.units(unit.Filter{Types: []string{"target"}}))
	require.Equal(k.t, []unit.Name{"ct-bad.service"}, k.units(unit.Filter{States: []string{"failed"}}))
	require.Equal(k.t, []unit.Name{"ct-down.service", "ct-gone.service"}, k.units(unit.Filter{States: []string{"inactive"}}))
	require.Equal(k.t, []unit.Name{"ct-gone.service", "ct-up.service"}, k.units(unit.Filter{States: []string{"running", "not-found"}}))
	require.Empty(k.t, k.units(unit.Filter{Types: []string{"timer"}, All: true}))

	list, err := k.Reader.Units(k.ctx, unit.Filter{Patterns: []string{"ct-up.service", "ct-wait.service"}})
	require.NoError(k.t, err)
	require.Equal(k.t, []unit.Listed{
		{Name: "ct-up.service", Description: "it is up", Load: unit.Loaded, Active: unit.Active, Sub: "running"},
		{Name: "ct-wait.service", Description: "ct-wait.service", Load: unit.Loaded, Active: unit.Activating, Sub: "start", Job: unit.Job{ID: id, Type: unit.StartJob}},
	}, list)
}

func listsNamed(k *kit) {
	k.write("ct-real.service", sleeper)
	k.link("ct-real.service", "ct-nick.service")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-real.service"))
	got, err := k.Reader.Named(k.ctx, []unit.Name{"ct-nick.service", "ct-none.service", "ct-t@.service", "nonsense", "ct-real.service"})
	require.NoError(k.t, err)
	up := unit.Listed{Name: "ct-real.service", Description: "ct-real.service", Load: unit.Loaded, Active: unit.Active, Sub: "running"}
	require.Equal(k.t, []unit.Listed{
		up,
		{Name: "ct-none.service", Description: "ct-none.service", Load: unit.NotFound, Active: unit.Inactive, Sub: "dead"},
		{Name: "ct-t@.service", Load: unit.LoadFailed, Active: unit.Inactive},
		{Name: "nonsense", Load: unit.LoadFailed, Active: unit.Inactive},
		up,
	}, got)
	got, err = k.Reader.Named(k.ctx, nil)
	require.NoError(k.t, err)
	require.Empty(k.t, got)
}

func listsFiles(k *kit) {
	k.write("ct-on.service", wanted)
	k.write("ct-off.service", wanted)
	k.write("ct-static.service", sleeper)
	k.write("ct-ind.service", sleeper+"[Install]\nAlso=ct-on.service\n")
	k.write("ct-t@.service", sleeper)
	k.write("ct-w@.service", wanted)
	k.link(k.at("ct-w@.service"), "multi-user.target.wants/ct-w@one.service")
	k.link("/dev/null", "ct-masked.service")
	k.link("ct-static.service", "ct-nick.service")
	k.refer("ct-on.service")
	k.reload()
	files, err := k.Reader.Files(k.ctx, unit.Filter{Patterns: []string{"ct-*"}})
	require.NoError(k.t, err)
	file := func(name, state, preset string) unit.ListedFile {
		return unit.ListedFile{Name: unit.Name(name), Path: filepath.Join(k.Dir, name), State: state, Preset: preset}
	}
	require.Equal(k.t, []unit.ListedFile{
		file("ct-ind.service", "indirect", "enabled"), file("ct-masked.service", "masked", "enabled"), file("ct-nick.service", "alias", ""),
		file("ct-off.service", "disabled", "enabled"), file("ct-on.service", "enabled", "enabled"),
		file("ct-static.service", "indirect", "enabled"), // it has a name that it does not ask for
		file("ct-t@.service", "static", ""), file("ct-w@.service", "indirect", "enabled"),
	}, files)
	files, err = k.Reader.Files(k.ctx, unit.Filter{Patterns: []string{"ct-*"}, States: []string{"enabled", "masked"}, Types: []string{"service"}})
	require.NoError(k.t, err)
	require.Len(k.t, files, 2)
	states, err := k.Reader.Enablement(k.ctx, []unit.Name{"ct-on.service", "ct-none.service", "ct-off.service", "ct-nick.service", "ct-t@one.service", "ct-w@one.service", "ct-w@two.service",
		"ct-w@.service", "nonsense", "", "/a/b.service", "ct-none@x.service"})
	require.NoError(k.t, err)
	require.Equal(k.t, []string{"enabled", "", "disabled", "indirect", "static", "enabled", "disabled", "", "", "", "", ""}, states)
}

func listsPatterns(k *kit) {
	names := []string{"ct-a.service", "ct-b.service", "ct-a1.service", `ct-a\x2d.service`, "ct-A.service", "ct-a.target"}
	for _, n := range names {
		k.refer(n)
		k.write(n, "[Unit]\nDescription=x\n"+sleeper)
	}
	k.reload()
	for _, p := range []string{
		"ct-*", "ct-?.service", "ct-[ab].service", "ct-[!a]*.service", "ct-[^a]*", "ct-[a-b]*", "ct-[[:upper:]].*", "ct-a[0-9].service", "ct-a[[:digit:]]*",
		`ct-a\*`, `ct-a\x2d.service`, "ct-", "ct-*.target", "*a.s*", "ct-[a.service", "ct-[]a].service", "ct-[a-].service", "ct-**.service", "ct-[z-a]*",
	} {
		var want []unit.Name
		for _, n := range []string{"ct-A.service", "ct-a.service", "ct-a.target", "ct-a1.service", `ct-a\x2d.service`, "ct-b.service"} {
			if unit.Match(p, n) {
				want = append(want, unit.Name(n))
			}
		}
		require.Equal(k.t, want, k.units(unit.Filter{All: true, Patterns: []string{p, "ct-none*"}}), p)
	}
}
