package shape

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

func one(t *testing.T, doc string) *Declaration {
	t.Helper()
	services, problems := Parse("f", []byte(doc))
	require.Empty(t, problems, doc)
	require.Len(t, services, 1)
	return services[0]
}

const full = `shape: service
name: web
unit: web.service
content: |
  [Service]
  ExecStart=/usr/bin/web <a> & "b"
dropins:
  10-a.conf: "[Service]\nMemoryMax=1G\n"
  20-b.conf: "#\n"
ensure: running
enabled: true
timeout: 2m
on_withdraw: restore
`

// every has what the second version of the vocabulary brought.
const every = head + `scope: user
masked: false
ensure: restarted
on_change: reload_or_restart
triggers: [/etc/b, /etc/a]
`

func TestCanonicalOfTheSecondVersionIsPinned(t *testing.T) {
	require.Equal(t, `{"ensure":"restarted","masked":false,"name":"web","on_change":"reload_or_restart","on_withdraw":"restore","scope":"user","shape":"service","timeout":"2m0s",`+
		`"triggers":["/etc/a","/etc/b"],"unit":"web.service"}`, string(one(t, every).Canonical()))
	require.Equal(t, []string{"/etc/a", "/etc/b"}, one(t, every).Triggers)
	require.Equal(t, one(t, every).Digest(), one(t, strings.Replace(every, "[/etc/b, /etc/a]", "[/etc/a, /etc/b]", 1)).Digest(), "in any order")
}

// third has what the third version brought.
const third = head + `ensure: running
daemon_reload: never
provider: systemd
sensitive: true
triggers: [file:app-config, /etc/a]
`

func TestCanonicalOfTheThirdVersionIsPinned(t *testing.T) {
	require.Equal(t, `{"daemon_reload":"never","ensure":"running","name":"web","on_withdraw":"restore","provider":"systemd","scope":"system","sensitive":true,"shape":"service","timeout":"2m0s",`+
		`"triggers":["/etc/a","file:app-config"],"unit":"web.service"}`, string(one(t, third).Canonical()))
	require.True(t, one(t, third).Sensitive)
	require.True(t, IsSensitive(one(t, third).Canonical()))
}

func TestCanonicalIsPinned(t *testing.T) {
	const want = `{"content":"[Service]\nExecStart=/usr/bin/web <a> & \"b\"\n","dropins":{"10-a.conf":"[Service]\nMemoryMax=1G\n","20-b.conf":"#\n"},` +
		`"enabled":true,"ensure":"running","name":"web","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"web.service"}`
	require.Equal(t, want, string(one(t, full).Canonical()))
	require.Equal(t, "31be40b462a33912410b230348b45bf7fccf86735b27fb56616880291711debc", one(t, full).Digest())
	require.Equal(t, `{"ensure":"stopped","name":"a","on_withdraw":"restore","scope":"system","shape":"service","timeout":"2m0s","unit":"a.service"}`,
		string(one(t, "shape: service\nname: a\nensure: stopped\n").Canonical()))
}

func TestDigestIsThatOfTheMeaning(t *testing.T) {
	digest := one(t, full).Digest()
	for name, doc := range map[string]string{
		"another order": "on_withdraw: restore\ntimeout: 2m\nenabled: true\nensure: running\ndropins:\n  20-b.conf: \"#\\n\"\n  10-a.conf: |\n    [Service]\n    MemoryMax=1G\n" +
			"content: \"[Service]\\nExecStart=/usr/bin/web <a> & \\\"b\\\"\\n\"\nunit: web\nname: 'web'\nshape: \"service\"\n",
		"without defaults":    strings.NewReplacer("unit: web.service\n", "", "timeout: 2m\n", "", "on_withdraw: restore\n", "").Replace(full),
		"null is absent":      strings.NewReplacer("unit: web.service", "unit: ~", "timeout: 2m", "timeout:", "on_withdraw: restore", "on_withdraw: null").Replace(full),
		"another spelling":    strings.NewReplacer("timeout: 2m", "timeout: 120s").Replace(full),
		"its old name":        strings.Replace(full, "ensure:", "state:", 1),
		"the scope":           full + "scope: system\n",
		"the new defaults":    full + "daemon_reload: auto\nprovider: auto\nsensitive: false\n",
		"null is absent, too": full + "masked: ~\non_change: ~\ntriggers: ~\nscope: ~\nstate: ~\n",
		"addressed":           full + "nodes: [ws1]\n",
		"addressed to labels": full + "labels: {role: web}\n",
		"comments and place":  "---\n---\n# x\n" + full + "# y\n",
	} {
		require.Equal(t, digest, one(t, doc).Digest(), name)
	}
	seen := map[string]string{digest: "full"}
	for name, doc := range map[string]string{
		"name":            strings.Replace(full, "name: web", "name: web2", 1),
		"unit":            strings.Replace(full, "web.service", "web2.service", 1),
		"content":         strings.Replace(full, "/usr/bin/web", "/usr/bin/web2", 1),
		"content's end":   strings.Replace(full, "content: |", "content: |-", 1),
		"drop-in":         strings.Replace(full, "1G", "2G", 1),
		"drop-in's name":  strings.Replace(full, "20-b", "21-b", 1),
		"no drop-in":      strings.Replace(full, "  20-b.conf: \"#\\n\"\n", "", 1),
		"ensure":          strings.Replace(full, "running", "stopped", 1),
		"no ensure":       strings.Replace(full, "ensure: running\n", "", 1),
		"enabled":         strings.Replace(full, "enabled: true", "enabled: false", 1),
		"no enabled":      strings.Replace(full, "enabled: true\n", "", 1),
		"timeout":         strings.Replace(full, "2m", "2m1ms", 1),
		"on_withdraw":     strings.Replace(full, "restore", "release", 1),
		"scope":           full + "scope: user\n",
		"masked":          full + "masked: false\n",
		"on_change":       full + "on_change: reload\n",
		"none on change":  full + "on_change: none\n",
		"triggers":        full + "triggers: [/etc/a]\n",
		"other triggers":  full + "triggers: [/etc/a, /etc/b]\n",
		"daemon_reload":   full + "daemon_reload: never\n",
		"provider":        full + "provider: systemd\n",
		"sensitive":       full + "sensitive: true\n",
		"a file cited":    full + "triggers: [file:a]\n",
		"content is gone": full[:strings.Index(full, "content")] + full[strings.Index(full, "dropins"):],
	} {
		d := one(t, doc).Digest()
		require.NotContains(t, seen, d, name)
		seen[d] = name
	}
}

