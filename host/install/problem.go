package install

import (
	"fmt"

	"stead/host/unit"
)

// Code says what is wrong.
type Code string

// The codes of a Problem.
const (
	NoUnit       Code = "no-unit"       // there is no such unit
	IsMasked     Code = "masked"        // the unit is masked
	IsAlias      Code = "alias"         // a link in the configuration folders, which EnableUnitFiles does not follow
	IsGenerated  Code = "generated"     // a generator's or transient unit
	Broken       Code = "broken"        // systemd refuses the file for its syntax
	Unreadable   Code = "unreadable"    // there is something of that name, and it cannot be read
	BadLink      Code = "bad-link"      // the fragment is a link to something that cannot be this unit
	BadAlias     Code = "bad-alias"     // Alias= that this unit cannot have
	BadName      Code = "bad-name"      // something that is no unit name
	BadInstance  Code = "bad-instance"  // DefaultInstance= that is no instance name
	BadSpecifier Code = "bad-specifier" // a "%" that [Install] does not expand
	NotInstance  Code = "not-instance"  // a template wanted by a plain unit, without an instance to pull in
	Taken        Code = "taken"         // two units ask for the same alias
)

// Problem is something that keeps links from being made.
type Problem struct {
	Code   Code
	Owner  unit.Name // in whose [Install] section it stands, or the unit itself
	Object string    // the word, name or path that is wrong
	Text   string    // why, for a person
	Fatal  bool      // the manager's own call answers with an error
}

// String reads "owner: object: text".
func (p Problem) String() string { return fmt.Sprintf("%s: %q: %s", p.Owner, p.Object, p.Text) }
