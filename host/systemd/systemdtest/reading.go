package systemdtest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// reading are the cases about all that is told of one unit.
func reading() map[string]func(*kit) {
	return map[string]func(*kit){
		"a unit that runs is told in full":               tellsRunning,
		"a figure that is not there is null with reason": tellsUnset,
		"a service that ended has its exit":              tellsExit,
		"a unit that is missing or masked is told so":    tellsMissing,
		"a unit is told by each of its names":            tellsAlias,
		"what triggers and is triggered is told":         tellsTriggers,
		"what was not met is told":                       tellsUnmet,
		"a job in the queue is told":                     tellsJob,
		"there is nothing to tell of a template":         tellsNoTemplate,
		"a unit without an Install section is static":    tellsStatic,
		"a reader outlives the manager's connections":    readsOverCut,
		"a reader whose call is canceled returns":        readsCanceled,
	}
}

func (k *kit) details(n unit.Name) unit.Details {
	k.t.Helper()
	d, err := k.Reader.Details(k.ctx, n)
	require.NoError(k.t, err)
	return d
}

// told waits until the unit is told to be as ok says.
func (k *kit) told(n unit.Name, ok func(unit.Details) bool) unit.Details {
	k.t.Helper()
	var d unit.Details
	k.until(string(n)+" as told", func() bool {
		d = k.details(n)
		return ok(d)
	})
	return d
}

const full = `[Unit]
Description=Größe, and 20% more
Documentation=man:sleep(1) https://example.invalid/x

[Service]
ExecStart=/bin/sleep infinity

[Install]
WantedBy=multi-user.target
`

func tellsRunning(k *kit) {
	k.write("ct-full.service.d/a.conf", "[Service]\nNice=1\n")
	before := time.Now().Add(-time.Millisecond)
	require.Equal(k.t, unit.JobDone, k.started("ct-full.service", full))
	d := k.details("ct-full.service")
	require.Equal(k.t, unit.Name("ct-full.service"), d.ID)
	require.Equal(k.t, []unit.Name{"ct-full.service"}, d.Names)
	require.Equal(k.t, "Größe, and 20% more", d.Description)
	require.Equal(k.t, []string{"man:sleep(1)", "https://example.invalid/x"}, d.Documents)
	require.Equal(k.t, unit.Loaded, d.Load)
	require.Empty(k.t, d.LoadError)
	require.Equal(k.t, unit.Active, d.Active)
	require.Equal(k.t, "running", d.Sub)
	require.Equal(k.t, "success", d.Result)
	require.Equal(k.t, "disabled", d.Enablement)
	require.Equal(k.t, unit.PresetEnabled, d.Preset)
	require.Equal(k.t, filepath.Join(k.Dir, "ct-full.service"), d.Fragment)
	require.Equal(k.t, []string{filepath.Join(k.Dir, "ct-full.service.d/a.conf")}, d.DropIns)
	require.False(k.t, d.NeedReload)
	s := k.look("ct-full.service")
	require.Equal(k.t, s.Invocation, d.Invocation)
	require.Equal(k.t, s.MainPID, *d.MainPID)
	require.Zero(k.t, *d.Restarts)
	require.Zero(k.t, d.Job)
	require.WithinRange(k.t, *d.Since, before, time.Now().Add(time.Millisecond))
	require.Empty(k.t, d.Unmet)
	require.Equal(k.t, d.Memory == nil, d.Unset[unit.FigureMemory] != "")
	require.Equal(k.t, d.Tasks == nil, d.Unset[unit.FigureTasks] != "")
	// The job of a simple service is done before its process ran at all.
	for end := time.Now().Add(patience); *d.CPU == 0 && time.Now().Before(end); {
		d = k.details("ct-full.service")
	}
	require.NotZero(k.t, *d.CPU)
}

