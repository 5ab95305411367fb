package systemdtest

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

const sleeper = "[Service]\nExecStart=/bin/sleep infinity\n"

// definitions are the cases about what a unit is loaded from.
func definitions() map[string]func(*kit) {
	return map[string]func(*kit){
		"a missing unit is answered":                 missingUnit,
		"a written unit starts after a reload":       writtenUnit,
		"a drop-in is seen after a reload":           dropInNeedsReload,
		"drop-ins come in the order of their names":  dropInOrder,
		"a mask needs a reload, and so does its end": maskNeedsReload,
		"an empty file is a mask":                    emptyFileMasks,
		"a masked unit that runs can be stopped":     maskedStops,
		"a bad definition has systemd's words":       badSetting,
		"a dbus service wants a bus name":            dbusWithoutName,
		"a removed file is noticed after a reload":   removedFile,
		"the folder of unit files is in the path":    unitPath,
	}
}

func missingUnit(k *kit) {
	s := k.look("ct-missing.service")
	require.Equal(k.t, unit.NotFound, s.Load)
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Equal(k.t, unit.Name("ct-missing.service"), s.ID)
	require.Empty(k.t, s.Fragment)
	require.Empty(k.t, s.DropIns)
	require.Empty(k.t, s.Invocation)
	require.Contains(k.t, s.Trouble.LoadError, "ct-missing.service not found")
}

func writtenUnit(k *kit) {
	k.write("ct-w.service", sleeper)
	k.reload()
	s := k.look("ct-w.service")
	require.Equal(k.t, unit.Loaded, s.Load)
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Equal(k.t, "dead", s.Sub)
	require.Empty(k.t, s.Invocation)
	require.Zero(k.t, s.Started)
	require.Equal(k.t, filepath.Join(k.Dir, "ct-w.service"), s.Fragment)

	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-w.service"))
	s = k.look("ct-w.service")
	require.Equal(k.t, unit.Active, s.Active)
	require.Equal(k.t, "running", s.Sub)
	require.Equal(k.t, filepath.Join(k.Dir, "ct-w.service"), s.Fragment)
	require.Len(k.t, s.Invocation, 32)
	require.NotZero(k.t, s.MainPID)
	require.NotZero(k.t, s.Started)
	require.GreaterOrEqual(k.t, s.Changed, s.Started)
	require.Zero(k.t, s.Restarts)
	require.Zero(k.t, s.Job)
	require.Equal(k.t, unit.Trouble{}, s.Trouble)
	require.Equal(k.t, s, k.look("ct-w.service"), "a second look at an unchanged unit says the same")
}

func dropInNeedsReload(k *kit) {
	k.write("ct-d.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-d.service"))
	require.Empty(k.t, k.look("ct-d.service").DropIns)
	k.write("ct-d.service.d/a.conf", "[Service]\nNice=3\n")
	require.Empty(k.t, k.look("ct-d.service").DropIns, "it was not loaded yet")
	k.reload()
	require.Equal(k.t, []string{filepath.Join(k.Dir, "ct-d.service.d/a.conf")}, k.look("ct-d.service").DropIns)
	require.NoError(k.t, os.RemoveAll(filepath.Join(k.Dir, "ct-d.service.d")))
	require.Len(k.t, k.look("ct-d.service").DropIns, 1, "it is still loaded")
	k.reload()
	require.Empty(k.t, k.look("ct-d.service").DropIns)
}

func dropInOrder(k *kit) {
	k.write("ct-o.service", sleeper)
	for _, f := range []string{"20-b.conf", "10-z.conf", "30-a.conf"} {
		k.write("ct-o.service.d/"+f, "[Service]\nNice=3\n")
	}
	k.write("ct-o.service.d/ignored.txt", "[Service]\n")
	k.reload()
	dir := filepath.Join(k.Dir, "ct-o.service.d")
	require.Equal(k.t, []string{dir + "/10-z.conf", dir + "/20-b.conf", dir + "/30-a.conf"}, k.look("ct-o.service").DropIns)
}

func maskNeedsReload(k *kit) {
	k.write("ct-m.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-m.service"))
	k.link("/dev/null", "ct-m.service")
	require.Equal(k.t, unit.Loaded, k.look("ct-m.service").Load, "it was not loaded yet")
	k.reload()
	s := k.look("ct-m.service")
	require.Equal(k.t, unit.Masked, s.Load)
	require.Equal(k.t, unit.Active, s.Active, "a mask stops nothing")
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-m.service", Type: unit.StartJob}})
	require.Equal(k.t, fault.Refused, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "masked")

	k.write("ct-m.service", sleeper)
	require.Equal(k.t, unit.Masked, k.look("ct-m.service").Load, "it is still loaded so")
	k.reload()
	require.Equal(k.t, unit.Loaded, k.look("ct-m.service").Load)
}

func emptyFileMasks(k *kit) {
	k.write("ct-e.service", "")
	k.reload()
	s := k.look("ct-e.service")
	require.Equal(k.t, unit.Masked, s.Load)
	require.Contains(k.t, s.Trouble.LoadError, "masked")
}

func maskedStops(k *kit) {
	k.write("ct-ms.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-ms.service"))
	k.link("/dev/null", "ct-ms.service")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-ms.service"))
	s := k.look("ct-ms.service")
	require.Equal(k.t, unit.Masked, s.Load)
	require.Equal(k.t, unit.Inactive, s.Active)
}

func badSetting(k *kit) {
	k.write("ct-b1.service", "[Service]\nType=simple\n")
	k.write("ct-b2.service", "[Service]\nType=oneshot\nRestart=always\nExecStart=/bin/true\n")
	k.reload()
	for _, s := range k.observe("ct-b1.service", "ct-b2.service") {
		require.Equal(k.t, unit.BadSetting, s.Load)
		require.Equal(k.t, unit.Inactive, s.Active)
		require.Contains(k.t, s.Trouble.LoadError, "bad unit file setting")
		require.Equal(k.t, filepath.Join(k.Dir, string(s.ID)), s.Fragment)
	}
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-b1.service", Type: unit.StartJob}})
	require.Equal(k.t, fault.Failed, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "bad unit file setting")
}

// Loading it kills the manager of systemd 247 (seen); 252 and 257 refuse it.
func dbusWithoutName(k *kit) {
	if k.version() < 252 {
		return
	}
	k.write("ct-b.service", "[Service]\nType=dbus\nExecStart=/bin/sleep infinity\n")
	k.reload()
	require.Equal(k.t, unit.BadSetting, k.look("ct-b.service").Load)
}

func removedFile(k *kit) {
	k.write("ct-r.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-r.service"))
	require.NoError(k.t, os.Remove(filepath.Join(k.Dir, "ct-r.service")))
	require.Equal(k.t, unit.Loaded, k.look("ct-r.service").Load)
	k.reload()
	s := k.look("ct-r.service")
	require.Equal(k.t, unit.NotFound, s.Load)
	require.Equal(k.t, unit.Active, s.Active, "its process runs on")
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-r.service"))
	require.Equal(k.t, unit.Inactive, k.look("ct-r.service").Active)
}

func unitPath(k *kit) {
	path, err := k.Manager.UnitPath(k.ctx)
	require.NoError(k.t, err)
	require.Contains(k.t, path, k.Dir)
	v, err := k.Manager.Version(k.ctx)
	require.NoError(k.t, err)
	require.Regexp(k.t, `^\d+`, v)
}