func TestFromCanonicalReadsWhatCanonicalWrote(t *testing.T) {
	for _, doc := range []string{full, every, third, conf, head + "ensure: stopped\n", head + "content: \"a=\\u2028b\\x7f\\e<&>\"\nnodes: [a]\n"} {
		s := one(t, doc)
		got, err := FromCanonical(s.Canonical())
		require.NoError(t, err)
		s.Nodes, s.Origin = nil, Origin{}
		require.Empty(t, cmp.Diff(s, got))
	}
}

func TestFromCanonicalRefusesWhatCanonicalWouldNotWrite(t *testing.T) {
	good := string(one(t, head+"ensure: running\nenabled: true\n").Canonical())
	for name, c := range map[string]struct{ old, new, err string }{
		"cut":               {"}", "", "unexpected EOF"},
		"a later field":     {`{"enabled"`, `{"secret":true,"enabled"`, `unknown field "secret"`},
		"a default":         {`"shape"`, `"sensitive":false,"shape"`, "not in canonical form"},
		"a default's word":  {`"enabled"`, `"daemon_reload":"auto","enabled"`, "not in canonical form"},
		"another provider":  {`"scope"`, `"provider":"launchd","scope"`, `"launchd" is no provider`},
		"another order":     {`"ensure":"running","name":"web"`, `"name":"web","ensure":"running"`, "not in canonical form"},
		"blank":             {`{"enabled"`, `{ "enabled"`, "not in canonical form"},
		"something behind":  {"}", "}\n", "not in canonical form"},
		"other shape":       {`"service","timeout"`, `"socket","timeout"`, "not in canonical form"},
		"other scope":       {`"system"`, `"session"`, `"session" is no value of this field`},
		"no scope":          {`"system"`, `""`, "is no value of this field"},
		"protected there":   {`"system","shape":"service","timeout":"2m0s","unit":"web.service"`, `"user","shape":"service","timeout":"2m0s","unit":"exit.target"`, "ends the account's manager"},
		"masked and so on":  {`,"name"`, `,"masked":true,"name"`, "a masked unit does not run"},
		"triggers mixed up": {`,"unit"`, `,"triggers":["/b","/a"],"unit"`, "not in canonical form"},
		"no triggers":       {`,"unit"`, `,"triggers":[],"unit"`, "0 paths are named"},
		"a bad trigger":     {`,"unit"`, `,"triggers":["a"],"unit"`, "is no absolute path"},
		"its old name":      {`"ensure"`, `"state"`, `unknown field "state"`},
		"other spelling":    {"2m0s", "120s", "not in canonical form"},
		"no duration":       {"2m0s", "soon", "invalid duration"},
		"out of bounds":     {"2m0s", "25h0m0s", "25h0m0s is out of bounds"},
		"protected":         {"web.service", "dbus.service", "is protected"},
		"bad value":         {"running", "failed", "no value of this field"},
		"name in two cases": {`"name"`, `"NAME"`, "not in canonical form"},
	} {
		_, err := FromCanonical([]byte(strings.Replace(good, c.old, c.new, 1)))
		require.ErrorContains(t, err, c.err, name)
		require.True(t, fault.Is(err, fault.Invalid), name)
	}
}

func TestAliasesAreThoseOfTheDeclaredFiles(t *testing.T) {
	s := one(t, head+"content: |\n  [Install]\n  Alias=b.service %p-x.service web.service\n  Alias=b.service /x %H.service\ndropins:\n  a.conf: |\n    [Install]\n    Alias=a.service\n")
	require.Equal(t, []unit.Name{"a.service", "b.service", "web-x.service"}, s.Aliases())
	require.Empty(t, one(t, head+"ensure: running\n").Aliases())
}
