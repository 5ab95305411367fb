package unit

import "time"

// JobType is what a job does to its unit.
type JobType string

// Job types (org.freedesktop.systemd1(5), Job.JobType).
const (
	StartJob      JobType = "start"
	StopJob       JobType = "stop"
	RestartJob    JobType = "restart"
	ReloadJob     JobType = "reload"
	TryRestartJob JobType = "try-restart"
	// ReloadOrTryRestartJob is a reload of a unit that can be reloaded, and else a
	// restart; it starts nothing. In the queue it is one of those.
	ReloadOrTryRestartJob JobType = "reload-or-try-restart"
)

// Job is a job in a manager's queue. Its ID is unique in one run of the
// manager, also over reload and reexec; 0 is no job.
type Job struct {
	ID   uint32
	Type JobType
}

// JobResult is how a job ended.
type JobResult string

// Job results (org.freedesktop.systemd1(5), JobRemoved).
const (
	JobDone        JobResult = "done"
	JobCanceled    JobResult = "canceled" // replaced by another job, or canceled by somebody
	JobTimeout     JobResult = "timeout"
	JobFailed      JobResult = "failed"
	JobDependency  JobResult = "dependency"
	JobSkipped     JobResult = "skipped"
	JobInvalid     JobResult = "invalid"
	JobAssert      JobResult = "assert"
	JobUnsupported JobResult = "unsupported"
	JobCollected   JobResult = "collected"
	JobOnce        JobResult = "once"
)

// JobRequest asks a manager for a job: with mode "replace", or "fail" where it is
// to yield. One that yields takes no other job out of the queue: where it would
// have to, it is refused with class Conflict.
type JobRequest struct {
	Name  Name
	Type  JobType
	Yield bool
}

// Mode is systemd's name of how r meets other jobs (systemctl(1), --job-mode=).
func (r JobRequest) Mode() string {
	if r.Yield {
		return "fail"
	}
	return "replace"
}

// Queued answers a JobRequest: the job, or why there is none. Err is a
// *fault.Error whose text holds systemd's own words.
type Queued struct {
	Request JobRequest
	ID      uint32
	Err     error
}

// JobEnd is a job that left the queue.
type JobEnd struct {
	ID     uint32
	Unit   Name
	Result JobResult
}

// Changes is what happened in a manager since it was last asked. It says
// where to look again and carries no state; only job results are facts.
type Changes struct {
	All   bool     // look at everything: a reload, a lost connection, too many changes to list
	Units []Name   // primary names of units whose state changed
	Jobs  []JobEnd // jobs that ended, in order
	// Reloaded is a time before which the reload that ended last did not begin, whoever
	// asked for it, as far as that was heard; zero when none ended. It is the time of
	// the last call that was answered before that reload.
	Reloaded time.Time
}
