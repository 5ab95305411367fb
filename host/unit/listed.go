package unit

import (
	"slices"
	"time"
)

// Filter chooses among units or unit files, as systemctl's list-units and
// list-unit-files do. An empty list leaves nothing out.
type Filter struct {
	Patterns []string // globs over primary names (of files: over file names), one of which must match whole
	States   []string // of units: load, active or sub states; of files: enablement states
	Types    []string // "service", "timer", …
	// All lists, of units, also those that are inactive without a job, and the
	// further names of a device. States lists the former by itself.
	All bool
}

// Names reports whether one of the patterns matches n, or there are none.
func (f Filter) Names(n Name) bool {
	return len(f.Patterns) == 0 || slices.ContainsFunc(f.Patterns, func(p string) bool { return Match(p, string(n)) })
}

// Shows reports whether systemctl list-units shows a unit whose name is one of
// those that f asks for.
func (f Filter) Shows(u Listed) bool {
	states := []string{string(u.Load), string(u.Active), u.Sub}
	switch {
	case len(f.Types) > 0 && !slices.Contains(f.Types, u.Name.Type()):
		return false
	case len(f.States) > 0 && !slices.ContainsFunc(states, func(s string) bool { return slices.Contains(f.States, s) }):
		return false
	case f.All:
		return true
	case u.Following != "":
		return false
	}
	return len(f.States) > 0 || u.Job.ID != 0 || u.Active != Inactive
}

// ShowsFile reports whether systemctl list-unit-files shows a unit file.
func (f Filter) ShowsFile(l ListedFile) bool {
	return f.Names(l.Name) && (len(f.Types) == 0 || slices.Contains(f.Types, l.Name.Type())) &&
		(len(f.States) == 0 || slices.Contains(f.States, l.State))
}

// Listed is one unit in a list of them.
type Listed struct {
	Name        Name // primary
	Description string
	Load        LoadState
	Active      ActiveState
	Sub         string
	Following   Name // the unit whose state this one has, "" for most
	Job         Job
}

// Stand is since when a unit is in its active state, nil for ever since it was
// loaded, and how its last run ended, "" for types that do not run.
type Stand struct {
	Since  *time.Time
	Result string
}

// ListedFile is one unit file, template or link to one in the search path.
type ListedFile struct {
	Name   Name
	Path   string
	State  string // enabled, disabled, static, masked, alias, generated, …
	Preset string // enabled, disabled or ignored; "" where State leaves no choice, as systemctl has it
}

// The keys of Details.Unset.
const (
	FigureSince      = "since"
	FigureMainPID    = "main_pid"
	FigureMemory     = "memory"
	FigureCPU        = "cpu"
	FigureTasks      = "tasks"
	FigureRestarts   = "restarts"
	FigureExitStatus = "exit_status"
)

// Details is all that is told of one unit at one moment. A figure that systemd
// does not have is nil, and Unset says why under its key.
type Details struct {
	ID          Name   // primary name
	Names       []Name // all of them, sorted
	Description string
	Documents   []string
	Load        LoadState
	LoadError   string // systemd's words on a definition that it could not load
	Active      ActiveState
	Sub         string
	Enablement  string // UnitFileState; "" for a unit without a file
	Preset      string // UnitFilePreset; "" for a unit without a file
	Fragment    string
	DropIns     []string // in the order in which they were read
	NeedReload  bool     // as systemd has it, which proves nothing when false
	Invocation  string   // InvocationID in hex; "" for none
	Job         Job
	Triggers    []Name // sorted
	TriggeredBy []Name // sorted
	Unmet       []Condition

	Result     string     // of the types that have one
	ExitCode   string     // exited, killed or dumped; "" when no main process has ended
	ExitStatus *int       // exit status, or the signal's number
	Since      *time.Time // when it came into its active state, as systemctl status has it
	MainPID    *uint32
	Memory     *uint64 // bytes
	CPU        *uint64 // nanoseconds
	Tasks      *uint64
	Restarts   *uint32 // automatic ones

	Unset map[string]string // figure → why it is nil
}

// LinkMade is a symbolic link that was made.
type LinkMade struct{ Path, To string }

// Linking is what enabling or disabling units changed on disk.
type Linking struct {
	Made      []LinkMade
	Removed   []string
	NoInstall bool     // no [Install] section of theirs asks for anything
	Notes     []string // what the manager passed over, and its word for why, such as "b.service: masked"
}
