package system

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAnApplyOfAHundredUnitsTakesOneReload counts from outside: the signals of the
// manager on the system bus.
func TestAnApplyOfAHundredUnitsTakesOneReload(t *testing.T) {
	m := running(t, map[string]string{"first": up("first", sleeper(0))})
	b := m.listen(t, nil)
	m.Run(t, "systemctl", "daemon-reload")
	m.until("the witness counts a reload", func() bool { n, _ := b.count(); return n == 1 })
	b.reset()

	files := make(map[string]string)
	var units []string
	for i := range 10 {
		var docs []string
		for j := range 10 {
			name := fmt.Sprintf("unit%d%d", i, j)
			docs, units = append(docs, up(name, sleeper(10*i+j))), append(units, name+".service")
		}
		files[fmt.Sprintf("set%d", i)] = documents(docs...)
	}
	files["first"] = up("first", sleeper(0))
	took := m.converged(m.replace(files))

	reloads, jobs := b.count()
	t.Logf("100 units were converged %s after their folder was there", took.Round(time.Millisecond))
	require.Equal(t, 1, reloads, "reloads")
	for i, state := range m.props("ActiveState", units) {
		require.Equal(t, "active", state, units[i])
		require.Equal(t, 1, jobs[units[i]], "jobs of %s", units[i])
		require.Equal(t, etc+"/"+units[i], m.link(etc+"/multi-user.target.wants/"+units[i]))
	}
	require.Zero(t, jobs["first.service"], "a unit that is right is left alone")
}
