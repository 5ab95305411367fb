package seats

import (
	"encoding/json"
	"time"

	"stead/mesh/subject"
)

// NodeServiceManager is the seat through which the units of a node are asked
// about and acted on.
const NodeServiceManager subject.Seat = "node-service-manager"

// The verbs of NodeServiceManager. Units, Status and Journal read, the others
// act.
const (
	Units   subject.Verb = "units"
	Status  subject.Verb = "status"
	Journal subject.Verb = "journal"
	Start   subject.Verb = "start"
	Stop    subject.Verb = "stop"
	Restart subject.Verb = "restart"
	Enable  subject.Verb = "enable"
	Disable subject.Verb = "disable"
)

// DeclaredBy is the declaration that a unit is of.
type DeclaredBy struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
	Ensure     string `json:"ensure,omitempty"` // "": activity is not managed
	Enabled    *bool  `json:"enabled,omitempty"`
	// Paused says until when the host leaves the unit as it is; nil when it does not.
	Paused *Paused `json:"paused,omitempty"`
}

// Paused is a pause that has not ended.
type Paused struct {
	Until  time.Time `json:"until"`
	By     string    `json:"by"` // who asked for it: "operator alice"
	Reason string    `json:"reason,omitempty"`
}

// Unreadable is a scope that could not be asked, and why.
type Unreadable struct {
	Scope  string `json:"scope"`
	Reason string `json:"reason"`
}

// UnitsArguments ask which units there are. Patterns are globs over names, as
// systemctl has them; empty lists ask for all.
type UnitsArguments struct {
	Patterns []string `json:"patterns,omitempty"`
	States   []string `json:"states,omitempty"` // load, active or sub states
	Types    []string `json:"types,omitempty"`
	All      bool     `json:"all,omitempty"`      // also those that are inactive, not found and so on
	Files    bool     `json:"files,omitempty"`    // unit files instead of units
	Declared bool     `json:"declared,omitempty"` // only those that a declaration is of
	Details  bool     `json:"details,omitempty"`  // with since and result: two more looks at each unit
	Scope    string   `json:"scope,omitempty"`    // system or user; "" is both
	Cursor   string   `json:"cursor,omitempty"`   // begins after the page that had it
}

// UnitsReply is one page of units, sorted by scope and name. Each page is of its
// own moment: a unit that stands throughout is in one of them.
type UnitsReply struct {
	Units      []UnitLine   `json:"units"`
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	Cursor     string       `json:"cursor,omitempty"` // of the last unit
	More       bool         `json:"more,omitempty"`   // there are more: ask again with Cursor
}

// UnitLine is one unit, or one unit file.
type UnitLine struct {
	Name        string      `json:"name"`
	Scope       string      `json:"scope"`
	Description string      `json:"description,omitempty"`
	Load        string      `json:"load,omitempty"`
	Active      string      `json:"active,omitempty"`
	Sub         string      `json:"sub,omitempty"`
	Enablement  string      `json:"enablement,omitempty"` // the unit file's state, where it has a file
	Preset      string      `json:"preset,omitempty"`     // of files alone
	Since       *time.Time  `json:"since,omitempty"`      // of the active state; with details alone
	Result      string      `json:"result,omitempty"`     // of the last run; with details alone
	DeclaredBy  *DeclaredBy `json:"declared_by"`
}

// StatusArguments ask how one unit stands.
type StatusArguments struct {
	Unit  string `json:"unit"`
	Lines *int   `json:"lines,omitempty"` // log lines, 0 to 1,000; absent: 10
	Scope string `json:"scope,omitempty"` // "" is both
}

// StatusReply holds the unit of each scope that has it.
type StatusReply struct {
	Units      []UnitStatus `json:"units"`
	Unreadable []Unreadable `json:"unreadable,omitempty"`
}

// UnitStatus is how one unit stands. A figure that systemd does not have is null,
// and Unset says why.
type UnitStatus struct {
	ID          string            `json:"id"`
	Names       []string          `json:"names"`
	Scope       string            `json:"scope"`
	Description string            `json:"description,omitempty"`
	Load        string            `json:"load"`
	LoadError   string            `json:"load_error,omitempty"`
	Active      string            `json:"active"`
	Sub         string            `json:"sub"`
	Enablement  string            `json:"enablement,omitempty"`
	Preset      string            `json:"preset,omitempty"`
	Result      string            `json:"result,omitempty"`
	ExitCode    string            `json:"exit_code,omitempty"` // exited, killed, dumped
	ExitStatus  *int              `json:"exit_status"`
	Since       *time.Time        `json:"since"` // of the active state
	MainPID     *uint32           `json:"main_pid"`
	Memory      *uint64           `json:"memory"` // bytes
	CPU         *uint64           `json:"cpu"`    // nanoseconds
	Tasks       *uint64           `json:"tasks"`
	Restarts    *uint32           `json:"restarts"`
	Unset       map[string]string `json:"unset,omitempty"` // figure → why it is null
	Fragment    string            `json:"fragment,omitempty"`
	DropIns     []string          `json:"dropins,omitempty"`
	NeedReload  bool              `json:"need_reload,omitempty"` // as systemd has it, which proves nothing when false
	TriggeredBy []string          `json:"triggered_by,omitempty"`
	Triggers    []string          `json:"triggers,omitempty"`
	Job         string            `json:"job,omitempty"` // in the queue
	Invocation  string            `json:"invocation,omitempty"`
	Unmet       []string          `json:"unmet,omitempty"` // conditions and asserts that were not met at the last try
	Documents   []string          `json:"documents,omitempty"`
	Lines       []string          `json:"lines,omitempty"`       // the last log lines
	LinesError  string            `json:"lines_error,omitempty"` // why there are none, or not all
	DeclaredBy  *DeclaredBy       `json:"declared_by"`
}

