package cases

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F063: a unit file has no bytes, because content is empty or a write was cut short,
// and systemd takes it for a mask.
// stead: refuses empty content, and puts its own file back when somebody empties it;
// another's is reported as an empty file, not as a mask that somebody made.
func TestF063AnEmptyUnitFileIsNoMask(t *testing.T) {
	d := sit(t)
	words := d.stead("shape: service\nname: f063\nall: true\ncontent: ''\n", "apply", "-f", "-", "--yes").Stderr
	require.Contains(t, words, "f063.content")
	require.Contains(t, words, "empty")

	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	d.run("truncate", "--size=0", etc+"/f063.service")
	d.until("the file is back", func() bool { return d.read(etc+"/f063.service") == sleeper })
	d.converged()
	require.Equal(t, "loaded", d.prop("f063.service", "LoadState"))

	d.foreign(map[string]string{"f063-other.service": ""})
	d.apply(d.service("other", "ensure: running\n", ""))
	d.says("f063-other", report.Refused, report.IsMasked, etc+"/f063-other.service", "empty file")
}

// F070: an option is misspelt, and the unit loads without it.
// stead: has the verifier read it, and hands what it says to the operator; the unit
// runs all the same.
func TestF070AMisspeltOptionIsAWarning(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\n", "[Service]\nExecStart=/bin/sleep 1000\nRestrat=always\n[Instal]\nWantedBy=multi-user.target\n"))
	d.converged()
	last := ""
	d.until("the report warns of both", func() bool {
		r := d.report("f070")
		last = strings.Join(r.Warnings, "\n")
		return strings.Contains(last, "Restrat") && strings.Contains(last, "Instal")
	}, &last)
	require.Contains(t, d.stead("", "describe", "declaration", "f070").Stdout, "Restrat")
}

// F095: the last line of a unit file is without its end, or ends in a backslash.
// stead: takes a text without an end of line, whose last line counts as any other,
// and refuses a backslash at the very end, which would swallow the line.
func TestF095TheLastLineCounts(t *testing.T) {
	d := sit(t)
	apply := func(content string) string {
		out := d.stead("shape: service\nname: f095\nall: true\nensure: running\ncontent: "+content+"\n", "apply", "-f", "-", "--yes", "-o", "json")
		return out.Stderr
	}
	words := apply(`"[Service]\nExecStart=/bin/sleep \\\n 1000\nEnvironment=A=1 \\"`)
	require.Contains(t, words, "f095.content")
	require.Contains(t, words, "backslash")

	d.applyText(`{shape: service, name: f095, all: true, ensure: running, content: "[Service]\nExecStart=/bin/sleep \\\n 1000\nEnvironment=A=1 \\\n B=2"}`)
	d.converged()
	require.Equal(t, "A=1 B=2", d.prop("f095.service", "Environment"))
}

// F116: content was pasted from Windows, with a byte order mark or with CR.
// stead: refuses it and says where; nothing is mended, so what is accepted is on the
// disk byte for byte.
func TestF116ByteOrderMarksAndCarriageReturnsAreRefused(t *testing.T) {
	d := sit(t)
	for content, word := range map[string]string{
		`"\uFEFF[Service]\nExecStart=/bin/true\n"`:     "byte order mark",
		`"[Service]\r\nExecStart=/bin/sleep 1000\r\n"`: "CR",
	} {
		out := d.stead("shape: service\nname: f116\nall: true\ncontent: "+content+"\n", "apply", "-f", "-", "--yes")
		require.Equal(t, 1, out.Code)
		require.Contains(t, out.Stderr, "f116.content")
		require.Contains(t, out.Stderr, word)
	}
	const odd = "[Unit]\nDescription=tabs\tand blanks  \n\n\n;\n[Service]\nExecStart=/bin/sleep 1000\n"
	d.apply(service{"f116", "ensure: running\n", odd})
	d.converged()
	require.Equal(t, odd, d.read(etc+"/f116.service"))
}

// F122: the text of a unit is such that it could hurt the manager: huge, no text at
// all, or without what its type needs.
// stead: bounds content to 64 KiB and drop-ins to 256 KiB, refuses what is no UTF-8
// and what a manager would die of, and reports what systemd cannot load in systemd's words; the run that there is goes
// on, and the good text, declared again, is converged.
func TestF122ATextThatCouldHurtTheManagerIsBounded(t *testing.T) {
	d := sit(t)
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	pid := d.prop("f122.service", "MainPID")
	require.Contains(t, d.refused(d.service("", "", "[Unit]\nDescription="+strings.Repeat("x", 100<<10)+"\n")), "at most 65536 are taken")
	var dropins strings.Builder
	for i := range 300 {
		fmt.Fprintf(&dropins, "  a%d.conf: '%s'\n", i, strings.Repeat("x", 1000))
	}
	require.Contains(t, d.refused(d.service("", "dropins:\n"+dropins.String(), "")), "262144")
	require.Contains(t, d.refused(d.service("", "", "[Unit]\nDescription=\xff\xfe\n")), "UTF-8")

	require.Contains(t, d.refused(d.service("", "", "[Service]\nType=dbus\nExecStart=/bin/sleep 1000\n")), "without BusName=")

	d.apply(d.service("", "ensure: running\n", "[Service]\nType=simple\n"))
	d.says("f122", report.Failed, report.BadUnit, "ExecStart=")
	require.Equal(t, pid, d.prop("f122.service", "MainPID"), "the run goes on")
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	require.Equal(t, "running", d.prop("f122.service", "SubState"))
}
