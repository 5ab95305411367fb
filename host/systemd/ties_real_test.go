package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

func TestTiesAndMainProcessesAreThoseOfPID1(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	for name, text := range map[string]string{
		"base.service":  "[Unit]\nConflicts=foe.service\nPropagatesStopTo=told.service\n[Service]\nUser=daemon\nExecStart=/bin/sleep infinity\n[Install]\nAlias=alias.service\n",
		"needs.service": "[Unit]\nRequires=base.service\n[Service]\nExecStart=/bin/sleep infinity\n",
		"part.service":  "[Unit]\nPartOf=base.service\n[Service]\nDynamicUser=yes\nExecStart=/bin/sleep infinity\n",
		"bound.service": "[Unit]\nBindsTo=base.service\n[Service]\nExecStart=/bin/sleep infinity\n",
		"base.timer":    "[Timer]\nOnActiveSec=1d\n",
		"told.service":  "[Service]\nExecStart=/bin/sleep infinity\n",
		"foe.service":   "[Service]\nExecStart=/bin/sleep infinity\n",
		"x@.service":    "[Service]\nExecStart=/bin/sleep infinity\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join("/etc/systemd/system", name), []byte(text), 0o644))
	}
	require.NoError(t, os.Symlink("base.service", "/etc/systemd/system/alias.service"))
	m := connect(t, Options{})
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, []unit.Name{"needs.service", "part.service", "bound.service", "base.service", "base.timer"})

	ties, err := m.Ties(t.Context(), []unit.Name{"alias.service", "foe.service", "x@.service", "none.service"})
	require.NoError(t, err)
	base := ties[0]
	require.Equal(t, unit.Name("base.service"), base.ID)
	require.Equal(t, []any{unit.Loaded, unit.Active, "running"}, []any{base.Load, base.Active, base.Sub})
	require.Equal(t, []unit.Name{"base.timer"}, base.TriggeredBy)
	require.Len(t, base.Invocation, 32)
	require.Equal(t, []unit.Name{"alias.service", "base.service"}, base.Names)
	require.Contains(t, base.Conflicts, unit.Name("foe.service"))
	require.Subset(t, base.StopsWith, []unit.Name{"bound.service", "needs.service", "part.service"})
	if out, err := exec.Command("systemctl", "show", "-P", "PropagatesStopTo", "base.service").Output(); err == nil && len(out) > 1 {
		require.Contains(t, base.StopsWith, unit.Name("told.service")) // since 249
	}
	require.Contains(t, ties[1].Conflicts, unit.Name("base.service"), "by which it is in conflict")
	require.Equal(t, unit.Ties{}, ties[2])
	require.Equal(t, []unit.Name{"none.service"}, ties[3].Names)
	require.Equal(t, []any{unit.NotFound, unit.Inactive}, []any{ties[3].Load, ties[3].Active})

	listed, err := m.Named(t.Context(), []unit.Name{"none.service", "alias.service", "foe.service"})
	require.NoError(t, err)
	require.Equal(t, []unit.Listed{
		{Name: "none.service", Load: unit.NotFound, Active: unit.Inactive, Sub: "dead"}, {Name: "base.service", Load: unit.Loaded, Active: unit.Active, Sub: "running"},
		{Name: "foe.service", Load: unit.Loaded, Active: unit.Inactive, Sub: "dead"},
	}, listed)

	for name, runs := range map[unit.Name]bool{"base.service": true, "part.service": true, "needs.service": false} {
		p, err := m.Process(t.Context(), name)
		require.NoError(t, err)
		// A process that was only just made has not become who it is to be.
		for end := time.Now().Add(20 * time.Second); runs && p.UID == unit.NoUID && time.Now().Before(end); {
			p, err = m.Process(t.Context(), name)
			require.NoError(t, err)
		}
		st, err := m.Observe(t.Context(), []unit.Name{name})
		require.NoError(t, err)
		require.Equal(t, st[0].MainPID, p.PID)
		require.Equal(t, st[0].Invocation, p.Invocation)
		require.Equal(t, runs, p.UID != unit.NoUID, "%s says as whom it runs", name)
		require.NotZero(t, p.UID)
	}
	for _, name := range []unit.Name{"foe.service", "none.service", "multi-user.target", "dbus.socket"} {
		p, err := m.Process(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, unit.Process{UID: unit.NoUID}, p, name)
	}
}

