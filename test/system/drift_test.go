package system

import (
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// drift is something that somebody does to a unit behind the host's back.
type drift struct {
	unit   string
	act    []string // a command in the node
	runs   bool     // the unit is run anew by what undoes it
	undone func(m *machine) bool
}

func drifts() map[string]drift {
	file := func(u string) string { return path.Join(etc, u+".service") }
	wants := func(u string) string { return path.Join(etc, "multi-user.target.wants", u+".service") }
	content := func(u string) func(*machine) bool {
		return func(m *machine) bool { return m.read(file(u)) == sleeper(0) }
	}
	linked := func(u string) func(*machine) bool {
		return func(m *machine) bool { return m.link(wants(u)) == file(u) }
	}
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	return map[string]drift{
		"stopped":             {"stopped", []string{"systemctl", "stop", "stopped"}, true, nil},
		"process":             {"process", []string{"systemctl", "kill", "--signal=KILL", "process"}, true, nil},
		"edited":              {"edited", sh("echo '# mine' >> " + file("edited")), false, content("edited")},
		"edited and reloaded": {"reloaded", sh("sed -i s/100000/7777777/ " + file("reloaded") + "; systemctl daemon-reload; systemctl restart reloaded"), true, content("reloaded")},
		"deleted":             {"deleted", []string{"rm", file("deleted")}, false, content("deleted")},
		"link removed":        {"unlinked", []string{"rm", wants("unlinked")}, false, linked("unlinked")},
		"link turned":         {"turned", []string{"ln", "-sf", "/usr/lib/systemd/system/nothing.service", wants("turned")}, false, linked("turned")},
		"disabled":            {"disabled", []string{"systemctl", "disable", "disabled"}, false, linked("disabled")},
		"mode": {"mode", []string{"chmod", "666", file("mode")}, false, func(m *machine) bool {
			st, err := os.Stat(m.Path(file("mode")))
			return err == nil && st.Mode().Perm() == 0o644
		}},
		"owner": {"owner", []string{"chown", "1:1", file("owner")}, false, func(m *machine) bool {
			return strings.TrimSpace(m.Run(m.t, "stat", "-c", "%u:%g", file("owner"))) == "0:0"
		}},
		"drop-in of ours edited": {"dropin", sh("echo > " + path.Join(etc, "dropin.service.d/10-nice.conf")), false, func(m *machine) bool {
			return strings.Contains(m.read(path.Join(etc, "dropin.service.d/10-nice.conf")), "Nice=5")
		}},
	}
}

// TestWhatIsDoneBehindItsBackIsUndone does each thing to a unit of its own, all
// at once.
func TestWhatIsDoneBehindItsBackIsUndone(t *testing.T) {
	var docs []string
	for _, d := range drifts() {
		fields := "ensure: running\nenabled: true\n"
		if d.unit == "dropin" {
			fields += "dropins: {10-nice.conf: \"[Service]\\nNice=5\\n\"}\n"
		}
		docs = append(docs, text{d.unit, fields, sleeper(0)}.String())
	}
	docs = append(docs, up("bystander", sleeper(0)))
	m := running(t, map[string]string{"all": documents(docs...)})
	b := m.listen(t, nil)
	before := make(map[string]string)
	for _, d := range drifts() {
		before[d.unit] = m.prop(d.unit+".service", "InvocationID")
	}
	for _, name := range sorted(drifts()) {
		m.Run(t, drifts()[name].act...)
	}
	from := time.Now()
	for _, name := range sorted(drifts()) {
		d := drifts()[name]
		if d.undone != nil {
			m.until(name+" is undone", func() bool { return d.undone(m) })
		}
		m.until(name+": the unit runs", func() bool {
			return m.prop(d.unit+".service", "ActiveState") == "active" && (!d.runs || m.prop(d.unit+".service", "InvocationID") != before[d.unit])
		})
	}
	took := m.converged(from)
	t.Logf("everything was undone and seen to be so after %s", took.Round(time.Millisecond))
	for _, name := range sorted(drifts()) {
		d := drifts()[name]
		if !d.runs {
			require.Equal(t, before[d.unit], m.prop(d.unit+".service", "InvocationID"), "%s: the process goes on", name)
		}
		require.Equal(t, "no", m.prop(d.unit+".service", "NeedDaemonReload"), name)
	}
	require.Zero(t, b.jobsOf("bystander.service"), "jobs of a unit to which nothing was done")
	m.until("the edit is kept and the report says where", func() bool {
		r := m.report("edited")
		_, kept, said := strings.Cut(strings.Join(r.Warnings, "\n"), "that version is kept as ")
		return said && strings.Contains(m.read(strings.Split(kept, "\n")[0]), "# mine")
	})
}

// TestAForeignDropInIsTakenInOnce adds what is not stead's: it stays, and the
// unit takes it in by one restart.
func TestAForeignDropInIsTakenInOnce(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0)), "other": up("other", sleeper(1))})
	b := m.listen(t, nil)
	for _, reloaded := range []bool{true, false} {
		n := strconv.FormatBool(reloaded)
		drop := path.Join(etc, "web.service.d", n+".conf")
		b.reset()
		before := m.prop("web.service", "InvocationID")
		require.NoError(t, m.WriteFile(drop, []byte("[Service]\nEnvironment=T"+n+"=1\n"), 0o644))
		if reloaded {
			m.Run(t, "systemctl", "daemon-reload")
		}
		m.until("the unit runs anew", func() bool { return m.prop("web.service", "InvocationID") != before })
		m.converged(time.Now(), "web")
		require.Equal(t, 1, b.jobsOf("web.service"), "jobs, reloaded by hand: %t", reloaded)
		require.Contains(t, m.read("/proc/"+m.prop("web.service", "MainPID")+"/environ"), "T"+n+"=1")
		require.Contains(t, m.read(drop), "T"+n, "the drop-in stays")
		require.Zero(t, b.jobsOf("other.service"))
	}
}

