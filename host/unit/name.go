// Package unit holds systemd's own words: unit names, scopes, load and active
// states, jobs and their results, and what a unit file says.
//
// The meanings are exactly systemd's; nothing here is an invention of stead.
// The package is words only: it reads no disk and speaks to no manager.
package unit

import (
	"fmt"
	"slices"
	"strings"

	"stead/host/fault"
)

// NameMax is the longest unit name that systemd accepts, in bytes
// (UNIT_NAME_MAX is 256 with the terminating zero).
const NameMax = 255

// Name is a full unit name, such as "web.service" or "x@one.service". A value
// made by ParseName is valid by systemd's grammar (systemd.unit(5)).
type Name string

// Types are the unit types that systemd knows, without the dot.
var types = []string{"service", "socket", "target", "device", "mount", "automount", "swap", "timer", "path", "slice", "scope"}

// ParseName checks s against systemd's grammar for unit names: a prefix of
// [A-Za-z0-9:_.\-], at most one "@" with an instance behind it, and the suffix
// of a unit type; at most NameMax bytes. The error names the rule.
func ParseName(s string) (Name, error) {
	bad := func(format string, args ...any) (Name, error) {
		return "", fault.New(fault.Invalid, "unit name", fmt.Sprintf("%.300q", s), fmt.Errorf(format, args...))
	}
	switch {
	case s == "":
		return bad("it is empty")
	case strings.ContainsRune(s, '/'):
		return bad("it is a path; a unit is named by its full name, such as web.service")
	case strings.HasPrefix(s, "-") && s != "-.slice" && s != "-.mount":
		return bad("it begins with a dash and looks like an option")
	case len(s) > NameMax:
		return bad("it has %d bytes; systemd takes at most %d", len(s), NameMax)
	}
	dot := strings.LastIndexByte(s, '.')
	if dot < 0 {
		return bad("it has no suffix of a unit type, such as .service")
	}
	if !slices.Contains(types, s[dot+1:]) {
		return bad("%q is not a unit type of systemd", "."+s[dot+1:])
	}
	stem := s[:dot]
	if stem == "" || stem[0] == '@' {
		return bad("it has nothing before the %q", s[len(stem):dot+1])
	}
	for i := range len(stem) {
		if c := stem[i]; !nameByte(c) && c != '@' {
			return bad(`byte %d (%q) is not allowed; systemd takes letters, digits and ":-_.\@"`, i, stem[i:i+1])
		}
	}
	return Name(s), nil
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
