package system

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/test/lab"
)

// before is what stands on a machine before stead: units of every kind that a
// declaration can meet.
func (m *machine) before() {
	m.t.Helper()
	own := func(n int) string { return strings.Replace(sleeper(n), "[Install]", "Nice=3\n[Install]", 1) }
	for file, content := range map[string]string{
		etc + "/ran.service":                           own(1), // another content, and it runs
		etc + "/lay.service":                           own(2), // another content, disabled and at rest
		etc + "/broken.service":                        "[Service]\nExecStart=/bin/false\n",
		"/usr/lib/systemd/system/vendor.service":       own(3), // enabled by the vendor's preset, and it runs
		"/usr/lib/systemd/system/quiet.service":        own(4), // a vendor's, at rest
		"/usr/lib/systemd/system-preset/10-lab.preset": "enable vendor.service\ndisable *\n",
		etc + "/ran.service.d/50-mine.conf":            "[Service]\nEnvironment=MINE=1\n",
	} {
		require.NoError(m.t, m.WriteFile(file, []byte(content), 0o644))
	}
	m.Run(m.t, "chmod", "0600", etc+"/lay.service")
	m.Run(m.t, "chown", "1:1", etc+"/lay.service")
	m.Run(m.t, "systemctl", "daemon-reload")
	m.Run(m.t, "systemctl", "preset", "vendor.service")
	m.Run(m.t, "systemctl", "enable", "--now", "ran.service")
	m.Run(m.t, "systemctl", "start", "vendor.service")
	_, err := m.Exec(m.t.Context(), "systemctl", "start", "broken.service")
	require.NoError(m.t, err)
	m.until("broken has failed", func() bool { return m.prop("broken.service", "ActiveState") == "failed" })
}

// TestWithdrawalLeavesTheMachineAsItWas compares all that is on the disk and all
// that the manager knows, before stead and after.
func TestWithdrawalLeavesTheMachineAsItWas(t *testing.T) {
	m := install(t)
	m.before()
	m.startHost()
	m.converged(m.declare(map[string]string{"stays": up("stays", sleeper(0))}))
	before := m.snapshot()
	process := m.prop("vendor.service", "MainPID")

	files := map[string]string{
		"new":    up("new", sleeper(10)),
		"ran":    up("ran", sleeper(11)),
		"lay":    up("lay", sleeper(12)),
		"broken": up("broken", sleeper(13)),
		"vendor": text{"vendor", "ensure: stopped\nenabled: false\ndropins: {10-x.conf: \"[Service]\\nNice=7\\n\"}\n", ""}.String(),
		"quiet":  up("quiet", sleeper(14)),
		"many": documents(text{"dropins", "ensure: running\nenabled: true\ndropins: {10-a.conf: \"[Service]\\nNice=1\\n\", 20-b.conf: \"[Install]\\nRequiredBy=new.service\\n\"}\n", sleeper(15)}.String(),
			text{"alias", "ensure: running\nenabled: true\n", sleeper(16) + "Alias=nickname.service\n"}.String(),
			text{"timer", "unit: timer.timer\nensure: running\nenabled: true\n", "[Timer]\nOnCalendar=yearly\nUnit=alias.service\n[Install]\nWantedBy=timers.target\n"}.String(),
			text{"once", "ensure: running\n", "[Service]\nType=oneshot\nExecStart=/bin/true\n"}.String(),
			text{"template", "unit: tmpl@.service\n", sleeper(17)}.String()),
	}
	t.Logf("declared: converged after %s", m.converged(m.declare(files)).Round(time.Millisecond))
	require.Contains(t, m.read(etc+"/ran.service"), "100011")
	require.Equal(t, "inactive", m.prop("vendor.service", "ActiveState"))
	require.NotEmpty(t, before.Diff(m.snapshot()), "the comparison sees what is declared")

	gone := make(map[string]string)
	for name := range files {
		gone[name] = ""
	}
	t.Logf("withdrawn: given back after %s", m.converged(m.declare(gone)).Round(time.Millisecond))
	// That a unit had failed is the one state that cannot be given back.
	require.Equal(t, []string{"unit broken.service: it was loaded failed failed, and is not there"}, before.Diff(m.snapshot()),
		"what is another than before")
	require.Equal(t, "active", m.prop("ran.service", "ActiveState"))
	require.Contains(t, m.read("/proc/"+m.prop("ran.service", "MainPID")+"/environ"), "MINE=1", "it runs its old definition")
	require.Contains(t, m.read("/proc/"+m.prop("ran.service", "MainPID")+"/cmdline"), "100001")
	require.NotEqual(t, process, m.prop("vendor.service", "MainPID"), "what was stopped was started again")
}

