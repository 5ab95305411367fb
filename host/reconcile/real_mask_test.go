package reconcile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
	"stead/host/shape"
	"stead/host/unit"
	"stead/test/lab"
)

// look asks systemd how a unit stands.
func (m *machine) look(n unit.Name) unit.Status {
	m.t.Helper()
	all, err := m.manager.Observe(m.t.Context(), []unit.Name{n})
	require.NoError(m.t, err)
	return all[0]
}

// lays out a file below the root, or a link where the text begins with "-> "; ""
// takes it away.
func (m *machine) lay(p, text string) {
	m.t.Helper()
	_ = os.Remove(p)
	if text == "" {
		return
	}
	require.NoError(m.t, os.MkdirAll(filepath.Dir(p), 0o755))
	if to, is := strings.CutPrefix(text, "-> "); is {
		require.NoError(m.t, os.Symlink(to, p))
		return
	}
	require.NoError(m.t, os.WriteFile(p, []byte(text), 0o644))
}

func (m *machine) stands(p string) string {
	if to, err := os.Readlink(p); err == nil {
		return "-> " + to
	}
	data, _ := os.ReadFile(p)
	return string(data)
}

// reread makes systemd read its files.
func (m *machine) reread() {
	m.t.Helper()
	_, err := m.manager.Reload(m.t.Context())
	require.NoError(m.t, err)
}

func (m *machine) run(j unit.JobType, names ...unit.Name) {
	m.t.Helper()
	for _, n := range names {
		for _, q := range m.manager.Enqueue(m.t.Context(), []unit.JobRequest{{Name: n, Type: j}}) {
			require.NoError(m.t, q.Err)
		}
	}
}

// comes waits until the declarations of units are reported like that.
func (m *machine) comes(o report.Outcome, why report.Reason, units ...unit.Name) {
	m.t.Helper()
	for _, n := range units {
		require.True(m.t, lab.Await(time.Minute, func() bool {
			for _, r := range m.loop.Reports() {
				if r.Unit == n {
					return r.Outcome == o && r.Reason == why
				}
			}
			return false
		}), "%s: %s %s: %+v", n, o, why, m.loop.Reports())
	}
}

// gone waits until nothing is reported any more.
func (m *machine) gone() {
	m.t.Helper()
	m.declare()
	require.True(m.t, lab.Await(time.Minute, func() bool { return len(m.loop.Reports()) == 0 }), "%+v", m.loop.Reports())
}

const (
	realVendor = "/usr/local/lib/systemd/system/"
	realWants  = realEtc + "/multi-user.target.wants/"
	realSleeps = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
)

