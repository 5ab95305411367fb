// Package unit holds systemd's own words: unit names, scopes, load and active
// states, jobs and their results, and what a unit file says.
//
// The meanings are exactly systemd's; nothing here is an invention of stead.
// The package is words only: it reads no disk and speaks to no manager.
package unit

import (
	"errors"
	"fmt"
	"strings"

	"stead/host/fault"
)

// NameMax is the longest unit name that systemd accepts, in bytes
// (UNIT_NAME_MAX is 256 with the terminating zero).
const NameMax = 255

// Name is a full unit name, such as "web.service" or "x@one.service". A value
// made by ParseName is valid by systemd's grammar (systemd.unit(5)).
type Name string

// ParseName checks s against systemd's grammar for unit names, as CheckName
// does, and refuses what a command line would take for an option. The error
// names the rule.
func ParseName(s string) (Name, error) {
	err := CheckName(s)
	if err == nil && strings.HasPrefix(s, "-") && s != "-.slice" && s != "-.mount" {
		err = errors.New("it begins with a dash and looks like an option")
	}
	if err != nil {
		return "", fault.New(fault.Invalid, "unit name", fmt.Sprintf("%.300q", s), err)
	}
	return Name(s), nil
}

// Full is name with ".service" behind it where it is bare, as systemctl reads it.
func Full(name string) string {
	if CheckName(name) != nil && CheckName(name+".service") == nil {
		return name + ".service"
	}
	return name
}

// CheckName says why s is no unit name by systemd's grammar, nil when it is
// one: a prefix of [A-Za-z0-9:_.\-], maybe an "@" with an instance behind it
// which may hold further ones, and the suffix of a unit type; at most NameMax
// bytes.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case strings.IndexByte(s, '/') >= 0:
		return errors.New("it is a path; a unit is named by its full name, such as web.service")
	case len(s) > NameMax:
		return fmt.Errorf("it has %d bytes; systemd takes at most %d", len(s), NameMax)
	}
	dot := strings.LastIndexByte(s, '.')
	if dot < 0 {
		return errors.New("it has no suffix of a unit type, such as .service")
	}
	if !isType(s[dot+1:]) {
		return fmt.Errorf("%q is not a unit type of systemd", "."+s[dot+1:])
	}
	if dot == 0 || s[0] == '@' {
		return errors.New("it has nothing before the suffix or before the \"@\"")
	}
	for i := range dot {
		if c := s[i]; !nameByte(c) && c != '@' {
			return fmt.Errorf(`byte %d (%q) is not allowed; systemd takes letters, digits and ":-_.\@"`, i, s[i:i+1])
		}
	}
	return nil
}

// CheckInstance says why s cannot stand between the "@" and the suffix of a
// unit name.
func CheckInstance(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	for i := range len(s) {
		if c := s[i]; !nameByte(c) && c != '@' {
			return fmt.Errorf(`byte %d (%q) is not allowed; systemd takes letters, digits and ":-_.\@"`, i, s[i:i+1])
		}
	}
	return nil
}

// isType reports whether s is one of the unit types that systemd knows.
func isType(s string) bool {
	switch s {
	case "service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope":
		return true
	}
	return false
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(`:-_.\`, c) >= 0
}

// Type returns the unit type without the dot: "service", "timer", …
func (n Name) Type() string { return string(n[strings.LastIndexByte(string(n), '.')+1:]) }

// IsTemplate reports whether n is a bare template such as "x@.service".
func (n Name) IsTemplate() bool {
	at := strings.IndexByte(string(n), '@')
	return at >= 0 && at+1 == strings.LastIndexByte(string(n), '.')
}

// IsInstance reports whether n is an instance of a template.
func (n Name) IsInstance() bool {
	return strings.IndexByte(string(n), '@') >= 0 && !n.IsTemplate()
}

// Prefix returns what stands before the "@", or before the suffix where there
// is none (%p of systemd.unit(5)).
func (n Name) Prefix() string {
	if at := strings.IndexByte(string(n), '@'); at >= 0 {
		return string(n[:at])
	}
	return n.Stem()
}

// Stem returns n without its type suffix (%N before unescaping).
func (n Name) Stem() string { return string(n[:strings.LastIndexByte(string(n), '.')]) }

// Instance returns what stands between the "@" and the suffix, "" for others.
func (n Name) Instance() string {
	at := strings.IndexByte(string(n), '@')
	if at < 0 {
		return ""
	}
	return string(n[at+1 : strings.LastIndexByte(string(n), '.')])
}

// Template returns the bare template of an instance, and n itself otherwise.
func (n Name) Template() Name {
	if !n.IsInstance() {
		return n
	}
	return Name(n.Prefix() + "@." + n.Type())
}

// WithInstance returns the instance of template n with the instance name i.
func (n Name) WithInstance(i string) Name { return Name(n.Prefix() + "@" + i + "." + n.Type()) }
