package plan

import (
	"time"

	"stead/host/shape"
	"stead/host/unit"
)

// Query asks the disk about one unit.
type Query struct {
	Unit    unit.Name
	Service *shape.Service // nil when the unit is being withdrawn
	Status  unit.Status    // whose Fragment and DropIns say which files the manager has loaded
	Memory  Memory         // whose Found and Wrote name the paths to look at
	// Files are the paths, as they are declared, of the files that triggers of Service
	// cite, by citation (file:NAME).
	Files map[string]string
}

// Disk is what the disk says of one unit, and what the declaration asks of the
// disk. It is made by host/disk.
type Disk struct {
	// Wants are the files and links that shall stand, the unit file first, then
	// drop-ins, then the links that [Install] asks for; sorted by path within
	// each. Empty for a unit that is being withdrawn.
	Wants []Want
	// At is what stands at every path of Wants, of Memory.Found and of OwnLinks.
	At map[string]Entry
	// OwnLinks are the links on disk that this unit's own [Install] section asks
	// for, in the configuration folder that stead writes to (Also= partners are
	// not its own). They are what enabled: false removes.
	OwnLinks []string
	// Vendor are links that pull the unit in and that its [Install] section does not
	// ask for, a vendor's and such as somebody made by hand; enabled: false does not
	// turn them off, and says so.
	Vendor []string

	// Loaded is the digest of the bytes of Status.Fragment and Status.DropIns, in
	// order, paths included; "" when the unit has no fragment.
	Loaded string
	// Fragment and DropIns are the files that systemd would read for the unit if
	// it reloaded now, by its search path. Where they are not those of Status, a
	// reload is owed.
	Fragment string
	DropIns  []string

	// Shadowed are declared drop-ins and links that systemd does not take, since
	// another of that name comes before them in its search: path → the one that
	// wins.
	Shadowed map[string]string

	// Mask is the path of the mask (a link to /dev/null, or an empty file) that
	// holds the unit, "" when it is not masked.
	Mask string
	// Place is where a mask of the unit is put, or taken away: where its content
	// would be. "" when nothing is declared of masks.
	Place string
	// Masks are those of the unit that can be taken away, of a unit that is masked
	// or of which something is declared of masks: in the configuration folder, and
	// in its counterpart until the next boot.
	Masks []string
	// Triggers is what stands at the paths that are declared as triggers, by path; of
	// declared files by citation.
	Triggers map[string]Cited
	// Text is what the unit's files say, as they are on disk, the wanted ones in
	// place of what stands there.
	Text Text
	// Real is where a declared file is to stand, links on the way to it followed; ""
	// of a unit.
	Real string
	// Denied is why a declared file is not written; the zero value when it may be.
	Denied Denial
	// Errs are paths that could not be looked at.
	Errs []error
}

// Text is what a unit's fragment and drop-ins say, as far as a plan depends on
// it.
type Text struct {
	Kind          TextKind
	Type          string // Type= of [Service]; "" when unset
	PIDFile       string
	Reloads       bool     // it says how the unit is reloaded
	RemainAfter   bool     // RemainAfterExit=
	HasInstall    bool     // its [Install] section asks for at least one link, or names Also=
	RefuseStart   bool     // RefuseManualStart=
	RefuseStop    bool     // RefuseManualStop=
	Conditions    []string // Condition…= lines in force
	Asserts       []string // Assert…= lines in force
	Serves        string   // of a socket: Service=, specifiers unresolved; "" when unset
	Accepts       bool     // of a socket: it has an instance of its service for each connection
	Conflicts     []string // what Conflicts= names, specifiers unresolved
	InstallErrors []string // what is wrong with its [Install] section
	InstallFailed bool     // enabling it by systemd's own means would end in an error
	Deadly        string   // what in them ends a manager of the running version of systemd that loads them; "" is nothing
}

// Cited is what stands at a trigger, links followed. A file is known by its
// bytes, a folder by the names and bytes of the files in it.
type Cited struct {
	Digest  string // Missing when nothing is there, "" when that is not known
	Path    string // of a declared file that is cited, as far as it is known; "" of a path
	Real    string // the path without links, where it is another one
	Folder  bool
	Trouble string // why changes of it may go unseen; "" when none do
}

// Missing is the digest of a trigger where nothing is.
const Missing = "missing"

// TextKind says what made the unit's fragment.
type TextKind string

// The kinds of a fragment.
const (
	Plain     TextKind = ""
	Generated TextKind = "generated" // below a generator's folder
	Transient TextKind = "transient"
)

// Clock is one reading of the two clocks that plans use, and the boot they
// belong to. The monotonic one is CLOCK_MONOTONIC, as systemd stamps states.
type Clock struct {
	Wall      time.Time
	Monotonic time.Duration
	Boot      string // boot id
}
