package systemdtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/unit"
)

// starts are the cases about units that start, end and start again.
func starts() map[string]func(*kit) {
	return map[string]func(*kit){
		"a simple service that dies at once fails after its job is done": simpleDies,
		"a missing program fails a simple service after its job is done": simpleMissing,
		"a missing program fails the job of an exec service":             execMissing,
		"a oneshot that fails fails its job":                             oneshotFails,
		"a oneshot that ends is inactive":                                oneshotEnds,
		"a oneshot that remains is active":                               oneshotRemains,
		"a notify service that is not ready in time fails its job":       notifyTimeout,
		"a forking service that fails fails its job":                     forkingFails,
		"a service that ends by itself becomes inactive":                 endsByItself,
		"a crash loop is activating and counts":                          crashLoop,
		"a crash loop can be stopped":                                    crashLoopStops,
		"a long oneshot is activating":                                   longOneshot,
		"a start limit refuses until it is reset":                        startLimit,
		"a target is active":                                             targetUp,
		"a restart by somebody else is a new invocation":                 otherRestarts,
		"a restart on failure leaves a good end alone":                   onFailure,
		"a new invocation for each run, the same over a reload":          invocations,
	}
}

func service(lines ...string) string {
	s := "[Service]\n"
	for _, l := range lines {
		s += l + "\n"
	}
	return s
}

// started writes and starts a unit and returns how its job ended.
func (k *kit) started(name unit.Name, text string) unit.JobResult {
	k.t.Helper()
	k.write(string(name), text)
	k.reload()
	return k.run(unit.StartJob, name)
}

func (k *kit) exited(s unit.Status, status int32) {
	k.t.Helper()
	require.Equal(k.t, "failed", s.Sub)
	require.Equal(k.t, "exit-code", s.Trouble.Result)
	require.Equal(k.t, int32(1), s.Trouble.ExitCode)
	require.Equal(k.t, status, s.Trouble.ExitStatus)
	require.Zero(k.t, s.MainPID)
	require.Len(k.t, s.Invocation, 32)
}

func simpleDies(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("ExecStart=/bin/false")))
	k.exited(k.becomes("ct-s.service", "fails", failed), 1)
}

func simpleMissing(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("ExecStart=/nope/nothing")))
	k.exited(k.becomes("ct-s.service", "fails", failed), 203)
}

func execMissing(k *kit) {
	require.Equal(k.t, unit.JobFailed, k.started("ct-s.service", service("Type=exec", "ExecStart=/nope/nothing")))
	k.exited(k.look("ct-s.service"), 203)
}

func oneshotFails(k *kit) {
	require.Equal(k.t, unit.JobFailed, k.started("ct-s.service", service("Type=oneshot", "ExecStart=/bin/false")))
	k.exited(k.look("ct-s.service"), 1)
}

func oneshotEnds(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("Type=oneshot", "ExecStart=/bin/true")))
	s := k.look("ct-s.service")
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Equal(k.t, "dead", s.Sub)
	require.Equal(k.t, "success", s.Trouble.Result)
}

func oneshotRemains(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("Type=oneshot", "RemainAfterExit=yes", "ExecStart=/bin/true")))
	s := k.look("ct-s.service")
	require.Equal(k.t, unit.Active, s.Active)
	require.Equal(k.t, "exited", s.Sub)
	require.Zero(k.t, s.MainPID)
}

func notifyTimeout(k *kit) {
	result := k.started("ct-s.service", service("Type=notify", "TimeoutStartSec=1", "ExecStart=/bin/sleep infinity"))
	require.Equal(k.t, unit.JobFailed, result)
	s := k.look("ct-s.service")
	require.Equal(k.t, unit.FailedState, s.Active)
	require.Equal(k.t, "timeout", s.Trouble.Result)
}

func forkingFails(k *kit) {
	require.Equal(k.t, unit.JobFailed, k.started("ct-s.service", service("Type=forking", "ExecStart=/bin/false")))
	s := k.look("ct-s.service")
	require.Equal(k.t, unit.FailedState, s.Active)
	require.Equal(k.t, "exit-code", s.Trouble.Result)
}

func endsByItself(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("ExecStart=/bin/sleep 0.3")))
	s := k.becomes("ct-s.service", "ends", inactive)
	require.Equal(k.t, "success", s.Trouble.Result)
	require.Zero(k.t, s.MainPID)
}

