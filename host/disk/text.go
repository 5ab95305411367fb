package disk

import (
	"slices"
	"strings"

	"stead/host/plan"
	"stead/host/unit"
)

// text reads what the unit's files say when what is declared is in place, and
// returns it.
func (u *one) text() unit.File {
	fragment, gone := u.then.fragment(u.q.Unit)
	var f unit.File
	var files []unit.File
	if fragment != "" {
		f = u.then.read(fragment).text
	}
	if hasDropIns(u.q, fragment, gone) {
		for _, p := range u.then.dropins(u.then.names(u.q.Unit, fragment)) {
			files = append(files, u.then.read(p).text)
		}
	}
	if len(files) > 0 {
		f = f.Merge(files...)
	}
	t := &u.d.Text
	t.Kind = kindOf(fragment)
	t.Type = last(f, "Service", "Type")
	t.PIDFile = last(f, "Service", "PIDFile")
	t.RemainAfter = yes(last(f, "Service", "RemainAfterExit"))
	t.RefuseStart = yes(last(f, "Unit", "RefuseManualStart"))
	t.RefuseStop = yes(last(f, "Unit", "RefuseManualStop"))
	t.Conditions = conditions(f)
	return f
}

// conditions lists the Condition…= lines in force; an empty one drops those of
// its kind before it (systemd.unit(5)).
func conditions(f unit.File) []string {
	var lines []string
	for key, value := range f.Entries("Unit") {
		switch {
		case !strings.HasPrefix(key, "Condition"):
		case value == "":
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, key+"=") })
		default:
			lines = append(lines, key+"="+value)
		}
	}
	return lines
}

func last(f unit.File, section, key string) string {
	v, _ := f.Last(section, key)
	return v
}

// yes reads a boolean as systemd does; what is none of its words counts as no.
func yes(v string) bool {
	switch strings.ToLower(v) {
	case "1", "yes", "y", "true", "t", "on":
		return true
	}
	return false
}

// kindOf says what made a fragment, by the folder it is in (systemd.unit(5),
// Unit File Load Path).
func kindOf(fragment string) plan.TextKind {
	switch {
	case strings.Contains(fragment, "/systemd/generator"):
		return plan.Generated
	case strings.Contains(fragment, "/systemd/transient/"):
		return plan.Transient
	}
	return plan.Plain
}
