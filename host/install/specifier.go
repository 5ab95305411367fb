package install

import (
	"fmt"
	"strings"

	"stead/host/unit"
)

// expand replaces the specifiers in s, which stands in the [Install] section of
// n. An unknown letter or digit after "%" is an error; "%" before anything else
// stays.
func (sp Specifiers) expand(s string, n unit.Name, instance string) (string, error) {
	if strings.IndexByte(s, '%') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		v, known := sp.value(s[i], n, instance)
		switch {
		case known:
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
func (sp Specifiers) value(c byte, n unit.Name, instance string) (string, bool) {
	switch c {
	case '%':
		return "%", true
	case 'i':
		return instance, true
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
