package shape

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

const fileHead = "shape: file\nname: app-config\n"

// conf has every field of a declared file.
const conf = fileHead + `path: /etc/app.toml
content: |
  port = 80
mode: 0640
owner: www-data
group: adm
sensitive: true
on_withdraw: release
nodes: [web1]
`

const homely = fileHead + "path: ~/.config/app.toml\nscope: user\ncontent: \"\"\n"

func TestCanonicalOfAFileIsPinned(t *testing.T) {
	f := one(t, conf)
	require.Equal(t, "file:app-config", f.Name)
	require.Equal(t, FileShape, f.Shape())
	require.Equal(t, unit.Name("/etc/app.toml"), f.Object())
	require.Equal(t, fs.FileMode(0o640), f.File.Mode)
	require.Equal(t, `{"content":"port = 80\n","group":"adm","mode":"0640","name":"app-config","on_withdraw":"release","owner":"www-data","path":"/etc/app.toml","scope":"system","sensitive":true,"shape":"file"}`,
		string(f.Canonical()))
	require.Equal(t, `{"content":"","mode":"0644","name":"app-config","on_withdraw":"restore","path":"~/.config/app.toml","scope":"user","shape":"file"}`, string(one(t, homely).Canonical()))
	require.Equal(t, `{"content":"a","mode":"0644","name":"app-config","on_withdraw":"restore","owner":"root","path":"/etc/a","scope":"system","shape":"file"}`,
		string(one(t, fileHead+"path: /etc/a\ncontent: a\n").Canonical()))
	require.Equal(t, fs.FileMode(0o600), one(t, fileHead+"path: /etc/a\ncontent: a\nsensitive: true\n").File.Mode, "a secret is nobody else's")
	for _, mode := range []string{"0644", "'0644'", `"0644"`} {
		require.Equal(t, fs.FileMode(0o644), one(t, fileHead+"path: /etc/a\ncontent: a\nmode: "+mode+"\n").File.Mode)
	}
}

func TestDigestOfAFileIsThatOfItsMeaning(t *testing.T) {
	seen := map[string]string{}
	for name, doc := range map[string]string{
		"conf": conf, "path": strings.Replace(conf, "app.toml", "b.toml", 1), "content": strings.Replace(conf, "80", "81", 1), "mode": strings.Replace(conf, "0640", "0600", 1),
		"owner": strings.Replace(conf, "owner: www-data", "owner: root", 1), "no group": strings.Replace(conf, "group: adm\n", "", 1),
		"public": strings.Replace(conf, "sensitive: true", "sensitive: false", 1), "withdraw": strings.Replace(conf, "release", "restore", 1), "name": strings.Replace(conf, "app-config", "b", 1),
	} {
		d := one(t, doc).Digest()
		require.NotContains(t, seen, d, name)
		seen[d] = name
	}
	require.Equal(t, one(t, conf).Digest(), one(t, strings.Replace(conf, "nodes: [web1]", "all: true", 1)).Digest(), "addressing is no part of it")
	plain := one(t, fileHead+"path: /etc/a\ncontent: a\n")
	require.Equal(t, plain.Digest(), one(t, fileHead+"path: /etc/a\ncontent: a\nmode: '0644'\nowner: root\nscope: system\nsensitive: ~\n").Digest(), "nor are defaults")
}

