package systemdtest

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"stead/host/fault"
	"stead/host/unit"
)

// jobs are the cases about jobs and how they end.
func jobs() map[string]func(*kit) {
	return map[string]func(*kit){
		"a job that does not end is seen on its unit":    neverReady,
		"a stop cancels a start that does not end":       stopWhileStarting,
		"a stop that yields leaves a start in the queue": stopThatYields,
		"requests are answered in order, each by itself": mixedRequests,
		"every job's end is kept until it is drained":    endsAreKept,
		"a try-restart starts nothing":                   tryRestart,
		"stopping what is stopped is done":               stopStopped,
		"a type of job that there is not":                unknownJob,
		"the same request again is the same job":         sameJob,
		"a restart starts what is down":                  restartStarts,
		"a reload of what is down is no start":           reloadDown,
		"a reload that fails leaves it running":          reloadFails,
		"a reload or restart does what it can":           reloadOrRestart,
		"what cannot be reloaded says so":                cannotReload,
		"the last reload that succeeded is known":        lastReload,
		"a stop that takes its time is deactivating":     slowStop,
		"a stop of a missing unit is not found":          stopMissing,
		"a job of somebody else is announced and seen":   otherJob,
	}
}

const unready = "[Service]\nType=notify\nTimeoutStartSec=infinity\nExecStart=/bin/sleep infinity\n"

func neverReady(k *kit) {
	k.write("ct-n.service", unready)
	k.reload()
	id := k.job(unit.StartJob, "ct-n.service")
	s := k.becomes("ct-n.service", "is starting", func(s unit.Status) bool { return s.Sub == "start" })
	require.Equal(k.t, unit.Activating, s.Active)
	require.Equal(k.t, unit.Job{ID: id, Type: unit.StartJob}, s.Job)
	require.NotZero(k.t, s.MainPID)
	require.NotContains(k.t, k.ends, id)
}

func stopWhileStarting(k *kit) {
	k.write("ct-n.service", unready)
	k.reload()
	id := k.job(unit.StartJob, "ct-n.service")
	k.becomes("ct-n.service", "is starting", func(s unit.Status) bool { return s.Sub == "start" })
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-n.service"))
	require.Equal(k.t, unit.JobCanceled, k.end(id).Result)
	s := k.look("ct-n.service")
	require.Equal(k.t, unit.Inactive, s.Active)
	require.Zero(k.t, s.Job)
}

func stopThatYields(k *kit) {
	k.write("ct-n.service", unready)
	k.write("ct-1.service", sleeper)
	k.reload()
	id := k.job(unit.StartJob, "ct-n.service")
	k.becomes("ct-n.service", "is starting", func(s unit.Status) bool { return s.Sub == "start" })
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-1.service"))
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-n.service", Type: unit.StopJob, Yield: true}, {Name: "ct-1.service", Type: unit.StopJob, Yield: true}})
	require.Equal(k.t, fault.Conflict, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "destructive")
	require.Equal(k.t, unit.Job{ID: id, Type: unit.StartJob}, k.look("ct-n.service").Job)
	require.NoError(k.t, q[1].Err, "nothing is against it")
	require.Equal(k.t, unit.JobDone, k.end(q[1].ID).Result)
	require.NotContains(k.t, k.ends, id)
}

