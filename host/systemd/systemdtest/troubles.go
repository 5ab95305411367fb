package systemdtest

import (
	"os"
	"path/filepath"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// troubles are the cases about why a unit is not as one would hope.
func troubles() map[string]func(*kit) {
	return map[string]func(*kit){
		"an unmet condition is named":                          conditionNamed,
		"an unmet condition of a unit that is not kept loaded": conditionLoose,
		"a condition that was never tried is not unmet":        conditionUntried,
		"an unmet assert fails the job and is named":           assertNamed,
		"a unit that is triggered says by what":                triggered,
		"a failed state can be reset":                          resetFailed,
		"a killed service has the signal":                      killed,
	}
}

func (k *kit) conditional(name, line string) {
	k.write(name, "[Unit]\n"+line+"\n"+sleeper)
	k.refer(name)
	k.reload()
}

func conditionNamed(k *kit) {
	flag := filepath.Join(k.Spare, "flag")
	k.conditional("ct-c.service", "ConditionPathExists="+flag)
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-c.service"))
	s := k.look("ct-c.service")
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Equal(k.t, []unit.Condition{{Text: "ConditionPathExists=" + flag}}, s.Trouble.Unmet)

	require.NoError(k.t, os.WriteFile(flag, nil, 0o644))
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-c.service"))
	s = k.look("ct-c.service")
	require.Equal(k.t, unit.Active, s.Active)
	require.Empty(k.t, s.Trouble.Unmet)
}

// The manager unloads a unit that nothing refers to, and forgets which
// condition it was.
func conditionLoose(k *kit) {
	flag := filepath.Join(k.Spare, "flag")
	k.write("ct-c.service", "[Unit]\nConditionPathExists="+flag+"\n"+sleeper)
	k.reload()
	require.Empty(k.t, k.look("ct-c.service").Trouble.Unmet)
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-c.service"))
	for range 2 {
		s := k.look("ct-c.service")
		require.Equal(k.t, unit.Inactive, s.Active)
		require.Equal(k.t, []unit.Condition{{}}, s.Trouble.Unmet)
	}
	require.NoError(k.t, os.WriteFile(flag, nil, 0o644))
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-c.service"))
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-c.service"))
	require.Empty(k.t, k.look("ct-c.service").Trouble.Unmet)
}

func conditionUntried(k *kit) {
	k.conditional("ct-c.service", "ConditionPathExists=/nope")
	require.Empty(k.t, k.look("ct-c.service").Trouble.Unmet)
}

func assertNamed(k *kit) {
	k.conditional("ct-c.service", "AssertPathExists=!/")
	require.Equal(k.t, unit.JobAssert, k.run(unit.StartJob, "ct-c.service"))
	require.Equal(k.t, []unit.Condition{{Text: "AssertPathExists=!/", Assert: true}}, k.look("ct-c.service").Trouble.Unmet)
}

func triggered(k *kit) {
	k.write("ct-g.service", sleeper)
	k.write("ct-g.timer", "[Timer]\nOnActiveSec=1h\n")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-g.timer"))
	k.observe("ct-g.service") // the first look may leave it out
	got := k.observe("ct-g.service", "ct-g.timer")
	require.Equal(k.t, unit.Inactive, got[0].Active)
	require.Equal(k.t, []unit.Name{"ct-g.timer"}, got[0].Trouble.Triggers)
	require.Equal(k.t, unit.Active, got[1].Active)
	require.Equal(k.t, "waiting", got[1].Sub)
	k.write("ct-alone.service", sleeper)
	k.reload()
	k.observe("ct-alone.service")
	require.NotNil(k.t, k.observe("ct-alone.service")[0].Trouble.Triggers, "asked, and there is none")
}

func resetFailed(k *kit) {
	require.Equal(k.t, unit.JobFailed, k.started("ct-f.service", service("Type=oneshot", "ExecStart=/bin/false")))
	require.Equal(k.t, unit.FailedState, k.look("ct-f.service").Active)
	errs := k.Manager.ResetFailed(k.ctx, []unit.Name{"ct-f.service", "ct-none.service"})
	require.NoError(k.t, errs[0])
	require.Equal(k.t, fault.NotFound, fault.ClassOf(errs[1]))
	require.Equal(k.t, unit.Inactive, k.look("ct-f.service").Active)
}

func killed(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-k.service", sleeper))
	k.fresh()
	require.NoError(k.t, k.Other.Kill(k.look("ct-k.service").MainPID))
	s := k.becomes("ct-k.service", "fails", failed)
	k.named("ct-k.service")
	require.Equal(k.t, "signal", s.Trouble.Result)
	require.Equal(k.t, int32(2), s.Trouble.ExitCode)
	require.Equal(k.t, int32(9), s.Trouble.ExitStatus)
}
