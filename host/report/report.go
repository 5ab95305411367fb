// Package report holds the words in which a host says how a declaration stands:
// outcome, reason, what was observed, what was done.
//
// A report describes one declaration in one scope of one node. It is made by
// host/plan and host/reconcile, and read by people and, later, by controllers;
// its JSON form is stable. The package is words only.
package report

import (
	"time"

	"stead/host/unit"
)

// Outcome is how a declaration stands.
type Outcome string

// The outcomes. Nothing is Converged that was not looked at after acting.
const (
	Converged Outcome = "converged" // all that is declared was seen to be so
	Waiting   Outcome = "waiting"   // on its way, or held up by what Reason names
	Failed    Outcome = "failed"    // tried, and not so; tried again with growing delay
	Refused   Outcome = "refused"   // a rule forbids it; not tried
	Contested Outcome = "contested" // undone again and again by somebody else
	Paused    Outcome = "paused"    // restoring is suspended by an operator
)

// Reason is the stable code of why an outcome is not converged.
type Reason string

// The reasons. Text carries the particulars.
const (
	// of Waiting
	Settling    Reason = "settling"    // as wanted, for less than a second
	Starting    Reason = "starting"    // a start or restart job is in the queue
	Stopping    Reason = "stopping"    // a stop job is in the queue
	OwedReload  Reason = "reload"      // the manager must reload first
	Busy        Reason = "busy"        // somebody else's job is in the queue
	Condition   Reason = "condition"   // a Condition…= of the unit is unmet
	Retry       Reason = "retry"       // will be tried again at a stated time
	Withdrawing Reason = "withdrawing" // what was there before is being put back
	Unreachable Reason = "unreachable" // the manager does not answer
	Pending     Reason = "pending"     // not looked at yet
	Refreshing  Reason = "refresh"     // a reload or restart job takes a change in
	Writing     Reason = "writing"     // the file is being written

	// of Waiting, Failed or Refused in user scope: what stands between the host and
	// the account's manager
	NoAccount       Reason = "no-account"       // the node has no operator account
	AccountUnknown  Reason = "account-unknown"  // there is no such login
	AccountRoot     Reason = "account-root"     // the account is root, whose manager is the system's
	AccountHomeless Reason = "account-homeless" // the account has no home folder
	AccountChanged  Reason = "account-changed"  // what the account before has is given back first
	UIDReused       Reason = "uid-reused"       // the uid belongs to another login than when it was written for
	HomeUnmounted   Reason = "home-unmounted"   // the home is not mounted, or is another's
	LingerOff       Reason = "linger-off"       // nobody is logged in, and lingering is declared off
	ManagerDown     Reason = "manager-down"     // the user manager does not come up
	ManagerStarting Reason = "manager-starting" // it is coming up
	ManagerHung     Reason = "manager-hung"     // it does not answer
	ManagerRefused  Reason = "manager-refused"  // it turns the host away
	Impostor        Reason = "impostor"         // another process than the manager is on its socket
	DelegateFailed  Reason = "delegate"         // the process that writes as the account does not run

	// of Failed
	Missing       Reason = "missing"        // no such unit
	BadUnit       Reason = "bad-unit"       // systemd cannot load the definition
	CrashLoop     Reason = "crash-loop"     // dies and is restarted, again and again
	Exited        Reason = "exited"         // its process ended, or the start failed
	JobEnded      Reason = "job"            // a job ended with another result than done
	BudgetSpent   Reason = "timeout"        // the convergence budget is over
	DiskError     Reason = "disk"           // a file or link could not be read or written
	CallError     Reason = "call"           // the manager answered with an error
	Shadowed      Reason = "shadowed"       // another file wins over the declared one
	CannotReload  Reason = "no-reload"      // on_change: reload, and the unit has no way to reload
	RefreshFailed Reason = "refresh-failed" // a reload that was to take a change in did not succeed

	// of Refused
	IsMasked    Reason = "masked"      // the unit is masked: unmask it first
	NoInstall   Reason = "no-install"  // enabled on a unit that has nothing to enable
	Protected   Reason = "protected"   // stead's own unit, or one that it stands on
	OwnedBy     Reason = "conflict"    // another declaration has the unit, or runs one that this one would stop
	ManualOnly  Reason = "manual"      // RefuseManualStart= or RefuseManualStop=
	Template    Reason = "template"    // a bare template has no activity
	IsAlias     Reason = "alias"       // content or a mask declared under an alias of another unit
	Unsupported Reason = "unsupported" // this version of stead cannot read the declaration
	BadTarget   Reason = "target"      // what stands at the file's path, or on the way there, is not replaced or followed
	NoLogin     Reason = "login"       // the node has no such owner or group
)

// Obstacle is what stands between a loop and its manager: as long as it stands, it
// is what every declaration of that loop is reported with.
type Obstacle struct {
	Outcome Outcome `json:"outcome"` // Waiting, Failed or Refused
	Reason  Reason  `json:"reason"`
	Text    string  `json:"text"`           // one sentence for a person
	Hint    string  `json:"hint,omitempty"` // what a person can do about it
}

// Report says how one declaration stands.
type Report struct {
	Name       string     `json:"name"`
	UID        string     `json:"uid"`
	Generation uint64     `json:"generation"`
	Scope      unit.Scope `json:"scope"`
	Unit       unit.Name  `json:"unit"`
	Origin     string     `json:"origin,omitempty"` // file:line of the declaration, when it came from a folder

	Outcome Outcome `json:"outcome"`
	Reason  Reason  `json:"reason,omitempty"`
	Text    string  `json:"text,omitempty"`   // one sentence for a person, with systemd's words where there are any
	Hint    string  `json:"hint,omitempty"`   // what a person can do about it
	Paused  *Pause  `json:"paused,omitempty"` // the pause that holds everything back; nil for none
	// Undone says, of Contested, when it was undone lately: the last 20 times, the oldest
	// first.
	Undone []time.Time `json:"undone,omitempty"`
	Since  time.Time   `json:"since"` // when the outcome and its reason became so

	State    State     `json:"state"`
	Steps    []Step    `json:"steps,omitempty"` // of the last passes that did something, oldest first
	Warnings []string  `json:"warnings,omitempty"`
	Lines    []string  `json:"lines,omitempty"` // last log lines, for a unit in trouble
	Looked   time.Time `json:"looked"`          // when the unit was last looked at
	Retry    time.Time `json:"retry,omitzero"`  // when it is tried again, where that is set
}

// State is what was observed.
type State struct {
	ID       unit.Name        `json:"id,omitempty"` // primary name, where it is not the declared one
	Load     unit.LoadState   `json:"load,omitempty"`
	Active   unit.ActiveState `json:"active,omitempty"`
	Sub      string           `json:"sub,omitempty"`
	Enabled  string           `json:"enabled,omitempty"` // enabled, disabled, partly, static, generated, transient, masked
	MainPID  uint32           `json:"main_pid,omitempty"`
	Restarts uint32           `json:"restarts,omitempty"`
	Result   string           `json:"result,omitempty"`
}

// Step is one action that was taken.
type Step struct {
	At     time.Time     `json:"at"`
	Action string        `json:"action"` // write, remove, link, unlink, reload, start, stop, restart, reload-unit, reload-or-restart, reset-failed
	Object string        `json:"object"` // the path or unit
	Reason string        `json:"reason"`
	Error  string        `json:"error,omitempty"` // why it did not succeed
	Took   time.Duration `json:"took,omitempty"`  // in nanoseconds, where it was waited for
}