func mixedRequests(k *kit) {
	k.write("ct-1.service", sleeper)
	k.write("ct-2.service", "[Unit]\nRefuseManualStart=yes\n"+sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-1.service"))
	requests := []unit.JobRequest{
		{Name: "ct-none.service", Type: unit.StartJob},
		{Name: "ct-1.service", Type: unit.ReloadJob},
		{Name: "ct-1.service", Type: unit.RestartJob},
		{Name: "ct-2.service", Type: unit.StartJob},
	}
	q := k.Manager.Enqueue(k.ctx, requests)
	require.Len(k.t, q, len(requests))
	for i := range q {
		require.Equal(k.t, requests[i], q[i].Request)
	}
	require.Equal(k.t, fault.NotFound, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "Unit ct-none.service not found")
	require.Equal(k.t, fault.Unsupported, fault.ClassOf(q[1].Err))
	require.NoError(k.t, q[2].Err)
	require.Equal(k.t, unit.JobDone, k.end(q[2].ID).Result)
	require.Equal(k.t, fault.Refused, fault.ClassOf(q[3].Err))
	for _, i := range []int{0, 1, 3} {
		require.Zero(k.t, q[i].ID)
	}
}

// Jobs of a oneshot end fast: some before the answer to the last request.
func endsAreKept(k *kit) {
	var requests []unit.JobRequest
	for i := range 40 {
		n := unit.Name(fmt.Sprintf("ct-q%d.service", i))
		program := []string{"/bin/true", "/bin/false"}[i%2]
		k.write(string(n), service("Type=oneshot", "ExecStart="+program))
		requests = append(requests, unit.JobRequest{Name: n, Type: unit.StartJob})
	}
	k.reload()
	for i, q := range k.Manager.Enqueue(k.ctx, requests) {
		require.NoError(k.t, q.Err)
		want := []unit.JobResult{unit.JobDone, unit.JobFailed}[i%2]
		require.Equal(k.t, unit.JobEnd{ID: q.ID, Unit: q.Request.Name, Result: want}, k.end(q.ID))
	}
}

func tryRestart(k *kit) {
	k.write("ct-t.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.TryRestartJob, "ct-t.service"))
	require.Equal(k.t, unit.Inactive, k.look("ct-t.service").Active)
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-t.service"))
	first := k.look("ct-t.service").Invocation
	require.Equal(k.t, unit.JobDone, k.run(unit.TryRestartJob, "ct-t.service"))
	require.NotEqual(k.t, first, k.look("ct-t.service").Invocation)
}

func stopStopped(k *kit) {
	k.write("ct-t.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StopJob, "ct-t.service"))
}

func unknownJob(k *kit) {
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-t.service", Type: "explode"}})
	require.Equal(k.t, fault.Invalid, fault.ClassOf(q[0].Err))
}

func sameJob(k *kit) {
	k.write("ct-n.service", unready)
	k.reload()
	id := k.job(unit.StartJob, "ct-n.service")
	require.Equal(k.t, id, k.job(unit.StartJob, "ct-n.service"))
}

func restartStarts(k *kit) {
	k.write("ct-t.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.RestartJob, "ct-t.service"))
	require.Equal(k.t, unit.Active, k.look("ct-t.service").Active)
}

func reloadDown(k *kit) {
	k.write("ct-t.service", service("ExecStart=/bin/sleep infinity", "ExecReload=/bin/true"))
	k.reload()
	require.Equal(k.t, unit.JobInvalid, k.run(unit.ReloadJob, "ct-t.service"))
	require.Equal(k.t, unit.Inactive, k.look("ct-t.service").Active)
}

const reloads = sleeper + "ExecReload=/bin/true\n"

func reloadFails(k *kit) {
	k.write("ct-rf.service", sleeper+"ExecReload=/bin/false\n")
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-rf.service"))
	before := k.look("ct-rf.service")
	require.True(k.t, before.CanReload)
	require.Equal(k.t, unit.JobFailed, k.run(unit.ReloadJob, "ct-rf.service"))
	after := k.look("ct-rf.service")
	require.Equal(k.t, unit.Active, after.Active)
	require.Equal(k.t, before.Invocation, after.Invocation)
}

func reloadOrRestart(k *kit) {
	k.write("ct-rr.service", reloads)
	k.write("ct-rn.service", sleeper)
	k.reload()
	for _, n := range []unit.Name{"ct-rr.service", "ct-rn.service"} {
		require.Equal(k.t, unit.JobDone, k.run(unit.ReloadOrTryRestartJob, n), "it is down")
		require.Equal(k.t, unit.Inactive, k.look(n).Active, "%s is started by nothing", n)
		require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, n))
		before := k.look(n)
		require.Equal(k.t, n == "ct-rr.service", before.CanReload)
		require.Equal(k.t, unit.JobDone, k.run(unit.ReloadOrTryRestartJob, n))
		after := k.becomes(n, "runs", func(s unit.Status) bool { return s.Active == unit.Active })
		require.Equal(k.t, before.CanReload, before.Invocation == after.Invocation, "%s is reloaded where that is possible", n)
	}
}

// lastReload: the manager forgets it when it reads its files anew, and knows
// nothing of units that are reloaded without a command.
func lastReload(k *kit) {
	k.write("ct-lr.service", reloads)
	k.write("ct-lf.service", sleeper+"ExecReload=/bin/false\n")
	k.write("ct-ln.service", sleeper)
	k.write("ct-lt.timer", "[Timer]\nOnBootSec=10h\nUnit=ct-ln.service\n")
	k.reload()
	names := []unit.Name{"ct-lr.service", "ct-lf.service", "ct-ln.service", "ct-lt.timer", "ct-none.service"}
	for _, n := range names[:4] {
		require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, n))
	}
	known := func() []time.Duration {
		k.t.Helper()
		all, err := k.Manager.Reloads(k.ctx, names)
		require.NoError(k.t, err)
		require.Len(k.t, all, len(names))
		return all
	}
	require.Equal(k.t, make([]time.Duration, len(names)), known())
	time.Sleep(time.Millisecond) // for what counts in less to show it
	require.Equal(k.t, unit.JobDone, k.run(unit.ReloadJob, "ct-lr.service"))
	require.Equal(k.t, unit.JobFailed, k.run(unit.ReloadJob, "ct-lf.service"))
	first := known()
	require.Greater(k.t, first[0], k.look("ct-lr.service").Started)
	require.Equal(k.t, make([]time.Duration, len(names)-1), first[1:])
	time.Sleep(time.Millisecond)
	require.Equal(k.t, unit.JobDone, k.run(unit.ReloadJob, "ct-lr.service"))
	require.Greater(k.t, known()[0], first[0])
	k.reload()
	require.Zero(k.t, known()[0])
}

