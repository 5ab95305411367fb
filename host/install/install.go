// Package install tells which links the [Install] section of a unit asks for:
// those that a manager's EnableUnitFiles makes of the unit, no more and no
// fewer, with the same paths and targets.
//
// It is pure. What lies on disk comes in through a Lookup, facts of the
// machine through Specifiers; whoever calls it compares the links with the disk
// and writes or removes them. Every rule in here was seen on a real manager,
// and a test holds generated units against one.
//
// A Links call reads no state of the package; it may run concurrently as far as
// its Lookup may.
package install

import (
	"stead/host/unit"
)

// Unit is what the manager's search path has for a name.
type Unit struct {
	// Path is where the fragment was found: in the first folder of the search
	// path that has an entry of that very name.
	Path string
	// Link is the verbatim target when Path is a symbolic link, "" otherwise.
	Link string
	// Masked is true when Path is empty or leads to /dev/null.
	Masked bool
	// Text is what the file says, read through the links.
	Text unit.File
	// DropIns are the *.conf files of the folders NAME.d of the whole search
	// path. They may be there for a name that has no fragment.
	DropIns []DropIn
}

// DropIn is one drop-in file.
type DropIn struct {
	Path string // as found
	Text unit.File
}

// Lookup returns what lies in the search path for exactly the name n: an
// instance is not looked up under its template. found is false when there is no
// fragment; DropIns may be set all the same. An error ends the Links call.
type Lookup func(n unit.Name) (u Unit, found bool, err error)

// Options is what Links needs to know beside the unit's name. All but Version
// is required.
type Options struct {
	Lookup     Lookup
	Search     []string // the manager's search path (its property UnitPath), in order
	Config     string   // the folder in which links are made: /etc/systemd/system
	Specifiers Specifiers
	Version    int // of systemd; 0 counts as 252
}

// Specifiers are the facts of a machine that [Install] may cite with "%". An
// empty value expands to nothing.
type Specifiers struct {
	Arch          string // %a, in systemd's spelling: x86-64
	ImageVersion  string // %A, IMAGE_VERSION= of os-release
	BootID        string // %b, 32 hex digits
	BuildID       string // %B, BUILD_ID=
	Group         string // %g, of the manager's account: root
	GID           string // %G: 0
	Hostname      string // %H; %l is its part before the first dot
	MachineID     string // %m, 32 hex digits
	ImageID       string // %M, IMAGE_ID=
	OS            string // %o, ID=
	PrettyHost    string // %q, PRETTY_HOSTNAME= of /etc/machine-info, else the host name
	User          string // %u: root
	UID           string // %U: 0
	KernelRelease string // %v
	OSVersion     string // %w, VERSION_ID=
	Variant       string // %W, VARIANT_ID=
}

// Link is a symbolic link that shall stand.
type Link struct {
	Path   string
	Target string    // verbatim
	Owner  unit.Name // whose own [Install] section asks for it: another unit's where Also= led there
}

// Kind says what enabling a unit means.
type Kind string

// The kinds of a unit.
const (
	Enableable Kind = "enableable" // its own [Install] asks for links
	Indirect   Kind = "indirect"   // it asks for none itself, and Also= names others
	Static     Kind = "static"     // nothing to enable
	Masked     Kind = "masked"
	Missing    Kind = "missing" // no such unit
)

// Result is what Links found.
type Result struct {
	Name     unit.Name // the unit itself, where the name asked for is an alias
	Kind     Kind
	Links    []Link    // sorted by Path
	Problems []Problem // in the order in which they were met
}

// Own returns the links that r.Name's own [Install] section asks for.
func (r Result) Own() []Link {
	var own []Link
	for _, l := range r.Links {
		if l.Owner == r.Name {
			own = append(own, l)
		}
	}
	return own
}

// Failed reports whether the manager's EnableUnitFiles answers with an error.
// Links are then those that it makes all the same.
func (r Result) Failed() bool {
	for _, p := range r.Problems {
		if p.Fatal {
			return true
		}
	}
	return false
}