func TestParseRefusesBadFiles(t *testing.T) {
	const (
		at       = fileHead + "content: a\npath: "
		with     = fileHead + "content: a\npath: /etc/a\n"
		another  = "declare another path"
		homes    = "/home"
		unitCure = "declare it as a service: content is its unit file, dropins are its drop-ins"
		absolute = "write the absolute path of a file, such as /etc/web.conf"
		nameOf   = "write the name that the node knows it by, such as www-data; numbers are not taken"
		below    = "write ~/ and what follows the home, such as ~/.config/web.conf, or scope: system"
	)
	refused(t, map[string]bad{
		"no path":           {fileHead + "content: a\n", 1, "file:app-config.path", "missing", "write where the file stands, such as /etc/web.conf"},
		"no content":        {fileHead + "path: /etc/a\ncontent: ~\n", 4, "file:app-config.content", "missing", `write what the file holds; "" is an empty file`},
		"relative":          {at + "etc/a\n", 4, "file:app-config.path", `"etc/a" is no absolute path`, absolute},
		"dots":              {at + "/etc/../etc/a\n", 4, "file:app-config.path", `"/etc/../etc/a" is not written out`, "write /etc/a"},
		"slash at the end":  {at + "/etc/a/\n", 4, "file:app-config.path", `"/etc/a/" is not written out`, "write /etc/a"},
		"the root":          {at + "/\n", 4, "file:app-config.path", `"/" is a folder`, "write the path of a file"},
		"a unit file":       {at + "/etc/systemd/system/web.service\n", 4, "file:app-config.path", `"/etc/systemd/system/web.service" is protected: systemd reads units there`, unitCure},
		"a drop-in":         {at + "/run/systemd/system/web.service.d/a.conf\n", 4, "file:app-config.path", `"/run/systemd/system/web.service.d/a.conf" is protected: systemd reads units there`, unitCure},
		"a vendor's unit":   {at + "/usr/lib/systemd/system/web.service\n", 4, "file:app-config.path", `"/usr/lib/systemd/system/web.service" is protected: systemd reads units there`, unitCure},
		"stead's own":       {at + "/etc/stead/declarations/a.yaml\n", 4, "file:app-config.path", `"/etc/stead/declarations/a.yaml" is protected: it is stead's own`, another},
		"stead's program":   {at + "/usr/local/bin/stead\n", 4, "file:app-config.path", `"/usr/local/bin/stead" is protected: it is stead's own`, another},
		"stead's state":     {at + "/var/lib/stead-controller/a\n", 4, "file:app-config.path", `"/var/lib/stead-controller/a" is protected: it is stead's own`, another},
		"above stead's own": {at + "/var/lib\n", 4, "file:app-config.path", `"/var/lib" is protected: it is stead's own`, another},
		"a device":          {at + "/dev/null\n", 4, "file:app-config.path", `"/dev/null" is protected: the kernel's file system holds no files that last`, another},
		"a home":            {at + homes + "/opal/a\n", 4, "file:app-config.path", `"` + homes + `/opal/a" is protected: it is below a home, where the system writes nothing`, "write scope: user, and the path from ~/ on"},
		"no scope":          {at + "~/a\n", 4, "file:app-config.path", `"~/a" is below a home, and the file is the system's`, "write scope: user, or an absolute path"},
		"not at home":       {at + "/etc/a\nscope: user\n", 4, "file:app-config.path", `"/etc/a" is not below the account's home`, below},
		"another's home":    {at + homes + "/opal/a\nscope: user\n", 4, "file:app-config.path", `"` + homes + `/opal/a" is not below the account's home`, "write ~/ and what follows the home, such as ~/.config/web.conf"},
		"dots at home":      {at + "~/../b\nscope: user\n", 4, "file:app-config.path", `"~/../b" is not written out`, "write ~/b"},
		"unread at home":    {at + "~/b\nscope: user\nmode: 0040\n", 6, "file:app-config.mode", "0040: the account cannot read its own file then, nor could stead, which is the account there", "let the first of the three digits be 4 or more, such as 0400"},
		"a user's unit":     {at + "~/.config/systemd/user/a.service\nscope: user\n", 4, "file:app-config.path", `"~/.config/systemd/user/a.service" is protected: systemd reads units there`, unitCure},
		"owner at home":     {at + "~/a\nscope: user\nowner: opal\n", 6, "file:app-config.owner", "it is declared, and in scope user a file is the account's", "leave it out"},
		"a control":         {at + "\"/etc/a\\x01\"\n", 4, "file:app-config.path", `"/etc/a\x01" holds a control character`, "give the file another name"},
		"mode 644":          {with + "mode: 644\n", 5, "file:app-config.mode", `"644" are not four octal digits`, modeCure},
		"mode 0o644":        {with + "mode: 0o644\n", 5, "file:app-config.mode", `"0o644" are not four octal digits`, modeCure},
		"mode 0888":         {with + "mode: '0888'\n", 5, "file:app-config.mode", `"0888" are not four octal digits`, modeCure},
		"mode rw":           {with + "mode: u=rw\n", 5, "file:app-config.mode", `"u=rw" are not four octal digits`, modeCure},
		"setuid":            {with + "mode: 4755\n", 5, "file:app-config.mode", "4755 has setuid, setgid or sticky bits, which no declared file has", modeCure},
		"mode list":         {with + "mode: [6]\n", 5, "file:app-config.mode", "a list where a mode is wanted", modeCure},
		"owner by number":   {with + "owner: 0\n", 5, "file:app-config.owner", "the number 0 where a text is wanted", `put it in quotes: "0"`},
		"owner's number":    {with + "owner: '0'\n", 5, "file:app-config.owner", `"0" is no name of a login or group`, nameOf},
		"group":             {with + "group: a b\n", 5, "file:app-config.group", `"a b" is no name of a login or group`, nameOf},
		"empty owner":       {with + "owner: ''\n", 5, "file:app-config.owner", "it is empty", "write a name that the node has, or leave it out"},
		"too large":         {fileHead + "path: /etc/a\ncontent: " + strings.Repeat("a", MaxFileContent+1) + "\n", 4, "file:app-config.content", "it has 524289 bytes; at most 524288 are taken", "bring large data to the node in a package, or have the unit fetch it"},
		"of a unit":         {with + "ensure: running\n", 5, "file:app-config.ensure", "unknown field", "the fields of shape file are shape, name, path, nodes, labels, all, scope, content, mode, owner, group, sensitive, on_withdraw"},
		"no DNS label":      {"shape: file\nname: App\npath: /etc/a\ncontent: a\n", 2, "name", `"App" is not a DNS label`, nameCure},
		"a module's name":   {"shape: file\nname: a.b\npath: /etc/a\ncontent: a\n", 2, "name", `"a.b": a name with a dot, MODULE.NAME, is kept for modules`, "use - in its place"},
		"its cited name":    {"shape: file\nname: file:a\npath: /etc/a\ncontent: a\n", 2, "name", `"file:a" is not a DNS label`, nameCure},
	})
}

