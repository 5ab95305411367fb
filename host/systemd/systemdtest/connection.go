package systemdtest

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// connections are the cases about the way to the manager.
func connections() map[string]func(*kit) {
	return map[string]func(*kit){
		"a lost connection comes back and reports all":       comesBack,
		"a call that is canceled returns at once":            canceled,
		"a unit keeps its invocation over a lost connection": survives,
	}
}

func comesBack(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	for range 2 {
		k.fresh()
		require.NoError(k.t, k.Other.Cut(k.ctx))
		k.until("the lost connection", func() bool { return k.all > 0 })
		k.until("a connection", k.Manager.Connected)
		require.Equal(k.t, unit.Active, k.look("ct-s.service").Active)
	}
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-s.service"))
}

func survives(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	before := k.look("ct-s.service")
	k.fresh()
	require.NoError(k.t, k.Other.Cut(k.ctx))
	k.until("the lost connection", func() bool { return k.all > 0 })
	after := k.look("ct-s.service")
	require.Equal(k.t, before.Invocation, after.Invocation)
	require.Equal(k.t, before.MainPID, after.MainPID)
	require.Equal(k.t, before.Started, after.Started)
}

func canceled(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	at := time.Now()
	_, err := k.Manager.Observe(ctx, []unit.Name{"ct-a.service"})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Manager.Reload(ctx)
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	q := k.Manager.Enqueue(ctx, []unit.JobRequest{{Name: "ct-a.service", Type: unit.StartJob}})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(q[0].Err))
	errs := k.Manager.ResetFailed(ctx, []unit.Name{"ct-a.service"})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(errs[0]))
	_, err = k.Manager.Version(ctx)
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	require.Less(k.t, time.Since(at), time.Second)
}

func sortCases(cases []Case) {
	slices.SortFunc(cases, func(a, b Case) int { return cmp.Compare(a.Name, b.Name) })
}
