package cases

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/seats"
)

// F062: a socket is listening, a timer waiting, a target active: none is running.
// stead: holds the active state of every type against what is declared, and takes no
// step when the same is declared again.
func TestF062EveryTypeOfUnitIsRunningWhenItIsActive(t *testing.T) {
	d := sit(t)
	types := map[string]string{
		"socket": "[Socket]\nListenStream=/run/f062.sock\n",
		"timer":  "[Timer]\nOnCalendar=*-12-31 23:59:59\n",
		"path":   "[Path]\nPathExists=/nonexistent/f062\n",
		"target": "[Unit]\nDescription=a target\n",
		"slice":  "[Unit]\nDescription=a slice\n",
	}
	docs := []service{d.service("", "", sleeper)}
	for kind, text := range types {
		docs = append(docs, d.service(kind, "unit: f062."+kind+"\nensure: running\n", text))
	}
	d.apply(docs...)
	d.converged()
	before := map[string]int{}
	for kind := range types {
		require.Equal(t, "active", d.prop("f062."+kind, "ActiveState"))
		before[kind] = len(d.report("f062-" + kind).Steps)
	}
	d.apply(docs...)
	for kind := range types {
		require.Len(t, d.report("f062-"+kind).Steps, before[kind], kind)
		require.Equal(t, report.Converged, d.report("f062-"+kind).Outcome)
		require.Zero(t, d.stead("", "status", "f062."+kind, "-n", hostname, "--system").Code, kind)
	}
}

// F064: a valid unit is inactive and disabled, and systemd has not loaded it.
// stead: says how it stands, and lists it, by name and among the unit files.
func TestF064AUnitThatIsNotLoadedIsKnown(t *testing.T) {
	d := sit(t)
	d.foreign(map[string]string{"f064.service": sleeper + "[Install]\nWantedBy=multi-user.target\n"})
	st := d.status("f064.service")
	require.Equal(t, "loaded", st.Load)
	require.Equal(t, "inactive", st.Active)
	require.Equal(t, "disabled", st.Enablement)
	line := func(args ...string) seats.UnitLine {
		var units []seats.UnitLine
		d.until("it is listed", func() bool { // a manager that reloads for others may not say it in time, and is named then
			units = answer[seats.UnitsReply](d, append([]string{"units", "--system"}, args...)...).Units
			return len(units) == 1
		})
		return units[0]
	}
	require.Equal(t, "disabled", line("f064").Enablement)
	require.Equal(t, "f064.service", line("--files", "f06[4]*").Name)

	// A declared one is listed without a word more, whatever its state.
	d.apply(d.service("declared", "", sleeper))
	d.converged()
	l := line("--declared", "f064*")
	require.Equal(t, "f064-declared", l.DeclaredBy.Name)
	require.Equal(t, "inactive", l.Active)
}

// F121: there are units in the manager that nobody declared: transient, failed, made
// by hand.
// stead: touches only what is declared.
func TestF121UnitsThatNobodyDeclaredAreLeftAlone(t *testing.T) {
	d := sit(t)
	require.NotZero(t, d.exec("systemd-run", "--quiet", "--wait", "--unit=f121-lost", "/bin/false").Code)
	d.Cleanup(func() { d.node.Exec(context.Background(), "systemctl", "reset-failed", "f121-lost.service") })
	d.run("systemd-run", "--quiet", "--unit=f121-kept", "/bin/sleep", "1000")
	d.foreign(map[string]string{"f121-made.service": sleeper})
	d.run("systemctl", "start", "f121-made.service")
	all := []string{"f121-lost.service", "f121-kept.service", "f121-made.service"}
	look := func() (lines []string) {
		for _, u := range all {
			lines = append(lines, fmt.Sprintln(u, d.prop(u, "ActiveState"), d.prop(u, "InvocationID"), d.prop(u, "MainPID")))
		}
		return lines
	}
	before := look()
	require.Contains(t, before[0], "failed")
	d.apply(d.service("", "ensure: running\n", sleeper))
	d.converged()
	d.withdraw()
	require.Equal(t, before, look())
	d.run("systemctl", "stop", "f121-kept.service")
}
