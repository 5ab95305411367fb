// Package install tells which links the [Install] section of a unit asks for:
// those that a manager's EnableUnitFiles makes of the unit, no more and no
// fewer, with the same paths and targets.
//
// It is pure. What lies on disk comes in through a Lookup, facts of the
// machine through Specifiers; whoever calls it compares the links with the disk
// and writes or removes them. Every rule in here was seen on a real manager,
// and a test holds generated units against one.
//
// How to use it: call Links with the unit's name; make those of Result.Links
// of which Options.Present is not true already; say Result.Problems. To disable,
// remove Result.Own and nothing else.
//
// The package keeps no state: Links may run concurrently as far as its Lookup
// may. Its only errors are the Lookup's.
package install

import (
	"stead/host/unit"
)

// Unit is what the manager's search path has for a name.
type Unit struct {
	// Path is where the fragment was found: in the first folder of the search
	// path that has an entry of that very name, whatever the entry is.
	Path string
	// Link is, where Path is a symbolic link, where it leads in one step: absolute
	// and clean, with the links among its folders resolved as far as they exist,
	// and its last name not followed. Left empty it counts as Target.
	Link string
	// Target is, where Path is a symbolic link, where the whole chain ends, with
	// all links resolved as far as they exist. "" when Path is no link.
	Target string
	// Gone is true when Path is a link and the chain leads nowhere.
	Gone bool
	// Masked is true when Path is empty or leads to something empty or to
	// /dev/null.
	Masked bool
	// Err says why there is an entry and still no text: it is a folder, a FIFO,
	// a ring of links. It is reported, and never ends the Links call.
	Err error
	// Text is what the file says, read through the links.
	Text unit.File
	// DropIns are the files *.conf of the folders NAME.d of the whole search
	// path, sorted by file name; of several with one name only that of the first
	// folder. A link to /dev/null counts, with no text. They may be there
	// for a name without a fragment.
	DropIns []DropIn
}

// DropIn is one drop-in file.
type DropIn struct {
	Path string // as found
	Text unit.File
	Err  error // why it has no text: a folder, a link that leads nowhere
}

// Lookup returns what lies in the search path for exactly the name n: an
// instance is not looked up under its template. found is false when there is no
// fragment; DropIns may be set all the same. An error ends the Links call.
// Names follow systemd's grammar; they may begin with a dash.
type Lookup func(n unit.Name) (u Unit, found bool, err error)

// Options is what Links needs to know beside the unit's name. All but Same and
// Version are required.
type Options struct {
	Lookup     Lookup
	Search     []string // the manager's search path (its property UnitPath), in order
	Config     string   // the folder in which links are made: /etc/systemd/system
	Runtime    string   // its counterpart until the next boot: /run/systemd/system
	Specifiers Specifiers
	Version    int // of systemd; 0 counts as 252

	// Same reports whether two absolute paths lead to one file (os.SameFile),
	// false when either leads nowhere. Nil: no two paths do.
	Same func(a, b string) bool
}

// Link is a symbolic link that shall stand.
type Link struct {
	Path   string
	Target string    // verbatim
	Owner  unit.Name // whose own [Install] section asks for it: another unit's where Also= led there
	// Linked marks the link that brings a unit from outside the search path into
	// it. The manager makes it, and no [Install] section asks for it.
	Linked bool
}

// Kind says what enabling a unit means.
type Kind string

// The kinds of a unit.
const (
	Enableable Kind = "enableable" // its own [Install] asks for links, be they possible or not
	Indirect   Kind = "indirect"   // it asks for none itself, and Also= names others
	Static     Kind = "static"     // nothing to enable
	Masked     Kind = "masked"
	Generated  Kind = "generated" // made by a generator, or transient: refused, whatever its [Install] says
	Invalid    Kind = "invalid"   // missing, or nothing that can be read as this unit
)

// Result is what Links found.
type Result struct {
	Name     unit.Name // the unit itself, where the name asked for is an alias
	Kind     Kind
	Links    []Link    // sorted by Path, which is unique
	Problems []Problem // in the order in which they were met
}

// Own returns the links that r.Name's own [Install] section asks for, sorted
// by Path.
func (r Result) Own() []Link {
	var own []Link
	for _, l := range r.Links {
		if l.Owner == r.Name && !l.Linked {
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
