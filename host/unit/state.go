package unit

import "time"

// Scope is which kind of manager a unit belongs to.
type Scope string

// The scopes.
const (
	System Scope = "system"
	User   Scope = "user"
)

// LoadState is systemd's verdict on a unit's definition.
type LoadState string

// Load states (org.freedesktop.systemd1(5), Unit.LoadState).
const (
	Loaded     LoadState = "loaded"
	NotFound   LoadState = "not-found"
	BadSetting LoadState = "bad-setting"
	LoadFailed LoadState = "error"
	Masked     LoadState = "masked"
)

// ActiveState is systemd's general state of a unit, of every type.
type ActiveState string

// Active states (org.freedesktop.systemd1(5), Unit.ActiveState).
const (
	Active       ActiveState = "active"
	Reloading    ActiveState = "reloading"
	Refreshing   ActiveState = "refreshing" // 257 and newer
	Inactive     ActiveState = "inactive"
	FailedState  ActiveState = "failed"
	Activating   ActiveState = "activating"
	Deactivating ActiveState = "deactivating"
	Maintenance  ActiveState = "maintenance"
)

// Up reports whether the unit counts as running: active, or active and busy
// with taking in a change.
func (a ActiveState) Up() bool { return a == Active || a == Reloading || a == Refreshing }

// Down reports whether the unit has come to rest without running.
func (a ActiveState) Down() bool { return a == Inactive || a == FailedState }

// SubAutoRestart is the sub state of a service that died and waits for its
// RestartSec; ActiveState reads activating the while.
const SubAutoRestart = "auto-restart"

// Status is what a manager says of one unit at one moment. Times are
// CLOCK_MONOTONIC readings, as systemd keeps them, so they compare with
// Clock.Monotonic and with nothing else; zero means never.
type Status struct {
	Asked  Name // the name that was asked for
	ID     Name // the unit's primary name: another one when Asked is an alias
	Load   LoadState
	Active ActiveState
	Sub    string
	Job    Job // the job queued for it; the zero Job when there is none

	Fragment   string   // FragmentPath: the file it was loaded from, "" when none
	DropIns    []string // DropInPaths, in the order in which they were read
	CanReload  bool     // a reload job is possible; known of units that the manager keeps loaded
	NeedReload bool     // NeedDaemonReload, which is not asked for after a reload that was seen; true asks for one, false proves nothing

	Invocation string        // InvocationID in hex of the run now or last; "" for none
	Started    time.Duration // InactiveExitTimestampMonotonic
	Changed    time.Duration // StateChangeTimestampMonotonic
	Restarts   uint32        // NRestarts: automatic restarts, services only
	MainPID    uint32        // of a running service; 0 for none

	Trouble Trouble // filled when the unit is neither plainly up nor plainly stopped
}

// Trouble is what systemd says when a unit is not as one would hope. It is
// filled for units whose load state is not loaded, and for loaded units that
// are not active.
type Trouble struct {
	LoadError  string // systemd's words on a definition that it could not load
	Result     string // "success", "exit-code", "signal", "start-limit-hit", …
	ExitCode   int32  // ExecMainCode: CLD_EXITED 1, CLD_KILLED 2, CLD_DUMPED 3; 0 for none
	ExitStatus int32  // exit status, or the signal's number
	Unmet      []Condition
	Triggers   []Name // TriggeredBy: what may start it again; nil where that was not asked, as at a first look
}

// Condition is a Condition…= or Assert…= line that was not met at the last
// try, such as {Text: "ConditionPathExists=/nope"}.
type Condition struct {
	Text   string
	Assert bool
}