func tellsUnset(k *kit) {
	k.write("ct-d.service", sleeper)
	k.write("ct-d.target", "[Unit]\nDescription=d\n")
	k.reload()
	d := k.details("ct-d.service")
	require.Nil(k.t, d.Memory)
	require.Nil(k.t, d.CPU)
	require.Nil(k.t, d.Tasks)
	require.Nil(k.t, d.MainPID)
	require.Nil(k.t, d.ExitStatus)
	require.Nil(k.t, d.Since)
	require.Zero(k.t, *d.Restarts)
	require.Empty(k.t, d.ExitCode)
	require.Equal(k.t, map[string]string{
		unit.FigureMemory: "[not set]: it does not run", unit.FigureCPU: "[not set]: it does not run", unit.FigureTasks: "[not set]: it does not run",
		unit.FigureMainPID: "it has no main process", unit.FigureExitStatus: "no main process of it has ended",
		unit.FigureSince: "it has been so ever since it was loaded",
	}, d.Unset)
	d = k.details("ct-d.target")
	require.Nil(k.t, d.Restarts)
	require.Empty(k.t, d.Result)
	for _, f := range []string{unit.FigureMemory, unit.FigureCPU, unit.FigureTasks, unit.FigureMainPID, unit.FigureRestarts, unit.FigureExitStatus} {
		require.Equal(k.t, "units of type target have none", d.Unset[f], f)
	}
}

func tellsExit(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-x.service", service("ExecStart=/bin/false")))
	d := k.told("ct-x.service", func(d unit.Details) bool { return d.Active == unit.FailedState })
	require.Equal(k.t, "failed", d.Sub)
	require.Equal(k.t, "exit-code", d.Result)
	require.Equal(k.t, "exited", d.ExitCode)
	require.Equal(k.t, 1, *d.ExitStatus)
	require.Nil(k.t, d.MainPID)
	require.NotNil(k.t, d.Since)
	require.NotContains(k.t, d.Unset, unit.FigureExitStatus)

	require.Equal(k.t, unit.JobDone, k.started("ct-k.service", sleeper))
	require.NoError(k.t, k.Other.Kill(*k.details("ct-k.service").MainPID))
	d = k.told("ct-k.service", func(d unit.Details) bool { return d.Active == unit.FailedState })
	require.Equal(k.t, "killed", d.ExitCode)
	require.Equal(k.t, 9, *d.ExitStatus)
	require.Equal(k.t, "signal", d.Result)

	// A list says since when, and the result, as the unit itself does.
	k.write("ct-t.target", "[Unit]\nDescription=t\n")
	k.reload()
	listed, err := k.Reader.Named(k.ctx, []unit.Name{"ct-x.service", "ct-t.target", "ct-k.service", "ct-none.service"})
	require.NoError(k.t, err)
	stands, err := k.Reader.Stands(k.ctx, listed)
	require.NoError(k.t, err)
	require.Equal(k.t, []unit.Stand{{Since: k.details("ct-x.service").Since, Result: "exit-code"}, {}, {Since: d.Since, Result: "signal"}, {Result: "success"}}, stands)
}

func tellsMissing(k *kit) {
	d := k.details("ct-none.service")
	require.Equal(k.t, unit.Name("ct-none.service"), d.ID)
	require.Equal(k.t, unit.NotFound, d.Load)
	require.Equal(k.t, "Unit ct-none.service not found.", d.LoadError)
	require.Empty(k.t, d.Fragment)
	require.Empty(k.t, d.Enablement)
	require.Empty(k.t, d.Preset)
	k.link("/dev/null", "ct-m.service")
	k.write("ct-b.service", "[Service]\nType=simple\n")
	k.reload()
	d = k.details("ct-m.service")
	require.Equal(k.t, unit.Masked, d.Load)
	require.Equal(k.t, "masked", d.Enablement)
	require.Contains(k.t, d.LoadError, "is masked")
	d = k.details("ct-b.service")
	require.Equal(k.t, unit.BadSetting, d.Load)
	require.Contains(k.t, d.LoadError, "bad unit file setting")
}

