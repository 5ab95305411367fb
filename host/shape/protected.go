package shape

import (
	"strings"

	"stead/host/unit"
)

// family is a set of unit names that is protected: all whose stem is one of
// stems, or begins with one of prefixes, in any of types ("" is every type).
type family struct {
	why      string
	types    string // separated by spaces
	stems    string
	prefixes string
	ends     bool // it stops the machine, rather than being what stead stands on
}

// families returns what is protected among the units of a scope.
func families(s unit.Scope) []family {
	if s == unit.User {
		return userFamilies()
	}
	return systemFamilies()
}

// own is why stead's own units are protected, in either scope.
const own = "it is stead's own"

// systemFamilies returns what is protected in the system scope. systemd-udevd is left out on purpose:
// neither the host nor a manager needs it once the machine is up, and people do
// add drop-ins to it. basic.target is left out because stopping it stops
// nothing; stopping sysinit.target stops every service that has default
// dependencies, stead's own among them.
func systemFamilies() []family {
	const (
		base = "stead stands on it"
		ends = "starting it stops or suspends the machine"
	)
	return []family{
		{own, "", "stead", "stead- stead@ stead.", false},
		{base, "scope", "init", "", false},
		{base, "slice", "- system user", "user-", false},
		{base, "mount", "-", "", false},
		{base, "target", "sysinit", "", false},
		{base, "service socket", "dbus dbus-broker dbus-daemon messagebus dbus-org.freedesktop.login1 systemd-logind", "systemd-logind- systemd-logind@", false},
		{base, "service socket", "systemd-journald", "systemd-journald- systemd-journald@", false},
		{base, "service", "", "user@ user-runtime-dir@", false},
		{ends, "target", "reboot poweroff halt kexec exit soft-reboot shutdown umount final ctrl-alt-del runlevel0 runlevel6 " +
			"suspend hibernate hybrid-sleep suspend-then-hibernate sleep factory-reset initrd-switch-root", "", true},
		{ends, "service", "systemd-reboot systemd-poweroff systemd-halt systemd-kexec systemd-exit systemd-soft-reboot " +
			"systemd-suspend systemd-hibernate systemd-hybrid-sleep systemd-suspend-then-hibernate systemd-factory-reset initrd-switch-root", "", true},
	}
}

// userFamilies returns what is protected in the user scope. A user manager has no
// sysinit.target: there it is basic.target that every service with default
// dependencies requires. Services run in app.slice, and the session with its message
// bus in session.slice.
func userFamilies() []family {
	const (
		base = "the account's manager and session stand on it"
		ends = "starting it ends the account's manager"
	)
	return []family{
		{own, "", "stead", "stead- stead@ stead.", false},
		{base, "scope", "init", "", false},
		{base, "slice", "- app session", "", false},
		{base, "target", "basic", "", false},
		{base, "service socket", "dbus dbus-broker dbus-daemon", "", false},
		{ends, "target", "exit shutdown", "", true},
		{ends, "service", "systemd-exit", "", true},
	}
}

// Protected reports whether n is a unit of scope s that no declaration may touch, and
// why: stead's own units, what they stand on (the message bus, the login manager,
// the journal, the user managers, the slices that hold them), and units that stop
// the machine; in the user scope what the account's manager stands on, and what ends
// it. It judges the name alone: who knows that a name is an
// alias of another asks for both. A name that is none is not protected. A name that ends its stem with a dash is
// protected when its drop-ins would reach a protected unit: systemd reads
// stead-.service.d for every stead-*.service (systemd.unit(5)).
func Protected(s unit.Scope, n unit.Name) (why string, protected bool) {
	if !valid(n) {
		return "", false
	}
	for _, f := range families(s) {
		if f.holds(n) {
			return f.why, true
		}
		if far := f.reach(n); far != "" {
			return "systemd reads its drop-ins for " + far + " too: " + f.why, true
		}
	}
	return "", false
}

// StandsOn reports whether stead, or the account's manager, goes down when n of scope
// s is stopped, and why. Of the protected units the others are those that stop the
// machine or the manager.
func StandsOn(s unit.Scope, n unit.Name) (why string, yes bool) {
	if !valid(n) {
		return "", false
	}
	for _, f := range families(s) {
		if !f.ends && f.holds(n) {
			return f.why, true
		}
	}
	return "", false
}

// valid keeps names that nobody parsed out: their parts cannot be taken.
func valid(n unit.Name) bool {
	_, err := unit.ParseName(string(n))
	return err == nil
}

func (f family) ofType(t string) bool {
	return f.types == "" || contains(f.types, t)
}

func contains(list, word string) bool {
	for _, w := range strings.Fields(list) {
		if w == word {
			return true
		}
	}
	return false
}

func (f family) holds(n unit.Name) bool {
	if !f.ofType(n.Type()) {
		return false
	}
	if contains(f.stems, n.Stem()) {
		return true
	}
	for _, p := range strings.Fields(f.prefixes) {
		if strings.HasPrefix(n.Stem(), p) {
			return true
		}
	}
	return false
}

// reach names a unit of f for which the drop-ins of n are read too, "" for none.
func (f family) reach(n unit.Name) string {
	stem := n.Stem()
	if !strings.HasSuffix(stem, "-") || !f.ofType(n.Type()) {
		return ""
	}
	for _, s := range strings.Fields(f.stems) {
		if strings.HasPrefix(s, stem) {
			return s + "." + n.Type()
		}
	}
	for _, p := range strings.Fields(f.prefixes) {
		if strings.HasPrefix(p, stem) {
			return p + "*." + n.Type()
		}
	}
	return ""
}
