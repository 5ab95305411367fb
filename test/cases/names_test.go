package cases

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// F089: the name of a mount has a dash or an escaped one in it.
// stead: carries names as they are, fails in systemd's words where Where= does not
// fit the name, and names the escaped form when there is no such unit.
func TestF089EscapedNamesAreCarriedAsTheyAre(t *testing.T) {
	d := sit(t)
	mount := func(where string) string {
		return "[Mount]\nWhat=tmpfs\nWhere=" + where + "\nType=tmpfs\n"
	}
	d.apply(d.service("", "unit: 'srv-f089\\x2ddata.mount'\nensure: running\n", mount("/srv/f089-data")))
	d.converged()
	require.Contains(t, d.read("/proc/1/mounts"), "/srv/f089-data tmpfs")
	require.Equal(t, "mounted", d.status(`srv-f089\x2ddata.mount`).Sub)
	require.FileExists(t, d.node.Path(etc+`/srv-f089\x2ddata.mount`))

	d.apply(d.service("other", "unit: srv-f089-data.mount\nensure: running\n", mount("/srv/f089-data")))
	d.says("f089-other", report.Failed, report.BadUnit)
	d.apply(d.service("none", "unit: srv-f089-none.mount\nensure: running\n", ""))
	d.says("f089-none", report.Failed, report.Missing, `srv-f089\x2dnone.mount`)
	d.withdraw()
	require.NotContains(t, d.read("/proc/1/mounts"), "/srv/f089-data")
}

// F107: a unit's name has every character that names may have.
// stead: declares, asks about and acts on it like any other.
func TestF107EveryLegalCharacterOfANameIsKept(t *testing.T) {
	d := sit(t)
	names := []string{`f107_a.b-c:d.service`, `f107-x@1-2_3.x:y\x40@.service`, `f107\x2d_\xc3.service`}
	var docs []service
	for i, n := range names {
		docs = append(docs, d.service(string(rune('a'+i)), "unit: '"+n+"'\nensure: running\n", "[Service]\nExecStart=/bin/sleep 1000\n"))
	}
	d.apply(docs...)
	d.converged()
	for i, n := range names {
		st := d.status(n)
		require.Equal(t, n, st.ID)
		require.Equal(t, "active", st.Active)
		require.Equal(t, d.name(string(rune('a'+i))), st.DeclaredBy.Name)
		require.Equal(t, n, d.prop(n, "Id"))
	}
	out := d.stead("", "restart", names[1], "-n", hostname)
	require.Zero(t, out.Code, out.Stderr)
	require.NotEqual(t, "0", d.prop(names[1], "MainPID"))
}

// F111: a full path is given for a unit's name.
// stead: refuses it, and says what the name is.
func TestF111APathIsNoUnitName(t *testing.T) {
	d := sit(t)
	words := d.refused(d.service("", "unit: /opt/x.service\nenabled: true\n", ""))
	require.Contains(t, words, `"/opt/x.service" is a path`)
	require.Contains(t, words, "such as x.service")
	out := d.stead("", "restart", "/opt/x.service", "-n", hostname)
	require.NotZero(t, out.Code)
	require.Contains(t, out.Stderr, "a unit name")
}

// F113: a name has letters that systemd does not take, or is longer than it takes,
// alone or as that of a folder of drop-ins.
// stead: refuses it when it is declared, before any node hears of it; what systemd
// takes is taken.
func TestF113NamesAreHeldToSystemdsGrammarAndLength(t *testing.T) {
	d := sit(t)
	long := func(n int) string { return "f113-" + strings.Repeat("x", n-len("f113-.service")) + ".service" }
	const sleep = "[Service]\nExecStart=/bin/sleep 1000\n"
	require.Contains(t, d.refused(d.service("a", "unit: ä.service\nensure: running\n", sleep)), "letters")
	require.Contains(t, d.refused(d.service("b", "unit: "+long(256)+"\nensure: running\n", sleep)), "255")
	require.Contains(t, d.refused(d.service("c", "unit: "+long(255)+"\ndropins: {a.conf: \"[Unit]\\n\"}\n", sleep)), "253")
	d.apply(d.service("d", "unit: "+long(255)+"\nensure: running\n", sleep))
	d.converged()
	require.Equal(t, "active", d.prop(long(255), "ActiveState"))
}
