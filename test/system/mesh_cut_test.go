package system

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestANodeThatIsCutOffKeepsWhatItHolds cuts a node off for a minute: drift is
// undone, what is declared meanwhile lands when the cable is back, and what
// happened meanwhile is reported.
func TestANodeThatIsCutOffKeepsWhatItHolds(t *testing.T) {
	r := startMesh(t, "ws1", "ws2")
	ws1, ws2 := r.nodes["ws1"], r.nodes["ws2"]
	web, newWeb, db := sleeper(1), sleeper(2), sleeper(3)
	r.apply(map[string]string{"web": addressed("web", "all: true", web), "db": addressed("db", "nodes: [ws1]", db),
		"gone": addressed("gone", "nodes: [ws1]", sleeper(9))})

	cut := time.Now()
	require.NoError(t, r.net.Cut(t.Context(), ws1.Node))
	drift := func(what string, undo ...string) {
		t.Helper()
		ws1.Run(t, undo...)
		begun := time.Now()
		ws1.until("drift is undone while it is cut off", func() bool {
			return ws1.runs("web.service", web) && ws1.runs("db.service", db) && ws1.prop("db.service", "UnitFileState") == "enabled"
		})
		t.Logf("cut off for %s, %s; put right after %s", time.Since(cut).Round(time.Second), what, time.Since(begun).Round(time.Millisecond))
	}
	drift("a unit stopped", "systemctl", "stop", "web.service")
	r.write(map[string]string{"web": addressed("web", "all: true", newWeb), "late": addressed("late", "all: true", sleeper(4)), "gone": ""})
	begun := time.Now()
	r.done("apply", "-f", declared)
	r.done("withdraw", "gone")
	answered := time.Since(begun)
	ws2.until("the other node has what was declared", func() bool { return ws2.runs("web.service", newWeb) })
	t.Logf("applied and withdrawn after %s, on the other node after %s", answered.Round(time.Millisecond), time.Since(begun).Round(time.Millisecond))
	drift("a unit disabled", "systemctl", "disable", "db.service")
	time.Sleep(time.Until(cut.Add(40 * time.Second)))
	drift("a unit file changed", "sh", "-c", "echo '# mine' >> "+etc+"/db.service")
	time.Sleep(time.Until(cut.Add(time.Minute)))
	require.True(t, ws1.runs("gone.service", sleeper(9)) && ws1.absent("late.service"), "it was told of what was declared")

	landed := []time.Duration{r.rejoin(ws1, "late.service", sleeper(4))}
	r.reports("ws1 db 1", "ws1 late 1", "ws1 web 2", "ws2 late 1", "ws2 web 2")
	require.True(t, ws1.runs("web.service", newWeb) && ws1.absent("gone.service"))
	r.tellsOfDrift("ws1", cut)

	// The same twice more, shorter: a slow moment of this machine proves nothing.
	for i, name := range []string{"later", "last"} {
		require.NoError(t, r.net.Cut(t.Context(), ws1.Node))
		begun, content := time.Now(), sleeper(10+i)
		r.write(map[string]string{name: addressed(name, "all: true", content)})
		r.done("apply", "-f", declared)
		ws1.until("the host notices that it is cut off", func() bool {
			st, err := ws1.status()
			return err == nil && !st.Source.Mesh.Connected
		})
		t.Logf("the host noticed after %s that it is cut off", time.Since(begun).Round(time.Millisecond))
		landed = append(landed, r.rejoin(ws1, name+".service", content))
	}
	t.Logf("after the reconnect, three times: %s", landed)
	require.Less(t, slices.Min(landed), 10*time.Second, "nobody waits for the next of the questions that come every half minute: %s", landed)
}

