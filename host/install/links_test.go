package install

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

func TestProblems(t *testing.T) {
	const wants = "[Install]\nWantedBy=a.target\n"
	at := func(text string) machine { return on(etc+"/ga.service", text) }
	for _, c := range []struct {
		name string
		disk machine
		ask  unit.Name
		kind Kind
		want []Problem // Text is not compared
	}{
		{"all is well", at(wants), "ga.service", Enableable, nil},
		{"static", at("[Unit]\n"), "ga.service", Static, nil},
		{"a default instance alone is nothing to enable", on(etc+"/gt@.service", "[Install]\nDefaultInstance=a\n"), "gt@.service", Static, nil},
		{"reset to nothing", at(wants + "WantedBy=\n"), "ga.service", Static, nil},
		{"an alias of its own name", at("[Install]\nAlias=ga.service\n"), "ga.service", Enableable, nil},
		{"indirect", at("[Install]\nAlso=gb.service\n"), "ga.service", Indirect, []Problem{{NoUnit, "gb.service", "gb.service", "", false}}},
		{"missing", machine{}, "ga.service", Invalid, []Problem{{NoUnit, "ga.service", "ga.service", "", true}}},
		{"masked", at("-> /dev/null"), "ga.service", Masked, []Problem{{IsMasked, "ga.service", etc + "/ga.service", "", true}}},
		{"generated", on(gen+"/ga.service", wants), "ga.service", Generated, []Problem{{IsGenerated, "ga.service", gen + "/ga.service", "", true}}},
		{"alias", on(etc+"/ga.service", "-> gb.service", etc+"/gb.service", wants), "ga.service", Enableable, []Problem{{IsAlias, "ga.service", etc + "/ga.service", "", true}}},
		{"broken", at(wants + "[Foo"), "ga.service", Invalid, []Problem{{Broken, "ga.service", etc + "/ga.service", "", true}}},
		{"folder", at("dir"), "ga.service", Invalid, []Problem{{Unreadable, "ga.service", etc + "/ga.service", "", true}}},
		{"link to another type", at("-> gb.socket"), "ga.service", Invalid, []Problem{{BadLink, "ga.service", etc + "/ga.service", "", true}}},
		{"bad alias", at("[Install]\nAlias=x.socket\n"), "ga.service", Enableable, []Problem{{BadAlias, "ga.service", "x.socket", "", true}}},
		{"bad names", at("[Install]\nWantedBy=bad a.target\nAlias=y.service"), "ga.service", Enableable, []Problem{{BadName, "ga.service", "bad", "", false}}},
		{"bad specifier", at("[Install]\nWantedBy=%h.target"), "ga.service", Enableable, []Problem{{BadSpecifier, "ga.service", "%h.target", "", true}}},
		{"bad instance", on(etc+"/gt@.service", "[Install]\nDefaultInstance=a/b\n"), "gt@.service", Invalid, []Problem{{BadInstance, "gt@.service", "a/b", "", true}}},
		{"no instance", on(etc+"/gt@.service", wants), "gt@.service", Enableable, []Problem{{NotInstance, "gt@.service", "a.target", "", true}}},
		{"taken", on(etc+"/ga.service", "[Install]\nAlias=x.service\nAlso=gb.service\n", etc+"/gb.service", "[Install]\nAlias=x.service\n"), "ga.service", Enableable, []Problem{{Taken, "gb.service", etc + "/x.service", "", true}}},
		{"masked partner", on(etc+"/ga.service", "[Install]\nAlso=gb.service\n", etc+"/gb.service", ""), "ga.service", Indirect, []Problem{{IsMasked, "gb.service", etc + "/gb.service", "", false}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Links(c.ask, c.disk.options())
			require.NoError(t, err)
			require.Equal(t, c.kind, r.Kind)
			for i := range r.Problems {
				require.NotEmpty(t, r.Problems[i].Text)
				require.Contains(t, r.Problems[i].String(), r.Problems[i].Text)
				r.Problems[i].Text = ""
			}
			require.Empty(t, cmp.Diff(c.want, r.Problems))
			require.Equal(t, slices.ContainsFunc(c.want, func(p Problem) bool { return p.Fatal }), r.Failed())
		})
	}
}

func TestOwnLinksAreToldApart(t *testing.T) {
	m := on(usr+"/ga.service", "-> /opt/g/x", "/opt/g/x", "[Install]\nWantedBy=a.target\nAlias=z.service\nAlso=gb.service\n", etc+"/gb.service", "[Install]\nWantedBy=b.target\n")
	r, err := Links("ga.service", m.options())
	require.NoError(t, err)
	require.Empty(t, r.Problems)
	want := []Link{
		{etc + "/a.target.wants/ga.service", "/opt/g/x", "ga.service", false},
		{etc + "/b.target.wants/gb.service", etc + "/gb.service", "gb.service", false},
		{etc + "/ga.service", "/opt/g/x", "ga.service", true},
		{etc + "/z.service", "/opt/g/x", "ga.service", false},
	}
	require.Empty(t, cmp.Diff(want, r.Links))
	require.Empty(t, cmp.Diff([]Link{want[0], want[3]}, r.Own()))
}

func TestAliasNamesTheUnit(t *testing.T) {
	r, err := Links("ga.service", on(usr+"/ga.service", "-> gb.service", usr+"/gb.service", "[Install]\nWantedBy=b.target\n").options())
	require.NoError(t, err)
	require.Equal(t, unit.Name("gb.service"), r.Name)
	require.Empty(t, cmp.Diff([]Link{{etc + "/b.target.wants/gb.service", lib + "/gb.service", "gb.service", false}}, r.Own()))
}

