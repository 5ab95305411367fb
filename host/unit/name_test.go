package unit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
)

// names are unit names and whether systemd takes them.
var names = []struct {
	name string
	good bool
}{
	{"web.service", true},
	{"a.service", true},
	{"x@.service", true},
	{"x@one.service", true},
	{"a@b@c.service", true},
	{"a@.b.service", true},
	{"a@@.service", true},
	{"a..service", true},
	{"..service", true},
	{".a.service", true},
	{"a.b.service", true},
	{"a.service.service", true},
	{`dev-disk\x2dby.swap`, true},
	{`\.service`, true},
	{"_:.timer", true},
	{"1.path", true},
	{"-.slice", true},
	{"-.mount", true},
	{"a-b-c.slice", true},
	{"x.device", true},
	{"x.scope", true},
	{"x.automount", true},
	{"x.swap", true},
	{"x.socket", true},
	{"x.target", true},
	{strings.Repeat("x", 247) + ".service", true},
	{strings.Repeat("x", 248) + ".service", false},
	{strings.Repeat("x", 300) + ".service", false},
	{"foo", false},
	{".service", false},
	{"@.service", false},
	{"@a.service", false},
	{"a.", false},
	{"a.b", false},
	{"a.services", false},
	{"a.SERVICE", false},
	{"a.snapshot", false},
	{"a.busname", false},
	{"service", false},
	{"a/b.service", false},
	{"/etc/systemd/system/a.service", false},
	{"../a.service", false},
	{"a b.service", false},
	{" a.service", false},
	{"a.service ", false},
	{"a.service\n", false},
	{"ä.service", false},
	{"a%i.service", false},
	{"a*.service", false},
	{"a,b.service", false},
	{"a+b.service", false},
	{"a~.service", false},
	{"a\x7f.service", false},
}

func TestCheckName(t *testing.T) {
	for _, n := range names {
		t.Run(n.name, func(t *testing.T) {
			err := CheckName(n.name)
			require.Equal(t, n.good, err == nil, "%v", err)
			got, err := ParseName(n.name)
			if n.good {
				require.NoError(t, err)
				require.Equal(t, Name(n.name), got)
			} else {
				require.Equal(t, fault.Invalid, fault.ClassOf(err))
				require.Empty(t, got)
			}
		})
	}
}

func TestParseNameSaysWhichRule(t *testing.T) {
	for name, rule := range map[string]string{
		"":                          `unit name: "": it is empty`,
		"/lib/a.service":            "it is a path",
		"--now.service":             "looks like an option",
		"-a.service":                "looks like an option",
		strings.Repeat("x", 256):    "256 bytes; systemd takes at most 255",
		"web":                       "no suffix of a unit type",
		"web.conf":                  `".conf" is not a unit type`,
		".service":                  "nothing before the suffix",
		"@x.service":                "nothing before",
		"w\u00e9b.service":          `byte 1 ("\xc3") is not allowed`,
		strings.Repeat("/", 400):    `…`,
		strings.Repeat("x\n", 1000): "2000 bytes",
	} {
		_, err := ParseName(name)
		if rule == "…" {
			require.Less(t, len(err.Error()), 500)
			continue
		}
		require.ErrorContains(t, err, rule)
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct {
		name               Name
		template, instance bool
		prefix, stem, inst string
		of                 Name
		kind               string
	}{
		{"web.service", false, false, "web", "web", "", "web.service", "service"},
		{"x@.service", true, false, "x", "x@", "", "x@.service", "service"},
		{"x@one.timer", false, true, "x", "x@one", "one", "x@.timer", "timer"},
		{"x@a@b.service", false, true, "x", "x@a@b", "a@b", "x@.service", "service"},
		{"x@.b.service", false, true, "x", "x@.b", ".b", "x@.service", "service"},
		{"a.b.service", false, false, "a.b", "a.b", "", "a.b.service", "service"},
		{"-.slice", false, false, "-", "-", "", "-.slice", "slice"},
	} {
		t.Run(string(c.name), func(t *testing.T) {
			n := c.name
			require.Equal(t, c.template, n.IsTemplate())
			require.Equal(t, c.instance, n.IsInstance())
			require.Equal(t, c.prefix, n.Prefix())
			require.Equal(t, c.stem, n.Stem())
			require.Equal(t, c.inst, n.Instance())
			require.Equal(t, c.of, n.Template())
			require.Equal(t, c.kind, n.Type())
		})
	}
	require.Equal(t, Name("x@one.service"), Name("x@.service").WithInstance("one"))
}

func TestCheckInstance(t *testing.T) {
	for _, s := range []string{"one", "a@b", ".", `a\x2db`, "a:b_c-d"} {
		require.NoError(t, CheckInstance(s))
	}
	for _, s := range []string{"", "a/b", "a b", "ä", "%i", "a\n"} {
		require.Error(t, CheckInstance(s))
	}
}

func FuzzParseName(f *testing.F) {
	for _, n := range names {
		f.Add(n.name)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
			require.Less(t, len(err.Error()), 2000)
			return
		}
		require.NoError(t, CheckName(s))
		require.Equal(t, s, n.Stem()+"."+n.Type())
		require.False(t, n.IsTemplate() && n.IsInstance())
		require.NoError(t, CheckName(string(n.Template())))
		if n.IsInstance() {
			require.NoError(t, CheckInstance(n.Instance()))
			require.Equal(t, n, n.Template().WithInstance(n.Instance()))
		}
	})
}

func TestFullAddsTheTypeThatPeopleLeaveOut(t *testing.T) {
	for name, want := range map[string]string{
		"web": "web.service", "web.service": "web.service", "a.timer": "a.timer", "x@1": "x@1.service", "web.conf": "web.conf.service",
		"": "", "w*": "w*", "../web": "../web", "-a": "-a.service",
	} {
		require.Equal(t, want, Full(name), "%q", name)
	}
}
