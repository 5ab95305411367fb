package cases

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// entries asks the journal verb, as an operator does, for whole entries of one unit.
func (d *desk) entries(unit string, more ...string) []map[string]any {
	d.Helper()
	out := d.stead("", append([]string{"journal", "-u", unit, "-n", hostname, "-o", "json"}, more...)...)
	require.Zero(d, out.Code, out.Stderr)
	var all []map[string]any
	lines := bufio.NewScanner(strings.NewReader(out.Stdout))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e map[string]any
		require.NoError(d, json.Unmarshal(lines.Bytes(), &e), lines.Text())
		all = append(all, e)
	}
	require.NoError(d, lines.Err())
	return all
}

// said are the messages of entries that are text and hold this.
func said(entries []map[string]any, word string) []string {
	var all []string
	for _, e := range entries {
		if text, is := e["MESSAGE"].(string); is && strings.Contains(text, word) {
			all = append(all, text)
		}
	}
	return all
}

// start runs a command on the node until end is called, or for as long as a wait may
// take. It returns what the command writes.
func (d *desk) start(args ...string) (out io.Reader, end func()) {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), patience)
	c := d.node.Command(ctx, args...)
	out, err := c.StdoutPipe()
	require.NoError(d, err)
	require.NoError(d, c.Start())
	return out, func() {
		cancel()
		_ = c.Wait() // it was killed
	}
}

// script runs once, in a unit of this name that nobody declares.
func (d *desk) script(unit, settings, script string) {
	d.Helper()
	d.write("/srv/"+unit+".sh", script)
	d.foreign(map[string]string{unit + ".service": "[Service]\nType=oneshot\n" + settings + "ExecStart=/bin/sh /srv/" + unit + ".sh\n"})
	d.run("systemctl", "start", unit+".service")
	d.run("journalctl", "--sync")
}

// F036: a message has bytes that are no text, and such that a terminal obeys.
// stead: hands on every byte with -o json, and shows none of them on a terminal or in
// a report: the size of what it is instead, or each byte written out.
func TestF036BytesThatAreNoTextReachNoTerminal(t *testing.T) {
	d := sit(t)
	const what = "a\rb\033[2Jc\377d"
	d.script("f036", "", `printf 'a\rb\033[2Jc\377d\nbefore\000behind\nplain\n'`+"\n")
	var found bool
	all := d.entries("f036")
	for _, e := range all {
		var text []byte
		nums, _ := e["MESSAGE"].([]any)
		for _, n := range nums {
			text = append(text, byte(n.(float64)))
		}
		found = found || string(text) == what
	}
	require.True(t, found, "%v", all)
	require.Len(t, said(all, "before"), 1)
	require.Len(t, said(all, "behind"), 1)
	shown := d.stead("", "journal", "-u", "f036", "-n", hostname).Stdout + d.stead("", "status", "f036", "-n", hostname, "--system").Stdout
	require.Contains(t, shown, "plain")
	require.Contains(t, shown, "blob data]")
	require.False(t, strings.ContainsAny(shown, "\r\033\377\000"), "%q", shown)

	d.apply(d.service("report", "ensure: running\n", "[Service]\nExecStart=/bin/sh -c '. /srv/f036.sh; exit 7'\n"))
	d.quotes("f036-report", "plain", `a\x0db\x1b[2Jc\xffd`)
}

// F044: a process writes lines and ends at once, before the journal knows its unit.
// stead: finds all that it wrote to its standard output; of lines that it sent by
// other ways the help says that they may be there without their unit, and how they
// are shown.
func TestF044TheLastLinesOfAShortLifeAreFound(t *testing.T) {
	d := sit(t)
	d.script("f044", "", "for i in 1 2 3 4 5 6 7 8 9; do sh -c \"echo first$i\"; logger -t f044 sent$i; done; sleep 0.01; echo last\n")
	all := d.entries("f044")
	require.Len(t, said(all, "first"), 9)
	require.Equal(t, []string{"last"}, said(all, "last"))
	out := d.stead("", "journal", "-n", hostname, "-g", "^sent[0-9]$", "-S", "-5min", "-o", "json")
	require.Equal(t, 9, bytes.Count([]byte(out.Stdout), []byte(`"SYSLOG_IDENTIFIER":"f044"`)), out.Stdout)
	require.Contains(t, d.stead("", "journal", "--help").Stdout, "without its unit")
}