func cannotReload(k *kit) {
	k.write("ct-cr.service", sleeper)
	k.reload()
	require.Equal(k.t, unit.JobDone, k.run(unit.StartJob, "ct-cr.service"))
	require.False(k.t, k.look("ct-cr.service").CanReload)
	k.write("ct-cr.service.d/10-reload.conf", "[Service]\nExecReload=/bin/true\n")
	require.False(k.t, k.look("ct-cr.service").CanReload, "it was not loaded yet")
	k.reload()
	require.True(k.t, k.look("ct-cr.service").CanReload)
	require.Equal(k.t, unit.JobDone, k.run(unit.ReloadJob, "ct-cr.service"))
}

func slowStop(k *kit) {
	require.Equal(k.t, unit.JobDone, k.started("ct-t.service", service("ExecStart=/bin/sleep infinity", "ExecStop=/bin/sleep 1")))
	id := k.job(unit.StopJob, "ct-t.service")
	s := k.becomes("ct-t.service", "is stopping", func(s unit.Status) bool { return s.Active == unit.Deactivating })
	require.Equal(k.t, "stop", s.Sub)
	require.Equal(k.t, unit.Job{ID: id, Type: unit.StopJob}, s.Job)
	require.Equal(k.t, unit.JobDone, k.end(id).Result)
	require.Equal(k.t, unit.Inactive, k.look("ct-t.service").Active)
}

func stopMissing(k *kit) {
	q := k.Manager.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-none.service", Type: unit.StopJob}})
	require.Equal(k.t, fault.NotFound, fault.ClassOf(q[0].Err))
	require.ErrorContains(k.t, q[0].Err, "Unit ct-none.service not loaded")
}

func otherJob(k *kit) {
	k.write("ct-n.service", unready)
	k.reload()
	k.look("ct-n.service")
	k.fresh()
	q := k.Other.Enqueue(k.ctx, []unit.JobRequest{{Name: "ct-n.service", Type: unit.StartJob}})
	require.NoError(k.t, q[0].Err)
	k.becomes("ct-n.service", "has the job", func(s unit.Status) bool { return s.Job == unit.Job{ID: q[0].ID, Type: unit.StartJob} })
}
