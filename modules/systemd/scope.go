package systemd

import (
	"errors"
	"os"
	"path/filepath"

	"stead/host/fault"
	"stead/host/unit"
	"stead/seats"
)

// unreadableUser says that the user scope is not among what was read.
func unreadableUser() seats.Unreadable {
	return seats.Unreadable{Scope: string(unit.User), Reason: "this version does not read it"}
}

// unread lists the scopes that a was to read and that are not.
func unread(scope string) []seats.Unreadable {
	if scope == string(unit.System) {
		return nil
	}
	return []seats.Unreadable{unreadableUser()}
}

// actsIn is nil for scopes that can be acted in.
func actsIn(verb, name, scope string) error {
	if scope == string(unit.User) {
		return fault.New(fault.Unsupported, verb, name, errors.New("scope user cannot be acted in by this version"))
	}
	return nil
}

// userFolders are where systemd looks for units of the user scope, homes left
// out (systemd.unit(5)).
func userFolders() []string {
	return []string{"/etc/systemd/user", "/run/systemd/user", "/usr/local/share/systemd/user", "/usr/share/systemd/user",
		"/usr/local/lib/systemd/user", "/usr/lib/systemd/user"}
}

// inUserScope reports whether there is such a unit in the user scope, as far as
// can be seen: it is declared there, or has a file in a folder that is not a
// home's.
func (m *Module) inUserScope(n unit.Name) bool {
	for _, d := range m.o.Declared() {
		if d.Scope == string(unit.User) && d.Unit == string(n) {
			return true
		}
	}
	for _, dir := range m.o.UserFolders {
		for _, name := range []unit.Name{n, n.Template()} {
			if _, err := os.Stat(filepath.Join(dir, string(name))); err == nil {
				return true
			}
		}
	}
	return false
}
