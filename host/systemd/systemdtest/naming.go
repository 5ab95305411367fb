package systemdtest

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// naming are the cases about which unit a name means.
func naming() map[string]func(*kit) {
	return map[string]func(*kit){
		"an alias is answered with the primary name":   alias,
		"a unit becomes an alias, and one of its own":  becomesAlias,
		"a bulk keeps order, doubles and missing ones": bulkOrder,
		"hundreds of units in one look":                hundreds,
		"templates and instances in a bulk":            templates,
		"names with odd characters":                    oddNames,
		"a name that is not valid fails nobody else":   invalidName,
		"no names, no answer":                          noNames,
	}
}

func alias(k *kit) {
	k.write("ct-real.service", sleeper)
	k.link("ct-real.service", "ct-nick.service")
	k.reload()
	got := k.observe("ct-nick.service", "ct-real.service")
	require.Equal(k.t, unit.Name("ct-real.service"), got[0].ID)
	k.fresh()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-nick.service"))
	got = k.observe("ct-nick.service", "ct-real.service")
	require.Equal(k.t, unit.Name("ct-nick.service"), got[0].Asked)
	got[0].Asked = got[1].Asked
	require.Equal(k.t, got[1], got[0])
	require.Equal(k.t, unit.Active, got[0].Active)
	k.named("ct-real.service")
	require.False(k.t, k.seen["ct-nick.service"])
}

func becomesAlias(k *kit) {
	k.refer("ct-nick.service")
	k.reload()
	require.Equal(k.t, unit.NotFound, k.observe("ct-nick.service")[0].Load)
	k.write("ct-real.service", sleeper)
	k.link("ct-real.service", "ct-nick.service")
	k.reload()
	got := k.observe("ct-nick.service")[0]
	require.Equal(k.t, unit.Name("ct-real.service"), got.ID)
	require.Equal(k.t, unit.Loaded, got.Load)
	require.Equal(k.t, k.Dir+"/ct-real.service", got.Fragment)

	k.write("ct-nick.service.d/a.conf", "[Unit]\nDescription=by its other name\n")
	k.reload()
	require.Equal(k.t, []string{k.Dir + "/ct-nick.service.d/a.conf"}, k.observe("ct-real.service")[0].DropIns)

	k.refer("ct-real.service")
	require.NoError(k.t, os.Remove(filepath.Join(k.Dir, "ct-real.service")))
	k.write("ct-nick.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.Name("ct-nick.service"), k.observe("ct-nick.service")[0].ID, "and a unit of its own again")
	require.Equal(k.t, unit.NotFound, k.observe("ct-real.service")[0].Load)
}

func bulkOrder(k *kit) {
	k.write("ct-1.service", sleeper)
	k.write("ct-2.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-2.service"))
	got := k.observe("ct-2.service", "ct-no.service", "ct-1.service", "ct-2.service", "ct-no.service")
	require.Equal(k.t, unit.Active, got[0].Active)
	require.Equal(k.t, unit.NotFound, got[1].Load)
	require.Equal(k.t, unit.Inactive, got[2].Active)
	require.Equal(k.t, unit.Loaded, got[2].Load)
	require.Equal(k.t, got[0], got[3])
	require.Equal(k.t, got[1], got[4])
}

func hundreds(k *kit) {
	var names []unit.Name
	var starts []unit.JobRequest
	for i := range 300 {
		n := unit.Name(fmt.Sprintf("ct-h%d.service", i))
		if i%10 != 9 { // every tenth does not exist
			k.write(string(n), sleeper)
		}
		if i%3 == 0 && i%10 != 9 {
			starts = append(starts, unit.JobRequest{Name: n, Type: unit.StartJob})
		}
		names = append(names, n)
	}
	k.reload()
	for i, q := range k.Manager.Enqueue(k.ctx, starts) {
		require.NoError(k.t, q.Err)
		require.Equal(k.t, starts[i], q.Request)
		require.Equal(k.t, unit.JobDone, k.end(q.ID).Result)
	}
	for i, s := range k.observe(names...) {
		switch {
		case i%10 == 9:
			require.Equal(k.t, unit.NotFound, s.Load, names[i])
		case i%3 == 0:
			require.Equal(k.t, unit.Active, s.Active, names[i])
		default:
			require.Equal(k.t, unit.Inactive, s.Active, names[i])
			require.Equal(k.t, unit.Loaded, s.Load, names[i])
		}
	}
}