// rejoin gives a node its cable back, waits until a unit runs that was declared
// meanwhile, and says how long after the reconnect that began.
func (r *rig) rejoin(m *machine, unit, content string) time.Duration {
	r.Helper()
	joined := time.Now()
	require.NoError(r, r.net.Join(r.Context(), m.Node))
	m.until("what was declared meanwhile has landed", func() bool { return m.runs(unit, content) })
	st, err := os.Stat(m.Path(path.Join(etc, unit)))
	require.NoError(r, err)
	m.until("it runs as declared", func() bool { return m.begun(unit).After(st.ModTime()) })
	status, err := m.status()
	require.NoError(r, err)
	require.NotNil(r, status.Source.Mesh)
	back, begun := status.Source.Mesh.Since, m.begun(unit)
	r.Logf("connected %s after the cable was back, the unit file written %s after that, its process begun %s after that",
		back.Sub(joined).Round(time.Millisecond), st.ModTime().Sub(back).Round(time.Millisecond), begun.Sub(st.ModTime()).Round(time.Millisecond))
	require.Positive(r, back.Sub(joined), "it was connected all the time")
	return begun.Sub(back)
}

// begun is when the process of a unit began.
func (m *machine) begun(unit string) time.Time {
	m.t.Helper()
	at := strings.TrimSpace(m.Run(m.t, "systemctl", "show", "--timestamp=us+utc", "--value", "--property=ExecMainStartTimestamp", unit))
	began, err := time.Parse("Mon 2006-01-02 15:04:05.000000 MST", at)
	require.NoError(m.t, err)
	return began
}

// tellsOfDrift waits until the mesh was told, each thing once, what the host put
// right in the minute after cut.
func (r *rig) tellsOfDrift(node string, cut time.Time) {
	r.Helper()
	var told []string
	last := ""
	r.ctl.until("what happened while it was cut off is told", func() bool {
		told = nil
		for _, e := range r.events("-n", node) {
			if e.At.After(cut) && e.At.Before(cut.Add(59*time.Second)) && e.Source == "host" {
				told = append(told, e.Declaration+" "+e.Kind)
			}
		}
		last = fmt.Sprintf("%q", told)
		return slices.Contains(told, "web started") && slices.Contains(told, "db written")
	}, &last)
	once := slices.Compact(slices.Sorted(slices.Values(told)))
	require.Subset(r, []string{"web started", "web outcome", "db written", "db outcome", "db reload", " reload"}, once)
	require.Equal(r, 1, count(told, "web started"), last)
	require.Equal(r, 2, count(told, "db written"), "the link and the file: %s", last)
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

// TestANodeThatRebootsWhileItIsCutOffEnforcesEverything takes its power away while
// nobody reaches it, and changes its disk while it is off.
func TestANodeThatRebootsWhileItIsCutOffEnforcesEverything(t *testing.T) {
	r := startMesh(t, "ws1")
	ws1 := r.nodes["ws1"]
	old, now := sleeper(1), sleeper(2)
	r.apply(map[string]string{"web": addressed("web", "all: true", old), "db": addressed("db", "nodes: [ws1]", sleeper(3))})
	require.NoError(t, r.net.Cut(t.Context(), ws1.Node))
	r.write(map[string]string{"web": addressed("web", "all: true", now)})
	r.done("apply", "-f", declared)

	for name, cycle := range map[string]func(){
		"reboot": func() { require.NoError(t, ws1.Reboot(t.Context())) },
		"power cut": func() {
			require.NoError(t, ws1.PowerCut(t.Context()))
			require.NoError(t, os.WriteFile(ws1.Disk(etc+"/web.service"), []byte(sleeper(66)), 0o644))
			require.NoError(t, os.Remove(ws1.Disk(etc+"/multi-user.target.wants/db.service")))
			require.NoError(t, ws1.PowerOn(t.Context()))
		},
	} {
		begun := time.Now()
		cycle()
		ws1.until("everything is enforced after a "+name, func() bool {
			return ws1.runs("web.service", old) && ws1.runs("db.service", sleeper(3)) &&
				ws1.link(etc+"/multi-user.target.wants/db.service") == etc+"/db.service"
		})
		t.Logf("%s: everything enforced %s after it began", name, time.Since(begun).Round(time.Millisecond))
		ws1.outcome("web", report.Converged, "")
		ws1.outcome("db", report.Converged, "")
	}
	require.Contains(t, ws1.Run(t, "sh", "-c", "stead host status || [ $? = 3 ]"), "web.service", "it says what it keeps")

	t.Logf("landed %s after the reconnect", r.rejoin(ws1, "web.service", now))
	r.reports("ws1 db 1", "ws1 web 2")
}
