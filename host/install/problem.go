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
	Broken       Code = "broken"        // systemd refuses the file for its syntax
	BadLink      Code = "bad-link"      // the fragment is a link to something that cannot be this unit
	BadAlias     Code = "bad-alias"     // Alias= of another type, or that mixes template and instance
	BadName      Code = "bad-name"      // something that is no unit name
	BadInstance  Code = "bad-instance"  // DefaultInstance= that is no instance name
	BadSpecifier Code = "bad-specifier" // a "%" that [Install] does not expand
	NotInstance  Code = "not-instance"  // a template pulled in by a plain unit, without an instance to pull in
)

// Problem is something that keeps links from being made.
type Problem struct {
	Code   Code
	Owner  unit.Name // whose [Install] section it stands in, or the unit itself
	Object string    // the word, name or path that is wrong
	Text   string    // one sentence for a person
	Fatal  bool      // the manager's own call answers with an error
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %q: %s", p.Owner, p.Object, p.Text)
}