// snapshot is all of the node that a comparison looks at.
func (m *machine) snapshot() lab.Snapshot {
	m.t.Helper()
	s, err := m.Snapshot(m.t.Context())
	require.NoError(m.t, err)
	for p := range s.Disk {
		if strings.HasPrefix(p, folder) {
			delete(s.Disk, p) // the operator's own
		}
	}
	return s
}

// TestReleaseTouchesNothing withdraws with on_withdraw: release.
func TestReleaseTouchesNothing(t *testing.T) {
	m := running(t, map[string]string{"stays": up("stays", sleeper(0)),
		"web": text{"web", "ensure: running\nenabled: true\non_withdraw: release\n", sleeper(1)}.String()})
	b := m.listen(t, nil)
	invocation := m.prop("web.service", "InvocationID")
	m.converged(m.declare(map[string]string{"web": ""}))
	require.Equal(t, sleeper(1), m.read(etc+"/web.service"))
	require.Equal(t, etc+"/web.service", m.link(etc+"/multi-user.target.wants/web.service"))
	require.Equal(t, invocation, m.prop("web.service", "InvocationID"))
	require.Zero(t, b.jobsOf("web.service"))
	m.Run(t, "systemctl", "stop", "web.service")
	time.Sleep(2 * time.Second)
	require.Equal(t, "inactive", m.prop("web.service", "ActiveState"), "it is nobody's any more")
}

// TestAMissingOrEmptiedFolderWithdrawsNothing takes the files away in both ways.
// What was accepted stays in force, and is kept.
func TestAMissingOrEmptiedFolderWithdrawsNothing(t *testing.T) {
	m := running(t, map[string]string{"a": up("a", sleeper(0)), "b": up("b", sleeper(1))})
	b := m.listen(t, nil)
	kept := func(state string) {
		t.Helper()
		require.Zero(t, b.jobsOf("a.service", "b.service"), state)
		st, err := m.status()
		require.NoError(t, err)
		require.Len(t, st.Reports, 2, state)
		m.Run(t, "systemctl", "stop", "a.service")
		m.until("what was accepted is kept, "+state, func() bool { return m.prop("a.service", "ActiveState") == "active" })
		b.reset()
	}
	trouble := func(words string) {
		t.Helper()
		m.until("the folder is said to be "+words, func() bool {
			st, err := m.status()
			return err == nil && strings.Contains(st.Source.Trouble, words)
		})
		time.Sleep(3 * time.Second) // longer than a file that went is given to come back
	}
	m.Run(t, "mv", folder, "/run/declarations")
	trouble("missing")
	kept("without a folder")
	m.Run(t, "mkdir", folder)
	trouble("no declaration file")
	kept("with an empty folder")
	m.Run(t, "systemctl", "restart", service)
	trouble("no declaration file")
	kept("after a restart")
	out, err := m.Exec(t.Context(), "stead", "host", "status")
	require.NoError(t, err)
	require.Equal(t, 3, out.Code)
	require.Contains(t, out.Stdout, "withdraws nothing")
	m.Run(t, "sh", "-c", "rmdir "+folder+" && mv /run/declarations "+folder)
	m.until("the folder is well again", func() bool { st, err := m.status(); return err == nil && st.Source.Trouble == "" })
	require.Zero(t, b.jobsOf("a.service", "b.service"))
}

