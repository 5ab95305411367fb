package shape

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// head begins a declaration that is valid with any aspect put behind it; the
// aspect stands on line 3.
const head = "shape: service\nname: web\n"

func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

func TestParseReadsEveryField(t *testing.T) {
	services, problems := Parse("mesh/web.yaml", []byte(lines(
		"# the web server",
		"shape: service",
		"name: web",
		"unit: web-1.service",
		"labels: {role: web, zone: 'eu_1.a'}",
		"content: |",
		"  [Service]",
		"  ExecStart=/usr/bin/web",
		"dropins:",
		"  10-memory.conf: \"[Service]\\nMemoryMax=1G\\n\"",
		"ensure: running",
		"enabled: false",
		"masked: false",
		"on_change: none",
		"triggers: [/etc/web.d, /etc/web.conf]",
		"timeout: 1h 30min",
		"on_withdraw: release",
		"---",
		"shape: service",
		"name: all",
		"all: true",
		"content: ~",
		"scope: user",
		"state: restarted",
		"...",
		"---",
		"---",
		"shape: service",
		"name: some",
		"nodes: [ws1, ws2]",
		"enabled: true",
	)))
	require.Empty(t, problems)
	content, no, yes := "[Service]\nExecStart=/usr/bin/web\n", false, true
	require.Empty(t, cmp.Diff([]*Declaration{
		{Name: "web", Scope: unit.System, Unit: "web-1.service", Content: &content, DropIns: map[string]string{"10-memory.conf": "[Service]\nMemoryMax=1G\n"},
			Ensure: Running, Enabled: &no, Masked: &no, OnChange: IgnoreChange, Triggers: []string{"/etc/web.conf", "/etc/web.d"}, Timeout: 90 * time.Minute, OnWithdraw: Release, Labels: map[string]string{"role": "web", "zone": "eu_1.a"},
			Origin: Origin{"mesh/web.yaml", 2}},
		{Name: "all", Scope: unit.User, Unit: "all.service", Ensure: Restarted, Timeout: DefaultTimeout, OnWithdraw: Restore, All: true, Origin: Origin{"mesh/web.yaml", 19}},
		{Name: "some", Scope: unit.System, Unit: "some.service", Enabled: &yes, Timeout: DefaultTimeout, OnWithdraw: Restore, Nodes: []string{"ws1", "ws2"}, Origin: Origin{"mesh/web.yaml", 28}},
	}, services))
}

func TestParseTakesUnitNames(t *testing.T) {
	for given, want := range map[string]unit.Name{
		"web": "web.service", "web.service": "web.service", "backup.timer": "backup.timer", "my.app": "my.app.service",
		`my\x2ddata.mount`: `my\x2ddata.mount`, "x@one": "x@one.service", "x@one.service": "x@one.service", "App_1:2.socket": "App_1:2.socket",
		strings.Repeat("a", 247) + ".service": unit.Name(strings.Repeat("a", 247) + ".service"),
	} {
		services, problems := Parse("f", []byte(head+"ensure: running\nunit: '"+given+"'\n"))
		require.Empty(t, problems, given)
		require.Equal(t, want, services[0].Unit)
	}
}

func TestParseIgnoresWhatDeclaresNothing(t *testing.T) {
	for _, s := range []string{"", "\n", "# only a comment\n", "---\n---\n...\n", "--- # x\n", "~\n", "--- null\n"} {
		services, problems := Parse("f", []byte(s))
		require.Empty(t, problems, s)
		require.Empty(t, services, s)
	}
}

// A document marker inside a block text ends the document, by YAML's rule.
func TestParseCutsAtMarkersOnly(t *testing.T) {
	services, problems := Parse("f", []byte(head+"content: |\n  [Unit]\n  ---\n  --- x\n---not\n"))
	require.Len(t, services, 0)
	require.Len(t, problems, 1) // ---not is text, and no marker
	services, problems = Parse("f", []byte(head+"content: |\n  [Unit]\n  ---\n  ...\n--- {shape: service, name: b, ensure: running}\n"))
	require.Empty(t, problems)
	require.Equal(t, "[Unit]\n---\n...\n", *services[0].Content)
	require.Equal(t, Origin{"f", 7}, services[1].Origin)
}

func TestParseKeepsTextByteForByte(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"no newline at the end": {"content: |-\n  [Unit]\n  a=b\n", "[Unit]\na=b"},
		"tabs and blanks":       {"content: \"[Unit]\\n\\ta=b  \\n\"\n", "[Unit]\n\ta=b  \n"},
		"a line separator":      {"content: \"a=\\u2028b\\N\\n\"\n", "a=\u2028b\u0085\n"},
		"a mark within":         {"content: \"#\\uFEFF\\n\"\n", "#\uFEFF\n"},
		"a backslash within":    {"content: |\n  a=b \\\n  c\n", "a=b \\\nc\n"},
		"the largest":           {"content: '" + strings.Repeat("-", MaxContent) + "'\n", strings.Repeat("-", MaxContent)},
	} {
		services, problems := Parse("f", []byte(head+c.yaml))
		require.Empty(t, problems, name)
		require.Equal(t, c.want, *services[0].Content, name)
	}
}