// TestWhatAJobMadeOfItsUnitIsToldBeforeItsEnd: whoever hears of the end need not ask
// how the unit stands.
func TestWhatAJobMadeOfItsUnitIsToldBeforeItsEnd(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	m := connect(t, Options{})
	names := sleepers(t, 30)
	require.NoError(t, os.WriteFile("/etc/systemd/system/bad.service", []byte("[Service]\nType=oneshot\nExecStart=/bin/false\n"), 0o644))
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	_, _, ok := m.Standing(names[0])
	require.False(t, ok, "it was not heard of yet")
	names = append(names, "bad.service")
	for _, job := range []unit.JobType{unit.StartJob, unit.RestartJob, unit.StopJob} {
		requests := make([]unit.JobRequest, len(names))
		for i, n := range names {
			requests[i] = unit.JobRequest{Name: n, Type: job}
		}
		m.Drain()
		for _, q := range m.Enqueue(t.Context(), requests) {
			require.NoError(t, q.Err)
		}
		for ended := 0; ended < len(names); {
			select {
			case <-m.Wake():
			case <-time.After(20 * time.Second):
				t.Fatalf("%d of %d jobs ended", ended, len(names))
			}
			for _, j := range m.Drain().Jobs {
				ended++
				active, _, ok := m.Standing(j.Unit)
				want := map[bool]unit.ActiveState{true: unit.Active, false: unit.Inactive}[job != unit.StopJob]
				if j.Unit == "bad.service" {
					want = unit.FailedState
				}
				if !ok && job == unit.StopJob {
					continue // it was unloaded
				}
				require.Equal(t, []any{true, want}, []any{ok, active}, "%s %s", job, j.Unit)
			}
		}
		listed, err := m.Named(t.Context(), names)
		require.NoError(t, err)
		for _, l := range listed {
			if active, sub, ok := m.Standing(l.Name); ok {
				require.Equal(t, []any{l.Active, l.Sub}, []any{active, sub}, l.Name)
			}
		}
	}
}

// TestWhoIsTheMainProcessIsToldBeforeItIsAnswered: a Mark that is the same behind an
// answer says that nothing changed, however the main process becomes another.
func TestWhoIsTheMainProcessIsToldBeforeItIsAnswered(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	for name, text := range map[string]string{
		"dies.service": "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=1ms\nExecStart=/bin/sleep 0.02\n",
		"hands.service": "[Service]\nType=notify\nNotifyAccess=all\nExecStart=/bin/sh -c 'sleep infinity & other=$$!; systemd-notify --ready; " +
			"while :; do systemd-notify MAINPID=$$other; systemd-notify MAINPID=$$$$; done'\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join("/etc/systemd/system", name), []byte(text), 0o644))
	}
	m := connect(t, Options{})
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	startAll(t, m, []unit.Name{"dies.service", "hands.service"})
	for _, name := range []unit.Name{"dies.service", "hands.service"} {
		mark := m.Mark(name)
		word, err := m.Process(t.Context(), name)
		require.NoError(t, err)
		changes, same := 0, 0
		for end := time.Now().Add(20 * time.Second); changes < 50 && time.Now().Before(end); {
			at := m.Mark(name)
			now, err := m.Process(t.Context(), name)
			require.NoError(t, err)
			if m.Mark(name) == mark {
				require.Equal(t, word, now, "%s: nothing new was said, and it is another one", name)
				same++
				continue
			}
			if now != word {
				changes++
			}
			mark, word = at, now
		}
		require.Equal(t, 50, changes, name)
		t.Log(name, "was the same", same, "times")
	}
}