// TestMasksOnSystemd masks what is missing, a vendor's, somebody's own and what was
// declared before, all of it running, while somebody starts all of it again and
// again; and gives it back.
func TestMasksOnSystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	m := newMachine(t)
	m.lay(realVendor+"vendor.service", realSleeps)
	m.lay(realWants+"vendor.service", "-> "+realVendor+"vendor.service")
	m.lay(realVendor+"both.service", realSleeps)
	m.lay(realEtc+"/both.service", realSleeps+"#\n")
	m.lay(realEtc+"/own.service", realSleeps)
	m.lay(realWants+"own.service", "-> ../own.service")
	// both start what they are about as soon as it is down
	m.lay(realEtc+"/hammer.path", "[Path]\nPathExists=/etc/passwd\nUnit=own.service\nTriggerLimitIntervalSec=0\n")
	m.lay(realEtc+"/hammer.timer", "[Timer]\nOnActiveSec=1ms\nOnUnitInactiveSec=1ms\nAccuracySec=1ms\nUnit=vendor.service\n")
	m.reread()
	m.declare(service("declared", "/bin/sleep infinity"))
	m.comes(report.Converged, "", "declared.service")
	m.run(unit.StartJob, "vendor.service", "both.service", "own.service", "hammer.path", "hammer.timer")
	for _, n := range []unit.Name{"vendor.service", "both.service", "own.service", "hammer.path"} {
		require.True(t, lab.Await(time.Minute, func() bool { return m.look(n).Active == unit.Active }), n)
	}
	names := []unit.Name{"absent.service", "vendor.service", "both.service", "own.service", "declared.service"}
	var all []*shape.Service
	for _, n := range names {
		all = append(all, masked(n.Stem(), true))
	}
	all[4].Content = service("declared", "/bin/sleep infinity").Content
	m.declare(all...)
	m.comes(report.Converged, "", names...)
	for _, n := range names {
		st := m.look(n)
		require.Equal(t, unit.Masked, st.Load, n)
		require.True(t, st.Active.Down(), "%s is %s", n, st.Active)
		require.Equal(t, "-> /dev/null", m.stands(realEtc+"/"+string(n)))
		require.NoFileExists(t, realWants+string(n))
	}
	steps := m.ears.take()
	for _, n := range names[1:] {
		mask := -1
		for i, s := range steps[n] {
			if strings.HasPrefix(s, "link "+realEtc+"/"+string(n)+":") {
				mask = i
			}
		}
		require.Greater(t, mask, 0, "%s", steps[n])
		require.Contains(t, strings.Join(steps[n][:mask], "\n"), "stop "+string(n), "it is stopped before: %s", steps[n])
		require.True(t, strings.HasPrefix(steps[n][mask+1], "reload system manager"), "with a reload of its own: %s", steps[n])
	}
	q := m.manager.Enqueue(t.Context(), []unit.JobRequest{{Name: "own.service", Type: unit.StartJob}})
	require.ErrorContains(t, q[0].Err, "masked")
	quiet := m.quiet()
	m.declare(all...)
	require.Empty(t, m.quiet(), "applied again nothing is done; before it was %v", quiet)
	m.run(unit.StopJob, "hammer.path", "hammer.timer")

	m.gone()
	require.Equal(t, []string{"", "", realSleeps + "#\n", realSleeps, ""}, []string{m.stands(realEtc + "/absent.service"),
		m.stands(realEtc + "/vendor.service"), m.stands(realEtc + "/both.service"), m.stands(realEtc + "/own.service"), m.stands(realEtc + "/declared.service")})
	require.Equal(t, []string{"-> " + realVendor + "vendor.service", "-> ../own.service"}, []string{m.stands(realWants + "vendor.service"), m.stands(realWants + "own.service")})
	for _, n := range []unit.Name{"vendor.service", "both.service", "own.service"} {
		st := m.look(n)
		require.Equal(t, []any{unit.Loaded, unit.Active}, []any{st.Load, st.Active}, n)
	}
	require.Equal(t, unit.NotFound, m.look("absent.service").Load)
	require.Equal(t, unit.NotFound, m.look("declared.service").Load)
	m.lifts()
}

// lifts takes masks of others away, and gives them back.
func (m *machine) lifts() {
	t, off, on := m.t, false, true
	m.lay(realVendor+"lifted.service", realSleeps)
	m.lay(realEtc+"/lifted.service", "-> /dev/null")
	m.lay(realVendor+"blank.service", realSleeps)
	m.lay("/run/systemd/system/blank.service", "-> /dev/null")
	m.lay(realEtc+"/brought.service", "-> /dev/null")
	m.lay(realVendor+"never.service", "-> /dev/null")
	m.reread()
	run := func(s *shape.Service) { s.Ensure, s.Enabled = shape.Running, &on }
	m.declare(masked("lifted", false, run), masked("blank", false, run), service("brought", "/bin/sleep infinity", func(s *shape.Service) { s.Masked = &off }),
		masked("never", false, run))
	m.comes(report.Converged, "", "lifted.service", "blank.service", "brought.service")
	m.comes(report.Refused, report.IsMasked, "never.service")
	for _, n := range []unit.Name{"lifted.service", "blank.service", "brought.service"} {
		st := m.look(n)
		require.Equal(t, []any{unit.Loaded, unit.Active}, []any{st.Load, st.Active}, n)
		require.NotEmpty(t, m.stands(realWants+string(n)), n)
	}
	m.gone()
	for _, n := range []unit.Name{"lifted.service", "blank.service", "brought.service"} {
		st := m.look(n)
		require.Equal(t, unit.Masked, st.Load, n)
		require.True(t, st.Active.Down(), n)
		require.Empty(t, m.stands(realWants+string(n)))
	}
}