func TestLookupErrorEndsTheCall(t *testing.T) {
	gone := errors.New("the disk is gone")
	o := on(etc+"/ga.service", "[Install]\nAlso=gb.service\n").options()
	disk := o.Lookup
	for _, failing := range []unit.Name{"ga.service", "gb.service"} {
		o.Lookup = func(n unit.Name) (Unit, bool, error) {
			if n == failing {
				return Unit{}, false, gone
			}
			return disk(n)
		}
		_, err := Links("ga.service", o)
		require.ErrorIs(t, err, gone)
	}
}

func TestUpheldByIsOfVersion254(t *testing.T) {
	o := on(etc+"/ga.service", "[Install]\nUpheldBy=a.target\n").options()
	for version, kind := range map[int]Kind{0: Static, 252: Static, 254: Enableable, 257: Enableable} {
		o.Version = version
		r, err := Links("ga.service", o)
		require.NoError(t, err)
		require.Equal(t, kind, r.Kind)
		for _, l := range r.Links {
			require.Equal(t, etc+"/a.target.upholds/ga.service", l.Path)
		}
	}
}

// presences are links that stand where one to usr/ga.service is wanted, and
// whether they count; the manager's verdict is held against it in
// TestManagerPresence.
var presences = []struct {
	target string
	counts bool
	laxer  bool // the manager lets it count
	is247  bool // the manager of systemd 247 does
}{
	{lib + "/ga.service", true, true, true},
	{usr + "/ga.service", true, true, true},
	{etc + "/ga.service", true, true, false},
	{run + "/ga.service", true, true, false},
	{etc + "/sub/ga.service", true, true, false},
	{"ga.service", true, true, false},
	{"./sub/ga.service", true, true, false},
	{"/usr/../usr/lib/systemd/system//./ga.service", true, true, true},
	{"../../../lib/systemd/system/ga.service", true, true, true},
	{"/opt/g/chain", true, true, true},
	{"/opt/g/ga.service", false, false, false},
	{"/opt/g/nothing", false, false, false},
	{"/etc/systemd/ga.service", false, false, false},
	{"/usr/lib/systemd/user/ga.service", false, false, false},
	{etc + "/gb.service", false, false, false},
	{"gb.service", false, false, false},
	{"gal.service", false, false, false},
	{"/dev/null", false, false, false},
	{"../ga.service", false, true, false},
	{"../../../opt/g/ga.service", false, true, false},
	{"../../nowhere/ga.service", false, true, false},
}

// presence is a disk on which the alias of ga.service leads elsewhere already.
func presence(target string) machine {
	return on(usr+"/ga.service", "[Install]\nAlias=gal.service\n", "/opt/g/ga.service", "x", "/opt/g/chain", "-> "+lib+"/ga.service", etc+"/gal.service", "-> "+target)
}

func TestPresent(t *testing.T) {
	l := Link{Path: etc + "/gal.service", Target: lib + "/ga.service"}
	for _, p := range presences {
		require.Equal(t, p.counts, presence(p.target).options().Present(l, p.target), p.target)
	}
	o := Options{Search: debian12}
	require.False(t, o.Present(l, "/opt/g/chain"), "nil Same: no two paths are one file")
	wants := Link{Path: etc + "/a.target.wants/ga.service", Target: etc + "/ga.service"}
	require.True(t, o.Present(wants, "../ga.service"))
	require.False(t, o.Present(wants, "ga.service"), "it leads to itself")
	instance := Link{Path: etc + "/a.target.wants/gt@a.service", Target: etc + "/gt@.service"}
	require.False(t, o.Present(instance, "../gt@a.service"))
	require.True(t, o.Present(instance, "../gt@.service"))
}

func FuzzInstallSection(f *testing.F) {
	for _, s := range syntax {
		if len(s) < 500 {
			f.Add(s, "ga.service")
		}
	}
	for seed := range uint64(40) {
		s := generate(seed)
		for p, t := range s.disk {
			if strings.HasPrefix(path.Base(p), "g") {
				f.Add(t.text, path.Base(p))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, ask string) {
		if unit.CheckName(ask) != nil {
			return
		}
		n := unit.Name(ask)
		m := on(etc+"/"+string(n.Template()), text, usr+"/gb.service", "[Install]\nWantedBy=b.target\nAlso="+ask+"\n")
		o := m.options()
		o.Specifiers = Specifiers{Hostname: "a.b", MachineID: "0123", Arch: "x86-64", KernelRelease: "6.1/x"}
		for _, o.Version = range []int{247, 252, 257} {
			r, err := Links(n, o)
			require.NoError(t, err)
			again, err := Links(n, o)
			require.NoError(t, err)
			require.Equal(t, r, again)
			for i, l := range r.Links {
				require.Equal(t, path.Clean(l.Path), l.Path)
				require.True(t, below(l.Path, etc))
				require.NoError(t, unit.CheckName(path.Base(l.Path)))
				require.NoError(t, unit.CheckName(string(l.Owner)))
				require.True(t, path.IsAbs(l.Target))
				require.True(t, o.Present(l, l.Target))
				require.True(t, i == 0 || r.Links[i-1].Path < l.Path)
			}
			if r.Kind == Static {
				require.Empty(t, r.Links)
			}
		}
	})
}

func BenchmarkLinks(b *testing.B) {
	o := on(etc+"/ga.service", "[Unit]\nDescription=a\n[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n").options()
	u, _, _ := o.Lookup("ga.service")
	o.Lookup = func(unit.Name) (Unit, bool, error) { return u, true, nil }
	b.ReportAllocs()
	for b.Loop() {
		if r, _ := Links("ga.service", o); len(r.Links) != 1 {
			b.Fatal(r)
		}
	}
}