func TestParseTakesTimeouts(t *testing.T) {
	for given, want := range map[string]time.Duration{"1s": time.Second, "90s": 90 * time.Second, "2m": 2 * time.Minute, "2min": 2 * time.Minute,
		"1h30m": 90 * time.Minute, "1h 30min 5s": 90*time.Minute + 5*time.Second, "1d": 24 * time.Hour, "24h": 24 * time.Hour, "1500ms": 1500 * time.Millisecond} {
		services, problems := Parse("f", []byte(head+"ensure: running\ntimeout: "+given+"\n"))
		require.Empty(t, problems, given)
		require.Equal(t, want, services[0].Timeout, given)
	}
}

// One answer names every problem of a file, and the good declarations are read
// all the same.
func TestParseFindsAllProblemsAtOnce(t *testing.T) {
	services, problems := Parse("mesh/desktop.yaml", []byte(lines(
		"shape: service",
		"name: reload-watcher",
		"ensure: reloaded",
		"enabled: yes",
		"---",
		"shape: service",
		"name: fine",
		"ensure: running",
		"---",
		"shape: service",
		"name: bar-watchdog",
		"unit: ../bar.service",
		"ensure: running",
		"---",
		"a: [",
		"---",
		"shape: service",
		"name: last",
		"enabld: true",
	)))
	require.Len(t, services, 1)
	var b strings.Builder
	require.NoError(t, problems.Format(&b, "nothing was applied"))
	require.Equal(t, lines(
		`6 problems in mesh/desktop.yaml, nothing was applied`,
		`  line 3   reload-watcher.ensure   "reloaded" is no value of this field; write running, stopped or restarted`,
		`  line 4   reload-watcher.enabled  the text "yes" where true or false is wanted; write true: only true and false, without quotes, are truth values`,
		`  line 12  bar-watchdog.unit       "../bar.service" is a path; a unit is named by its full name, such as bar.service`,
		`  line 15                          not YAML: did not find expected node content; check indentation and quotes, of this line and the one before`,
		`  line 17  last                    it declares nothing; declare at least one of content, dropins, ensure, enabled, masked and triggers, or delete it`,
		`  line 19  last.enabld             unknown field; did you mean enabled?`,
	), b.String())
	require.True(t, fault.Is(problems.Err(), fault.Invalid))
	require.ErrorContains(t, problems.Err(), "read declarations: 6 problems: mesh/desktop.yaml:3: reload-watcher.ensure: ")
	require.NoError(t, Problems(nil).Err())
}

func TestFormatNamesFilesWhereThereAreSeveral(t *testing.T) {
	p := Problems{{"a.yaml", 3, "web.unit", "it is bad", "mend it"}, {"b/c.yaml", 0, "", "it cannot be read", ""}}
	var b strings.Builder
	require.NoError(t, p.Format(&b, ""))
	require.Equal(t, "2 problems in 2 files\n  a.yaml:3  web.unit  it is bad; mend it\n  b/c.yaml            it cannot be read\n", b.String())
	require.Equal(t, "2 problems: a.yaml:3: web.unit: it is bad; mend it; b/c.yaml: it cannot be read", p.Error())
}

func TestFormatNamesNoFileWhereThereIsNone(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Problems{{Path: "wbe", Rule: "it is not declared"}}.Format(&b, "nothing was withdrawn"))
	require.Equal(t, "1 problem, nothing was withdrawn\n  wbe  it is not declared\n", b.String())
	b.Reset()
	require.NoError(t, Problems{{Rule: "it is too large"}, {"a.yaml", 3, "web", "it is bad", ""}}.Format(&b, "nothing was applied"))
	require.Equal(t, "2 problems in a.yaml, nothing was applied\n               it is too large\n  line 3  web  it is bad\n", b.String())
}

func TestLocateKnowsTheLineOfEachValue(t *testing.T) {
	located, problems := Locate("f", []byte(lines(
		"# a comment",
		"shape: service",
		"name: web",
		"nodes:",
		"  - web1",
		"",
		"  - web2",
		"dropins:",
		"  10-x.conf: |",
		"    [Unit]",
		"    After=db.service",
		"  20-z.conf: \"[Unit]\\nAfter=db.service\"",
		"---",
		"shape: service",
		"name: db",
		"labels: {role: db,",
		"  zone: a}",
		"ensure: running",
	)))
	require.Empty(t, problems)
	require.Len(t, located, 2)
	for path, want := range map[string]int{"": 2, "nodes": 5, "nodes[0]": 5, "nodes[1]": 7, "nodes[2]": 5, "dropins.10-x.conf": 9, "dropins.20-y.conf": 9, "labels.role": 2, "unit": 2, "name": 3} {
		require.Equal(t, want, located[0].Line(path), path)
	}
	for path, want := range map[string]int{"": 14, "labels": 16, "labels.role": 16, "labels.zone": 17, "all": 14} {
		require.Equal(t, want, located[1].Line(path), path)
	}
	after := func(file string) int {
		return located[0].LineOf("dropins."+file, located[0].DropIns[file], "After")
	}
	require.Equal(t, 11, after("10-x.conf"))
	require.Equal(t, 12, after("20-z.conf"), "a quoted text stands in one line")
	require.Equal(t, 9, located[0].LineOf("dropins.10-x.conf", "", "After"))
}

func TestProblemsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(head + "ensure: running\n")
	for i := range MaxProblems + 10 {
		fmt.Fprintf(&b, "f%d: 1\n", i)
	}
	_, problems := Parse("f", []byte(b.String()))
	require.Len(t, problems, MaxProblems+1)
	require.Equal(t, "10 further problems are not listed", problems[MaxProblems].Rule)
	require.Len(t, append(problems, problems...).Limit(), MaxProblems+1)
	require.Len(t, problems[:3].Limit(), 3)
}
