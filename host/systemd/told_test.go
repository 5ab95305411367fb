package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
	"stead/test/lab"
)

// TestSignalsSayWhatALookWouldRead holds what signals tell of units, in many
// states and on the way from one to another, against what a manager that has
// heard none of them reads.
func TestSignalsSayWhatALookWouldRead(t *testing.T) {
	if !lab.Inside(t, lab.Options{}) {
		return
	}
	texts := map[unit.Name]string{
		"runs.service":     "[Service]\nExecStart=/bin/sleep infinity",
		"stopped.service":  "[Service]\nExecStart=/bin/sleep infinity",
		"killed.service":   "[Service]\nExecStart=/bin/sleep infinity",
		"restarts.service": "[Service]\nExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=10ms",
		"waits.service":    "[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=1h",
		"fails.service":    "[Service]\nExecStart=/bin/sh -c 'exit 3'",
		"once.service":     "[Service]\nType=oneshot\nExecStart=/bin/true",
		"stays.service":    "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true",
		"slow.service":     "[Service]\nType=oneshot\nExecStart=/bin/sleep infinity",
		"unmet.service":    "[Unit]\nConditionPathExists=/nope\n[Service]\nExecStart=/bin/sleep infinity",
		"asserts.service":  "[Unit]\nAssertPathExists=/nope\n[Service]\nExecStart=/bin/sleep infinity",
		"never.service":    "[Service]\nExecStart=/bin/sleep infinity",
		"tick.timer":       "[Timer]\nOnActiveSec=1h\nUnit=stopped.service",
		"group.target":     "[Unit]\nDescription=A target",
		"ear.socket":       "[Socket]\nListenStream=/run/ear\nService=never.service",
	}
	wants := "/etc/systemd/system/multi-user.target.wants"
	require.NoError(t, os.MkdirAll(wants, 0o755))
	var names []unit.Name
	var starts []unit.JobRequest
	for n, text := range texts {
		p := filepath.Join("/etc/systemd/system", string(n))
		require.NoError(t, os.WriteFile(p, []byte(text+"\n"), 0o644))
		require.NoError(t, os.Symlink(p, filepath.Join(wants, string(n)))) // it stays loaded
		names = append(names, n)
		if n != "never.service" {
			starts = append(starts, unit.JobRequest{Name: n, Type: unit.StartJob})
		}
	}
	var count counter
	m := connect(t, Options{OnCall: count.add})
	_, err := m.Reload(t.Context())
	require.NoError(t, err)
	agree := func(when string, most int) {
		t.Helper()
		time.Sleep(300 * time.Millisecond)
		count.take()
		_, err := m.Observe(t.Context(), names)
		require.NoError(t, err)
		asked := count.take()["Get"]
		told, err := m.Observe(t.Context(), names) // with what triggers them
		require.NoError(t, err)
		deaf := connect(t, Options{})
		_, err = deaf.Observe(t.Context(), names)
		require.NoError(t, err)
		read, err := deaf.Observe(t.Context(), names)
		require.NoError(t, err)
		for i := range read {
			read[i].NeedReload, told[i].NeedReload = false, false // of the definition, which no signal tells
		}
		require.Equal(t, read, told, "%s", when)
		t.Log(when, asked, "calls")
		require.LessOrEqual(t, asked, most*len(names), when)
	}
	agree("loaded", 4)
	for _, q := range m.Enqueue(t.Context(), starts) {
		require.NoError(t, q.Err, q.Request)
	}
	agree("started", 2)
	at := make(map[unit.Name]unit.Status)
	now, err := m.Observe(t.Context(), names)
	require.NoError(t, err)
	for _, s := range now {
		at[s.Asked] = s
	}
	for _, n := range []unit.Name{"killed.service", "restarts.service"} {
		require.NoError(t, syscall.Kill(int(at[n].MainPID), syscall.SIGKILL))
	}
	for _, q := range m.Enqueue(t.Context(), []unit.JobRequest{{Name: "stopped.service", Type: unit.StopJob}, {Name: "group.target", Type: unit.StopJob},
		{Name: "tick.timer", Type: unit.StopJob}, {Name: "runs.service", Type: unit.RestartJob}, {Name: "slow.service", Type: unit.StopJob}}) {
		require.NoError(t, q.Err, q.Request)
	}
	agree("stopped, killed, restarted", 2)
	require.NoError(t, os.WriteFile("/nope", nil, 0o644))
	for _, q := range m.Enqueue(t.Context(), starts) {
		require.NoError(t, q.Err, fmt.Sprint(q.Request))
	}
	agree("started again", 2)
	_, err = m.Reload(t.Context())
	require.NoError(t, err)
	agree("reloaded", 10)
}