// ActArguments ask for a job.
type ActArguments struct {
	Unit    string `json:"unit"`              // a name, or a glob over loaded units
	Wait    *bool  `json:"wait,omitempty"`    // for the job's end; absent: true
	Timeout string `json:"timeout,omitempty"` // of that wait, such as 30s, at most 10m; "" is 90s
	Scope   string `json:"scope,omitempty"`   // "" is system
	Yes     bool   `json:"yes,omitempty"`     // agrees that a glob acts on more than ten units
}

// ActReply holds every unit that was acted on, sorted by name.
type ActReply struct {
	Units []Acted `json:"units"`
}

// State is how a unit stands at one moment.
type State struct {
	Active string `json:"active"`
	Sub    string `json:"sub"`
}

// Acted is what became of one unit. Result is systemd's word of how the job
// ended, "queued" when it was not waited for.
type Acted struct {
	Unit       string      `json:"unit"`
	Scope      string      `json:"scope"`
	Result     string      `json:"result,omitempty"`
	Error      string      `json:"error,omitempty"` // why there was no job, in systemd's words
	Before     State       `json:"before"`
	After      State       `json:"after"`
	Took       float64     `json:"took"` // seconds, to the job's end
	DeclaredBy *DeclaredBy `json:"declared_by"`
	// Note says what will undo it, the host or what triggers the unit, and why; ""
	// when nothing will.
	Note string `json:"note,omitempty"`
}

// EnableArguments ask for the links of one unit, to be made or removed.
type EnableArguments struct {
	Unit  string `json:"unit"`
	Now   bool   `json:"now,omitempty"` // start, or stop, it too
	Scope string `json:"scope,omitempty"`
}

// EnableReply is what changed on disk.
type EnableReply struct {
	Unit       string      `json:"unit"`
	Scope      string      `json:"scope"`
	Made       []Link      `json:"made,omitempty"`
	Removed    []string    `json:"removed,omitempty"`
	NoInstall  bool        `json:"no_install,omitempty"` // its [Install] section asks for nothing
	Passed     []string    `json:"passed,omitempty"`     // what systemd passed over, in its words
	Acted      *Acted      `json:"acted,omitempty"`      // with now
	DeclaredBy *DeclaredBy `json:"declared_by"`
	Note       string      `json:"note,omitempty"`
}

// Link is a symbolic link.
type Link struct {
	Path string `json:"path"`
	To   string `json:"to"`
}

// JournalArguments ask for log entries, as journalctl has them.
type JournalArguments struct {
	Unit     string `json:"unit,omitempty"`     // "" is every unit
	Lines    *int   `json:"lines,omitempty"`    // the newest; absent: 100; at most 10,000
	Since    string `json:"since,omitempty"`    // systemd.time(7)
	Until    string `json:"until,omitempty"`    //
	Priority string `json:"priority,omitempty"` // 0 to 7 or a name, or a range
	Grep     string `json:"grep,omitempty"`
	Boot     string `json:"boot,omitempty"`   // an offset, an id, or "all"; "" is all
	Cursor   string `json:"cursor,omitempty"` // after this entry
	Follow   bool   `json:"follow,omitempty"` // go on with what comes
	Scope    string `json:"scope,omitempty"`  // "" is system
}

// JournalReply is one page of entries, or one chunk of a stream. Each entry is
// the object that journalctl -o json --all writes: bytes that are no text are
// arrays of numbers, and a field that stands twice is an array. An entry that is
// too large for a page has null in place of its largest fields, which is what
// journalctl writes for a field that is too long without --all, and Omitted
// names them. Lost says that the entry of the cursor that was asked behind is no
// longer there: what came between it and the first entry may be gone with it.
type JournalReply struct {
	Entries []json.RawMessage `json:"entries"`
	Cursor  string            `json:"cursor,omitempty"` // of the last entry
	More    bool              `json:"more,omitempty"`   // there are more now: ask again with Cursor
	Lost    bool              `json:"lost,omitempty"`   // entries may be missing before the first
	Omitted []OmittedField    `json:"omitted,omitempty"`
}

// OmittedField is a field that an entry had, and that did not fit.
type OmittedField struct {
	Cursor string `json:"cursor"` // of the entry
	Field  string `json:"field"`
	Bytes  int64  `json:"bytes"` // of its JSON text
}

// JSON is the reply as it stands on the wire. Entries are put into it byte for
// byte, which json.Marshal does not do. They must be valid.
func (r JournalReply) JSON() []byte {
	size := 64 + len(r.Cursor)
	for _, e := range r.Entries {
		size += len(e) + 1
	}
	out := append(make([]byte, 0, size), `{"entries":[`...)
	for i, e := range r.Entries {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, e...)
	}
	// Texts, a truth value and numbers have no form that cannot be encoded.
	rest, _ := json.Marshal(struct {
		Cursor  string         `json:"cursor,omitempty"`
		More    bool           `json:"more,omitempty"`
		Lost    bool           `json:"lost,omitempty"`
		Omitted []OmittedField `json:"omitted,omitempty"`
	}{r.Cursor, r.More, r.Lost, r.Omitted})
	if out = append(out, ']'); len(rest) > len("{}") {
		out = append(append(out, ','), rest[1:]...)
	} else {
		out = append(out, '}')
	}
	return out
}