func TestFilesWhoseTextIsLargeAndFullOfStructureAreRead(t *testing.T) {
	line := strings.Repeat("{a,-:}", 12) + "\n"
	text := strings.Repeat(line, MaxFileContent/len(line))
	doc := fileHead + "nodes: [a, b]\npath: /etc/a.json\ncontent: |\n  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
	require.Equal(t, text, *one(t, doc).Content)
	_, problems := Parse("f", []byte(strings.Replace(doc, "nodes: [a, b]", "nodes: [a,\n  b]", 1)))
	require.Contains(t, problems.Error(), "characters", "what may be structure counts")
	_, problems = Parse("f", []byte("x: \"\ncontent: |\n  \"\n  "+strings.Repeat("{a,", 60<<10)))
	require.Contains(t, problems.Error(), "characters")
}

func TestAFileAndAServiceMayHaveOneName(t *testing.T) {
	all, problems := Parse("f", []byte("shape: service\nname: web\nensure: running\ntriggers: [file:web]\n---\nshape: file\nname: web\npath: /etc/web\ncontent: a\n"))
	require.Empty(t, problems)
	require.Empty(t, Check(all, 0))
}

func TestCheckHoldsFilesAgainstEachOther(t *testing.T) {
	check := func(docs ...string) string {
		all, problems := Parse("f", []byte(strings.Join(docs, "---\n")))
		require.Empty(t, problems)
		return Check(all, 0).Error()
	}
	file := func(name, more string) string { return "shape: file\nname: " + name + "\ncontent: a\n" + more }
	cites := head + "ensure: running\ntriggers: [file:a]\n"
	require.Equal(t, `1 problem: f:6: file:b.path: /etc/a is declared by "file:a" at f:1 too; a path has one declaration: delete one of them`, check(file("a", "path: /etc/a\n"), file("b", "path: /etc/a\n")))
	require.Contains(t, check(file("a", "path: /etc/a\n"), file("a", "path: /etc/b\n")), `the name "file:a" is declared at f:1 too`)
	require.Equal(t, `1 problem: f:1: web.triggers: it cites file:a, which is not declared here; declare a file of that name for the same nodes, or cite its path`, check(cites))
	require.Equal(t, "0 problems: ", check(cites, file("a", "path: /etc/a\n")))
	require.Contains(t, check(cites, file("a", "path: ~/a\nscope: user\n")), "which is of scope user")
	require.Equal(t, "0 problems: ", check(cites+"scope: user\n", file("a", "path: ~/a\nscope: user\n")))
}

func TestAModulesFileIsCitedByItsServices(t *testing.T) {
	own, err := one(t, head+"ensure: running\ntriggers: [/etc/z, file:app-config]\n").ForModule("power")
	require.NoError(t, err)
	require.Equal(t, []string{"/etc/z", "file:power.app-config"}, own.Triggers)
	file, err := one(t, conf).ForModule("power")
	require.NoError(t, err)
	require.Equal(t, "file:power.app-config", file.Name)
	require.Equal(t, "power", OfModule(file.Name))
	for _, d := range []*Declaration{own, file} {
		got, err := FromCanonical(d.Canonical())
		require.NoError(t, err)
		require.Equal(t, d.Name, got.Name)
	}
}

func TestWhatIsSensitiveIsShownByItsDigest(t *testing.T) {
	shown := one(t, conf).Redacted()
	require.Regexp(t, "^sensitive: 10 bytes, sha256 [0-9a-f]{64}$", *shown.Content)
	require.Equal(t, Conceal("port = 80\n"), *shown.Content)
	require.NotContains(t, *shown.Content, "port")
	s := one(t, full+"sensitive: true\n")
	require.Equal(t, Conceal("#\n"), s.Redacted().DropIns["20-b.conf"])
	require.Equal(t, "#\n", s.DropIns["20-b.conf"], "the declaration itself is as it was")
	public := one(t, full)
	require.Same(t, public, public.Redacted())
	require.True(t, IsSensitive([]byte("no form")), "what cannot be read is shown to nobody")
	require.False(t, IsSensitive(public.Canonical()))
}
