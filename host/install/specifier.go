package install

import (
	"fmt"
	"strings"

	"stead/host/unit"
)

// Specifiers are the facts of a machine that [Install] may cite with "%". An
// empty value expands to nothing.
type Specifiers struct {
	Arch          string // %a, in systemd's spelling: x86-64
	ImageVersion  string // %A, IMAGE_VERSION= of os-release
	BootID        string // %b, 32 hex digits
	BuildID       string // %B, BUILD_ID=
	Group         string // %g, of the manager's account: root
	GID           string // %G: 0
	Hostname      string // %H; %l is its part before the first dot
	MachineID     string // %m, 32 hex digits
	ImageID       string // %M, IMAGE_ID=
	OS            string // %o, ID=
	PrettyHost    string // %q, PRETTY_HOSTNAME= of /etc/machine-info, else the host name
	User          string // %u: root
	UID           string // %U: 0
	KernelRelease string // %v
	OSVersion     string // %w, VERSION_ID=
	Variant       string // %W, VARIANT_ID=
}

// expand replaces the specifiers in s, which stands in the [Install] section of
// n. An unknown letter or digit after "%" is an error, as are those of unknown;
// "%" before anything else stays.
func (sp Specifiers) expand(s string, n unit.Name, unknown string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		v, known := sp.value(s[i], n)
		switch {
		case known && strings.IndexByte(unknown, s[i]) < 0:
			b.WriteString(v)
		case alphanumeric(s[i]):
			return "", fmt.Errorf("specifier %%%c is not expanded in [Install]", s[i])
		default:
			b.WriteByte('%')
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// value returns what "%" and c stand for.
func (sp Specifiers) value(c byte, n unit.Name) (string, bool) {
	switch c {
	case '%':
		return "%", true
	case 'i':
		return n.Instance(), true
	case 'j':
		return n.Prefix()[strings.LastIndexByte(n.Prefix(), '-')+1:], true
	case 'n':
		return string(n), true
	case 'N':
		return n.Stem(), true
	case 'p':
		return n.Prefix(), true
	}
	return sp.fact(c)
}

// fact returns the fact of the machine that c stands for.
func (sp Specifiers) fact(c byte) (string, bool) {
	switch c {
	case 'a':
		return sp.Arch, true
	case 'A':
		return sp.ImageVersion, true
	case 'b':
		return sp.BootID, true
	case 'B':
		return sp.BuildID, true
	case 'g':
		return sp.Group, true
	case 'G':
		return sp.GID, true
	case 'H':
		return sp.Hostname, true
	case 'l':
		short, _, _ := strings.Cut(sp.Hostname, ".")
		return short, true
	case 'm':
		return sp.MachineID, true
	case 'M':
		return sp.ImageID, true
	case 'o':
		return sp.OS, true
	case 'q':
		return sp.PrettyHost, true
	case 'u':
		return sp.User, true
	case 'U':
		return sp.UID, true
	case 'v':
		return sp.KernelRelease, true
	case 'w':
		return sp.OSVersion, true
	case 'W':
		return sp.Variant, true
	}
	return "", false
}
