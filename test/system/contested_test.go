package system

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/report"
)

// TestAUnitThatIsFoughtOverIsContestedAndRecovers stops a unit again and again,
// within a minute. It is restored each time, later and later, and nobody else is.
func TestAUnitThatIsFoughtOverIsContestedAndRecovers(t *testing.T) {
	m := running(t, map[string]string{"web": up("web", sleeper(0)), "other": up("other", sleeper(1))})
	active := func() bool { return m.prop("web.service", "ActiveState") == "active" }
	var took []time.Duration
	for range 4 {
		// Long enough for the host to see it settled.
		m.until("it has been up for a while", func() bool {
			r := m.report("web")
			return r != nil && r.State.Active == "active" && active() && (r.Outcome == report.Converged || len(took) >= 3)
		})
		time.Sleep(1500 * time.Millisecond)
		from := time.Now()
		m.Run(t, "systemctl", "stop", "web.service")
		m.until("it is up again", active)
		took = append(took, time.Since(from).Round(time.Millisecond))
	}
	t.Logf("restored after %s", took)
	require.Less(t, took[0], 4*time.Second)
	require.Greater(t, took[2], 4*time.Second, "the third stop within a minute is answered with delay")
	require.Greater(t, took[3], took[2]+4*time.Second, "and the fourth with more")
	r := m.outcome("web", report.Contested, "")
	require.Contains(t, r.Text, "stopped from outside")
	t.Logf("the report: %s", r.Text)
	require.Equal(t, report.Converged, m.report("other").Outcome)

	from := time.Now()
	m.declare(map[string]string{"web": up("web", sleeper(2))})
	m.until("a new declaration is applied all the same", func() bool { return m.read(etc+"/web.service") == sleeper(2) })
	if full() {
		require.True(t, m.within(3*time.Minute, func() bool { return m.report("web").Outcome == report.Converged }), "it recovers by itself")
		t.Logf("converged again after %s of peace", time.Since(from).Round(time.Second))
	}
}