// F051: a message is long, and becomes null or is cut.
// stead: asks for all of it; what systemd itself breaks is marked so, and a report
// says where it cut.
func TestF051LongMessagesAreWhole(t *testing.T) {
	d := sit(t)
	d.script("f051", "", "long() { head -c $1 /dev/zero | tr '\\0' $2; echo; }\nlong 5000 a; long 100000 b; echo end\n")
	var sizes, broken int
	all := d.entries("f051")
	require.Len(t, said(all, strings.Repeat("a", 5000)), 1)
	for _, text := range said(all, "bbb") {
		sizes += len(text)
	}
	for _, e := range all {
		require.NotNil(t, e["MESSAGE"])
		if e["_LINE_BREAK"] == "line-max" {
			broken++
		}
	}
	require.Equal(t, 100000, sizes)
	require.Equal(t, 2, broken)
	d.apply(d.service("report", "ensure: running\n", "[Service]\nExecStart=/bin/sh -c '. /srv/f051.sh; exit 7'\n"))
	d.quotes("f051-report", "aaa (cut)", "end")
}

// F071: the journal is rotated again and again while it is followed.
// stead: goes on with the new file; no line is lost, and none comes twice.
func TestF071RotationsCostAFollowerNothing(t *testing.T) {
	d := sit(t)
	d.write("/srv/f071.sh", "for i in 1 2 3 4 5 6; do for j in a b c d e; do echo line-$i$j; done; journalctl --rotate; sleep 0.3; done; echo the end\n")
	d.foreign(map[string]string{"f071.service": "[Service]\nExecStart=/bin/sh /srv/f071.sh\n"})
	out, end := d.start("stead", "journal", "-f", "--lines=1000", "-u", "f071", "-n", hostname) // also of what was said before it follows
	d.run("systemctl", "start", "f071.service")
	got := map[string]int{}
	ended := false
	for s := bufio.NewScanner(out); !ended && s.Scan(); {
		if i := strings.Index(s.Text(), "line-"); i >= 0 {
			got[s.Text()[i:]]++
		}
		ended = strings.Contains(s.Text(), "the end")
	}
	end()
	want := map[string]int{}
	for i := 1; i <= 6; i++ {
		for _, j := range "abcde" {
			want[fmt.Sprintf("line-%d%c", i, j)] = 1
		}
	}
	require.Equal(t, want, got)
}

// F082: lines are dropped because they come too fast, and the service seems to have
// said nothing.
// stead: shows among the unit's own lines how many the journal has suppressed.
func TestF082SuppressedLinesAreTold(t *testing.T) {
	d := sit(t)
	d.script("f082", "LogRateLimitIntervalSec=2s\nLogRateLimitBurst=100\n",
		// The journal forgets what it counted when another unit begins to speak just
		// after the two seconds.
		"seq 20000; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do sleep 0.1; echo late; done\n")
	all := d.entries("f082", "--lines", "10000", "-b")
	require.Less(t, len(all), 8000)
	require.NotEmpty(t, said(all, "late"))
	note := said(all, "Suppressed ")
	require.NotEmpty(t, note)
	require.Contains(t, note[0], "f082.service")
}

// F096: what the manager, the journal or the core dump's helper say of a unit is
// filed under other fields than what the unit says.
// stead: asks for all of them.
func TestF096WhatOthersSayOfAUnitIsShown(t *testing.T) {
	d := sit(t)
	d.apply(d.service("file", "ensure: running\n", "[Service]\nExecStart=/nonexistent/f096\n"),
		d.service("user", "ensure: running\n", "[Service]\nUser=f096-nobody\nExecStart=/bin/sleep 1000\n"))
	d.quotes("f096-file", "/nonexistent/f096")
	d.quotes("f096-user", "Failed at step USER")
	require.NotEmpty(t, said(d.entries("f096-user"), "f096-user.service: Failed"))

	d.script("f096", "", "echo hello\n")
	d.sh(`printf '%s\n' MESSAGE_ID=fc2e22bc6ee647b6b90729ab34a250b1 COREDUMP_UNIT=f096.service 'MESSAGE=Process 4711 dumped core.' | logger --journald
		printf '%s\n' OBJECT_SYSTEMD_UNIT=f096.service 'MESSAGE=about it' | logger --journald; journalctl --sync`)
	all := d.entries("f096")
	require.Len(t, said(all, "dumped core"), 1)
	require.NotEmpty(t, said(all, "Starting f096.service"))
	require.NotEmpty(t, said(all, "hello"))
}