// TestAMaskFromOutsideIsReportedAndNotFought masks a declared unit by hand, which
// systemctl refuses where the unit's own file lies, and by force.
func TestAMaskFromOutsideIsReportedAndNotFought(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0))})
	out, err := m.Exec(t.Context(), "systemctl", "mask", "web.service")
	require.NoError(t, err)
	require.NotZero(t, out.Code, "systemctl masks over a unit file in /etc")
	m.Run(t, "ln", "-sf", "/dev/null", etc+"/web.service")
	r := m.outcome("web", report.Refused, report.IsMasked)
	require.Contains(t, r.Text, etc+"/web.service")
	require.Equal(t, "/dev/null", m.link(etc+"/web.service"), "the mask stays")
	require.Equal(t, "active", m.prop("web.service", "ActiveState"), "and the process goes on")
	from := time.Now()
	m.Run(t, "systemctl", "unmask", "web.service")
	m.converged(from, "web")
	require.Equal(t, sleeper(0), m.read(etc+"/web.service"))
}

// TestAFolderInThePlaceOfAUnitFileIsReported puts what stead never takes away
// where a unit file is to be.
func TestAFolderInThePlaceOfAUnitFileIsReported(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0))})
	m.Run(t, "sh", "-c", "rm "+etc+"/web.service && mkdir "+etc+"/web.service")
	r := m.outcome("web", report.Failed, report.DiskError)
	require.Contains(t, r.Text, "a folder stands there")
	require.NotZero(t, r.Retry)
	require.Equal(t, "active", m.prop("web.service", "ActiveState"), "the process goes on")
	from := time.Now()
	m.Run(t, "rmdir", etc+"/web.service")
	m.converged(from, "web")
	require.Equal(t, sleeper(0), m.read(etc+"/web.service"))
}