// TestRefreshesOnSystemd changes triggers of units that take changes in in every
// way, also while the host is away, and kills it on the way.
func TestRefreshesOnSystemd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	m := newMachine(t)
	const conf, marks = "/etc/app.conf", "/run/marks/"
	require.NoError(t, os.MkdirAll(marks, 0o755))
	m.lay(conf, "1")
	unitOf := func(name string, how shape.OnChange, reload string) *shape.Service {
		// each run, and each reload, leaves a line
		text := fmt.Sprintf("[Service]\nType=simple\nExecStart=/bin/sh -c 'echo run >>%[1]s%[2]s; exec sleep infinity'\n", marks, name)
		if reload != "" {
			text += fmt.Sprintf("ExecReload=/bin/sh -c 'echo reload >>%s%s; %s'\n", marks, name, reload)
		}
		return &shape.Service{Name: name, Scope: unit.System, Unit: unit.Name(name + ".service"), Content: &text, Ensure: shape.Running,
			OnChange: how, Triggers: []string{conf}, Timeout: time.Minute, OnWithdraw: shape.Restore}
	}
	all := []*shape.Service{unitOf("reload", shape.ReloadOnChange, "true"), unitOf("restart", shape.RestartOnChange, "true"),
		unitOf("either", shape.ReloadOrRestart, "true"), unitOf("else", shape.ReloadOrRestart, ""), unitOf("none", shape.IgnoreChange, "true"),
		unitOf("absent", "", ""), unitOf("strict", shape.ReloadOnChange, ""), unitOf("down", "", "true")}
	all[7].Ensure = shape.Unmanaged
	all[7].Enabled = new(bool)
	again := unitOf("again", "", "")
	again.Ensure, again.Triggers = shape.Restarted, nil
	all = append(all, again)
	left := func(name string) string { return strings.ReplaceAll(m.stands(marks+name), "\n", " ") }
	is := func(what string, want map[string]string) {
		t.Helper()
		m.quiet()
		got := make(map[string]string)
		for name := range want {
			got[name] = left(name)
		}
		require.Equal(t, want, got, what)
	}
	m.declare(all...)
	is("a first start takes the triggers in", map[string]string{"reload": "run ", "restart": "run ", "either": "run ", "else": "run ", "none": "run ",
		"absent": "run ", "strict": "run ", "down": "", "again": "run "})
	m.lay(conf, "2")
	after := map[string]string{"reload": "run reload ", "restart": "run run ", "either": "run reload ", "else": "run run ", "none": "run ",
		"absent": "run run ", "strict": "run ", "down": "", "again": "run "}
	is("each takes the change in as declared, once", after)
	m.comes(report.Failed, report.CannotReload, "strict.service")
	m.restarted()
	m.declare(all...)
	is("and nobody does it again", after)
	m.halt()
	m.lay(conf, "3")
	m.start("")
	m.declare(all...)
	for name, more := range map[string]string{"reload": "reload ", "restart": "run ", "either": "reload ", "else": "run ", "absent": "run "} {
		after[name] += more
	}
	is("while the host was down", after)
	for i, at := range []string{"remembered", "queued"} {
		m.halt()
		m.lay(conf, fmt.Sprint("k", i))
		next := *again // another generation
		next.Timeout += time.Duration(i+1) * time.Second
		all[8] = &next
		after["again"] += "run "
		m.killedAt(at, all...)
		m.start("")
		m.declare(all...)
		for name, more := range map[string]string{"reload": "reload ", "restart": "run ", "either": "reload ", "else": "run ", "absent": "run "} {
			after[name] += more
		}
		is("killed when it had "+at, after)
	}
	m.run(unit.StartJob, "down.service")
	after["down"] = "run "
	is("a start takes in what changed before it", after)
}