// TestAFolderWithOneMistakeChangesNothing declares good news beside bad.
func TestAFolderWithOneMistakeChangesNothing(t *testing.T) {
	m := running(t, map[string]string{"a": up("a", sleeper(0)), "b": up("b", sleeper(1))})
	b := m.listen(t, nil)
	// The mistakes come first: a host that reads between two writes finds no folder without them.
	m.declare(map[string]string{"d": "shape: service\nname: d\nensured: running\nenabled: maybe\n"})
	m.declare(map[string]string{"a": up("a", sleeper(7)), "b": "", "c": up("c", sleeper(2))})
	m.until("both mistakes are told", func() bool {
		s, err := m.status()
		return err == nil && len(s.Source.Problems) == 2
	})
	s, err := m.status()
	require.NoError(t, err)
	t.Logf("problems: %q", s.Source.Problems)
	for _, p := range s.Source.Problems {
		require.Contains(t, p, "d.yaml:")
	}
	time.Sleep(3 * time.Second)
	require.Zero(t, b.jobsOf("a.service", "b.service", "c.service"))
	require.Equal(t, sleeper(0), m.read(etc+"/a.service"))
	require.Empty(t, m.read(etc+"/c.service"))
	m.Run(t, "systemctl", "stop", "b.service")
	m.Run(t, "rm", etc+"/a.service")
	m.until("what was accepted is kept", func() bool {
		return m.prop("b.service", "ActiveState") == "active" && m.read(etc+"/a.service") == sleeper(0)
	})
	m.converged(m.declare(map[string]string{"d": ""}))
	require.Equal(t, sleeper(7), m.read(etc+"/a.service"), "without the mistake all of it is taken over")
	require.Equal(t, "inactive", m.prop("b.service", "ActiveState"))
	require.Equal(t, "active", m.prop("c.service", "ActiveState"))
}

// TestADeclarationThatIsRenamedNeitherStopsNorStartsItsUnit gives another name to
// the declaration of the same unit.
func TestADeclarationThatIsRenamedNeitherStopsNorStartsItsUnit(t *testing.T) {
	doc := func(name string) string {
		return text{name, "unit: web.service\nensure: running\nenabled: true\n", sleeper(0)}.String()
	}
	m := running(t, map[string]string{"web": doc("web")})
	b := m.listen(t, nil)
	invocation := m.prop("web.service", "InvocationID")
	m.converged(m.declare(map[string]string{"web": doc("www")}))
	require.Equal(t, "www", m.report("web.service").Name)
	time.Sleep(3 * time.Second)
	reloads, _ := b.count()
	require.Zero(t, reloads)
	require.Zero(t, b.jobsOf("web.service"))
	require.Equal(t, invocation, m.prop("web.service", "InvocationID"))
	require.Equal(t, sleeper(0), m.read(etc+"/web.service"))
}

// TestADeclarationWithAnotherUnitGivesTheOldOneBack changes the unit of a
// declaration that keeps its name.
func TestADeclarationWithAnotherUnitGivesTheOldOneBack(t *testing.T) {
	doc := func(unit string) string {
		return text{"web", fmt.Sprintf("unit: %s.service\nensure: running\nenabled: true\n", unit), sleeper(0)}.String()
	}
	m := running(t, map[string]string{"web": doc("old")})
	m.converged(m.declare(map[string]string{"web": doc("new")}))
	require.Equal(t, "active", m.prop("new.service", "ActiveState"))
	require.Equal(t, "inactive", m.prop("old.service", "ActiveState"))
	require.Equal(t, "not-found", m.prop("old.service", "LoadState"))
	require.Empty(t, m.link(path.Join(etc, "multi-user.target.wants/old.service")))
}
