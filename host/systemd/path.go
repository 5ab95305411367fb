package systemd

import (
	"strings"

	"github.com/godbus/dbus/v5"

	"stead/host/unit"
)

const unitRoot = "/org/freedesktop/systemd1/unit/"

// unitOfPath returns the primary unit name that a bus path stands for; false
// when it is not the path of a unit.
func unitOfPath(p dbus.ObjectPath) (unit.Name, bool) {
	label, ok := strings.CutPrefix(string(p), unitRoot)
	if !ok || label == "" {
		return "", false
	}
	if label == "_" {
		return "", true
	}
	out := make([]byte, 0, len(label))
	for i := 0; i < len(label); i++ {
		if label[i] == '_' && i+2 < len(label) {
			hi, lo := unhex(label[i+1]), unhex(label[i+2])
			if hi < 16 && lo < 16 {
				out = append(out, hi<<4|lo)
				i += 2
				continue
			}
		}
		out = append(out, label[i])
	}
	return unit.Name(out), true
}

func unhex(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

// pathOfUnit is the bus path of the unit that has that name, whichever of its
// names that is: every byte that is not a letter or digit, and a digit at the
// start, becomes "_" and two hex digits.
func pathOfUnit(n unit.Name) dbus.ObjectPath {
	const hex = "0123456789abcdef"
	out := make([]byte, 0, len(unitRoot)+3*len(n))
	out = append(out, unitRoot...)
	for i := range len(n) {
		c := n[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9' {
			out = append(out, c)
			continue
		}
		out = append(out, '_', hex[c>>4], hex[c&15])
	}
	if len(n) == 0 {
		out = append(out, '_')
	}
	return dbus.ObjectPath(out)
}
