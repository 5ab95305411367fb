package systemdtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// changes are the cases about what wakes and what is drained.
func changes() map[string]func(*kit) {
	return map[string]func(*kit){
		"a stop by somebody else names the unit":         stoppedByOther,
		"a reload reports all":                           reloadReportsAll,
		"a reload by somebody else reports all":          otherReloads,
		"a look at inactive units wakes nobody":          noWakeStorm,
		"a drained change does not come again":           drainedOnce,
		"a change of a unit that nobody asked for comes": unaskedUnit,
	}
}

func stoppedByOther(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	require.Equal(k.t, unit.Active, k.look("ct-s.service").Active)
	k.fresh()
	q := k.Other.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-s.service", Type: unit.StopJob}})
	require.NoError(k.t, q[0].Err)
	k.becomes("ct-s.service", "stops", inactive)
	k.named("ct-s.service")
	require.Zero(k.t, k.all)
	require.Equal(k.t, unit.JobEnd{ID: q[0].ID, Unit: "ct-s.service", Result: unit.JobDone}, k.end(q[0].ID))
}

func reloadReportsAll(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	k.fresh()
	took, err := k.Manager.Reload(k.ctx)
	require.NoError(k.t, err)
	require.Positive(k.t, took)
	require.Less(k.t, took, patience)
	k.drain()
	require.Equal(k.t, 1, k.all, "by the time that Reload returns")
}

func otherReloads(k *kit) {
	k.fresh()
	_, err := k.Other.Reload(k.ctx)
	require.NoError(k.t, err)
	k.until("a reload", func() bool { return k.all > 0 })
}

func noWakeStorm(k *kit) {
	var names []unit.Name
	for i := range 20 {
		n := unit.Name(fmt.Sprintf("ct-i%d.service", i))
		if i%2 == 0 {
			k.write(string(n), sleeper)
		}
		names = append(names, n)
	}
	k.write("ct-i@.service", sleeper)
	names = append(names, "ct-i@.service", "ct-i@x.service")
	k.reload()
	k.observe(names...)
	time.Sleep(500 * time.Millisecond)
	k.drain()
	for range 3 {
		k.observe(names...)
		k.quiet()
	}
}

func drainedOnce(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	k.look("ct-s.service")
	time.Sleep(500 * time.Millisecond)
	k.drain()
	ch := k.Manager.Drain()
	require.Zero(k.t, ch)
	k.quiet()
}

func unaskedUnit(k *kit) {
	k.write("ct-u.service", sleeper)
	k.reload()
	k.fresh()
	q := k.Other.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-u.service", Type: unit.StartJob}})
	require.NoError(k.t, q[0].Err)
	k.until("its start", func() bool { return k.seen["ct-u.service"] })
}