func tellsAlias(k *kit) {
	k.write("ct-real.service", sleeper)
	k.link("ct-real.service", "ct-nick.service")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-real.service"))
	k.details("ct-nick.service") // which makes the manager know that name
	d := k.details("ct-real.service")
	require.Equal(k.t, []unit.Name{"ct-nick.service", "ct-real.service"}, d.Names)
	by := k.details("ct-nick.service")
	require.Equal(k.t, unit.Name("ct-real.service"), by.ID)
	d.CPU, by.CPU = nil, nil
	require.Equal(k.t, d, by)
}

func tellsTriggers(k *kit) {
	k.write("ct-g.service", sleeper)
	k.write("ct-g.timer", "[Timer]\nOnActiveSec=1h\n")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-g.timer"))
	require.Equal(k.t, []unit.Name{"ct-g.timer"}, k.details("ct-g.service").TriggeredBy)
	require.Equal(k.t, []unit.Name{"ct-g.service"}, k.details("ct-g.timer").Triggers)
}

func tellsUnmet(k *kit) {
	k.conditional("ct-c.service", "ConditionPathExists=/nope\nConditionPathExists=/")
	require.Empty(k.t, k.details("ct-c.service").Unmet, "it was never tried")
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-c.service"))
	require.Equal(k.t, []unit.Condition{{Text: "ConditionPathExists=/nope"}}, k.details("ct-c.service").Unmet)
	k.conditional("ct-a.service", "AssertPathExists=!/")
	require.Equal(k.t, unit.JobAssert, k.run(unit.StartJob, "ct-a.service"))
	require.Equal(k.t, []unit.Condition{{Text: "AssertPathExists=!/", Assert: true}}, k.details("ct-a.service").Unmet)
}

func tellsJob(k *kit) {
	k.write("ct-j.service", service("Type=notify", "NotifyAccess=all", "ExecStart=/bin/sleep infinity"))
	k.reload()
	id := k.job(unit.StartJob, "ct-j.service")
	d := k.told("ct-j.service", func(d unit.Details) bool { return d.Active == unit.Activating })
	require.Equal(k.t, unit.Job{ID: id, Type: unit.StartJob}, d.Job)
	require.NotNil(k.t, d.Since)
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-j.service"))
	require.Zero(k.t, k.details("ct-j.service").Job)
}

func tellsNoTemplate(k *kit) {
	k.write("ct-t@.service", sleeper)
	k.reload()
	for _, n := range []unit.Name{"ct-t@.service", "", "x", "/a/b.service", "ct-*.service"} {
		_, err := k.Reader.Details(k.ctx, n)
		require.Equal(k.t, fault.Invalid, fault.ClassOf(err), "%q: %v", n, err)
	}
	require.Equal(k.t, unit.Loaded, k.details("ct-t@one.service").Load)
}

func tellsStatic(k *kit) {
	k.write("ct-s.service", sleeper)
	k.reload()
	require.Equal(k.t, "static", k.details("ct-s.service").Enablement)
}

func readsOverCut(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	before := k.details("ct-s.service")
	require.NoError(k.t, k.Other.Cut(k.ctx))
	after := k.details("ct-s.service")
	require.Equal(k.t, before.Invocation, after.Invocation)
	require.Equal(k.t, unit.Active, after.Active)
	k.waitConnected()
	require.NoError(k.t, os.Remove(filepath.Join(k.Dir, "ct-s.service")))
}

func readsCanceled(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	_, err := k.Reader.Details(ctx, "ct-a.service")
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Reader.Units(ctx, unit.Filter{})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Reader.Named(ctx, []unit.Name{"ct-a.service"})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Reader.Files(ctx, unit.Filter{})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Reader.Enablement(ctx, []unit.Name{"ct-a.service"})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
	_, err = k.Reader.Stands(ctx, []unit.Listed{{Name: "ct-a.service"}})
	require.Equal(k.t, fault.Canceled, fault.ClassOf(err))
}
