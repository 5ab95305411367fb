package disk

import (
	"slices"
	"strings"

	"stead/host/plan"
	"stead/host/unit"
)

// def is what the files of a unit define.
type def struct {
	key     string // the files' paths and digests
	text    plan.Text
	install bool // there is an [Install] section
}

// text reads what the unit's files say when what is declared is in place.
func (u *one) text() def {
	fragment, dropins := u.d.Fragment, u.d.DropIns
	if u.then != u.now {
		var gone bool
		fragment, gone = u.then.fragment(u.q.Unit)
		if dropins = nil; hasDropIns(u.q, fragment, gone) {
			dropins = u.then.dropins(u.then.names(u.q.Unit, fragment))
		}
	}
	key, files := u.key, u.files
	if u.then != u.now || fragment != u.q.Status.Fragment || !slices.Equal(dropins, u.q.Status.DropIns) {
		key, files = u.then.definition(fragment, dropins)
	}
	for i, t := range files {
		if t.entry.Kind == plan.Other && !t.null {
			// systemd opens what it finds, and the whole machine waits for somebody to
			// write into a FIFO.
			u.d.Errs = append(u.d.Errs, obstacle(pathOf(i, fragment, dropins), false, true))
		}
	}
	return u.defs.get(key, func() def { return define(key, fragment, files, u.o.Version) })
}

// pathOf is the path of the file i of a definition.
func pathOf(i int, fragment string, dropins []string) string {
	switch {
	case fragment == "":
		return dropins[i]
	case i == 0:
		return fragment
	}
	return dropins[i-1]
}

// definition returns a key for what the files say, and the files.
func (s *search) definition(fragment string, dropins []string) (string, []*thing) {
	files := make([]*thing, 0, 1+len(dropins))
	size := 0
	if fragment != "" {
		files, size = append(files, s.read(fragment)), 80+len(fragment)
	}
	for _, p := range dropins {
		files, size = append(files, s.read(p)), size+80+len(p)
	}
	key := make([]byte, 0, size)
	for i, t := range files {
		key = append(append(key, pathOf(i, fragment, dropins)...), 0)
		key = append(append(append(key, t.entry.Kind...), t.entry.Digest...), 0)
	}
	return string(key), files
}

// define reads the files of a unit, the fragment first, for a version of systemd.
func define(key, fragment string, files []*thing, version int) def {
	var f unit.File
	for i, t := range files {
		if i == 0 {
			f = t.text
			continue
		}
		f = f.Merge(t.text)
	}
	return def{key: key, install: f.HasSection("Install"), text: plan.Text{
		Kind:        kindOf(fragment),
		Type:        last(f, "Service", "Type"),
		PIDFile:     last(f, "Service", "PIDFile"),
		Reloads:     reloads(f, version),
		RemainAfter: yes(last(f, "Service", "RemainAfterExit")),
		RefuseStart: yes(last(f, "Unit", "RefuseManualStart")),
		RefuseStop:  yes(last(f, "Unit", "RefuseManualStop")),
		Conditions:  conditions(f, "Condition"),
		Asserts:     conditions(f, "Assert"),
		Conflicts:   conflicts(f),
		Serves:      last(f, "Socket", "Service"),
		Accepts:     yes(last(f, "Socket", "Accept")),
		Deadly:      deadly(f, version),
	}}
}

// reloads reports whether the files say how the unit is reloaded (systemd.service(5);
// systemd.unit(5), PropagatesReloadTo=).
// Type=notify-reload is of version 253; those before take it for a misspelling.
func reloads(f unit.File, version int) bool {
	notify := last(f, "Service", "Type") == "notify-reload" && !older(version, 253)
	return last(f, "Service", "ExecReload") != "" || notify || last(f, "Unit", "PropagatesReloadTo") != ""
}

// deadly says why the manager would not survive to load the unit; "" when nothing is
// known against it. Seen on 247; 252 calls the definition bad.
func deadly(f unit.File, version int) string {
	if older(version, 251) && last(f, "Service", "Type") == "dbus" && last(f, "Service", "BusName") == "" {
		return "Type=dbus without BusName="
	}
	return ""
}

// conditions are the lines that must be met for a start, Condition…= or Assert…=. An
// empty one of any kind takes all before it back (systemd.unit(5), Conditions and
// Asserts).
func conditions(f unit.File, word string) []string {
	var all []string
	for key, value := range f.Entries("Unit") {
		switch {
		case !strings.HasPrefix(key, word):
		case value == "":
			all = nil
		default:
			all = append(all, key+"="+value)
		}
	}
	return all
}

// conflicts are the words of all Conflicts= lines; no line takes another back
// (systemd.unit(5)).
func conflicts(f unit.File) []string {
	var all []string
	for _, v := range f.Values("Unit", "Conflicts") {
		all = append(all, strings.Fields(v)...)
	}
	return all
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