func crashLoop(k *kit) {
	k.started("ct-s.service", "[Unit]\nStartLimitIntervalSec=0\n"+service("ExecStart=/bin/false", "Restart=always", "RestartSec=300ms"))
	s := k.becomes("ct-s.service", "waits for its restart", func(s unit.Status) bool { return s.Sub == unit.SubAutoRestart })
	require.Equal(k.t, unit.Activating, s.Active)
	require.Equal(k.t, "exit-code", s.Trouble.Result)
	require.Equal(k.t, int32(1), s.Trouble.ExitStatus)
	seen := s.Restarts
	s = k.becomes("ct-s.service", "is restarted again", func(s unit.Status) bool { return s.Restarts >= seen+2 })
	require.NotEqual(k.t, unit.Inactive, s.Active)
}

func crashLoopStops(k *kit) {
	k.started("ct-s.service", service("ExecStart=/bin/false", "Restart=always", "RestartSec=1min"))
	k.becomes("ct-s.service", "waits for its restart", func(s unit.Status) bool { return s.Sub == unit.SubAutoRestart })
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-s.service"))
	k.becomes("ct-s.service", "rests", func(s unit.Status) bool { return s.Active.Down() })
}

func invocations(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", service("ExecStart=/bin/sleep infinity", "ExecReload=/bin/true")))
	first := k.look("ct-s.service")
	k.reload()
	require.Equal(k.t, first.Invocation, k.look("ct-s.service").Invocation)
	require.Equal(k.t, unit.JobDone, k.run(unit.ReloadJob, "ct-s.service"))
	require.Equal(k.t, first.Invocation, k.look("ct-s.service").Invocation)
	time.Sleep(10 * time.Millisecond)
	require.Equal(k.t, unit.JobDone, k.run(unit.RestartJob, "ct-s.service"))
	second := k.look("ct-s.service")
	require.Len(k.t, second.Invocation, 32)
	require.NotEqual(k.t, first.Invocation, second.Invocation)
	require.NotEqual(k.t, first.MainPID, second.MainPID)
	require.Greater(k.t, second.Started, first.Started, fmt.Sprint("started ", first.Started))
	require.Zero(k.t, second.Restarts, "a restart that was asked for is none of its own")
}

func longOneshot(k *kit) {
	k.write("ct-s.service", service("Type=oneshot", "ExecStart=/bin/sleep 1"))
	k.reload()
	id := k.job(unit.StartJob, "ct-s.service")
	s := k.becomes("ct-s.service", "is starting", func(s unit.Status) bool { return s.Active == unit.Activating })
	require.Equal(k.t, "start", s.Sub)
	require.NotZero(k.t, s.MainPID)
	require.Equal(k.t, id, s.Job.ID)
	require.Equal(k.t, unit.JobDone, k.end(id).Result)
	require.Equal(k.t, unit.Inactive, k.look("ct-s.service").Active)
}

func startLimit(k *kit) {
	k.write("ct-s.service", "[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1min\n"+service("Type=oneshot", "ExecStart=/bin/false"))
	k.reload()
	for range 3 {
		require.Equal(k.t, unit.JobFailed, k.run(unit.StartJob, "ct-s.service"))
	}
	s := k.look("ct-s.service")
	require.Equal(k.t, unit.FailedState, s.Active)
	require.Equal(k.t, "exit-code", s.Trouble.Result, "the result stays that of the last run")
	last := s.Invocation
	require.NoError(k.t, k.Manager.ResetFailed(k.ctx, []unit.Name{"ct-s.service"})[0])
	require.Equal(k.t, unit.JobFailed, k.run(unit.StartJob, "ct-s.service"))
	require.NotEqual(k.t, last, k.look("ct-s.service").Invocation, "it ran")
}

func targetUp(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.target", "[Unit]\nDescription=x\n"))
	s := k.look("ct-s.target")
	require.Equal(k.t, unit.Active, s.Active)
	require.Equal(k.t, "active", s.Sub)
	require.Zero(k.t, s.MainPID)
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-s.target"))
	require.Empty(k.t, k.look("ct-s.target").Trouble.Result)
}

func otherRestarts(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-s.service", sleeper))
	first := k.look("ct-s.service").Invocation
	k.fresh()
	q := k.Other.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-s.service", Type: unit.RestartJob}})
	require.NoError(k.t, q[0].Err)
	require.Equal(k.t, unit.JobDone, k.end(q[0].ID).Result)
	require.NotEqual(k.t, first, k.look("ct-s.service").Invocation)
}

func onFailure(k *kit) {
	k.started("ct-s.service", service("ExecStart=/bin/sleep 0.2", "Restart=on-failure"))
	s := k.becomes("ct-s.service", "ends", func(s unit.Status) bool { return s.Active.Down() })
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Zero(k.t, s.Restarts)
}