func templates(k *kit) {
	k.write("ct-t@.service", sleeper)
	k.write("ct-after.service", sleeper)
	k.reload()
	k.used = append(k.used, "ct-t@one.service")
	got := k.observe("ct-t@.service", "ct-t@one.service", "ct-no@.service", "ct-no@one.service", "ct-after.service")
	require.Equal(k.t, unit.Loaded, got[0].Load)
	require.Equal(k.t, unit.Inactive, got[0].Active)
	require.Equal(k.t, unit.Loaded, got[1].Load)
	require.Equal(k.t, unit.NotFound, got[2].Load)
	require.Equal(k.t, unit.NotFound, got[3].Load)
	require.Equal(k.t, unit.Loaded, got[4].Load)
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{
		{Name: "ct-t@.service", Type: unit.StartJob}, {Name: "ct-t@one.service", Type: unit.StartJob},
	})
	require.Equal(k.t, fault.Invalid, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "missing the instance name")
	require.NoError(k.t, q[1].Err)
	require.Equal(k.t, unit.JobDone, k.end(q[1].ID).Result)
	require.Equal(k.t, unit.Active, k.look("ct-t@one.service").Active)
}

func oddNames(k *kit) {
	names := []unit.Name{
		"ct-my_data-1.2.service", `ct-my\x2ddata.service`, "ct-A:b.service", "ct-x@a@b.service",
		"ct-x@1-2_3.4.service", `ct-x@\xc3\xa4.service`, "ct-..service",
	}
	k.write("ct-x@.service", sleeper)
	var starts []unit.JobRequest
	for _, n := range names {
		if n.IsInstance() {
			k.used = append(k.used, n)
		} else {
			k.write(string(n), sleeper)
		}
		starts = append(starts, unit.JobRequest{Name: n, Type: unit.StartJob})
	}
	k.reload()
	k.fresh()
	for _, q := range k.Manager.Enqueue(k.ctx, starts) {
		require.NoError(k.t, q.Err)
		end := k.end(q.ID)
		require.Equal(k.t, unit.JobEnd{ID: q.ID, Unit: q.Request.Name, Result: unit.JobDone}, end)
	}
	for i, s := range k.observe(names...) {
		require.Equal(k.t, names[i], s.ID)
		require.Equal(k.t, unit.Active, s.Active, names[i])
		require.Len(k.t, s.Invocation, 32)
		k.named(names[i])
	}
	k.fresh()
	require.NoError(k.t, k.Other.Kill(k.look(names[0]).MainPID))
	k.until("the end of its process", func() bool { return k.seen[names[0]] })
}

func invalidName(k *kit) {
	k.write("ct-ok.service", sleeper)
	k.reload()
	got := k.observe("/etc/x.service", "ct-ok.service", "nonsense")
	require.Equal(k.t, unit.LoadFailed, got[0].Load)
	require.Contains(k.t, got[0].Trouble.LoadError, "it is a path")
	require.Equal(k.t, unit.Loaded, got[1].Load)
	require.Equal(k.t, unit.LoadFailed, got[2].Load)
}

func noNames(k *kit) {
	require.Empty(k.t, k.observe())
	require.Empty(k.t, k.Manager.Enqueue(k.ctx, nil))
	require.Empty(k.t, k.Manager.ResetFailed(k.ctx, nil))
}
