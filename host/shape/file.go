package shape

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"stead/host/unit"
)

// Modes that a declared file has when it says none.
const (
	defaultMode = fs.FileMode(0o644)
	secretMode  = fs.FileMode(0o600)
)

const modeCure = "write four octal digits, such as 0644"

// parseMode reads four octal digits.
func parseMode(s string) (mode fs.FileMode, rule string) {
	if len(s) != 4 || strings.Trim(s, "01234567") != "" {
		return 0, fmt.Sprintf("%.40q are not four octal digits", s)
	}
	if s[0] != '0' {
		return 0, fmt.Sprintf("%s has setuid, setgid or sticky bits, which no declared file has", s)
	}
	for _, c := range s {
		mode = mode<<3 | fs.FileMode(c-'0')
	}
	return mode, ""
}

// mode returns the mode as it is declared.
func (f *File) mode() string { return fmt.Sprintf("%04o", uint32(f.Mode)) }

// declaredFile judges what is of a declared file alone.
func (j judge) declaredFile() {
	f := j.File
	switch {
	case j.Content == nil:
		j.fail("content", "missing", `write what the file holds; "" is an empty file`)
	case len(*j.Content) > MaxFileContent:
		j.fail("content", fmt.Sprintf("it has %d bytes; at most %d are taken", len(*j.Content), MaxFileContent), "bring large data to the node in a package, or have the unit fetch it")
	}
	if f.Path == "" {
		j.fail("path", "missing", "write where the file stands, such as /etc/web.conf")
	} else if rule, cure := filePathProblem(j.Scope, f.Path); rule != "" {
		j.fail("path", rule, cure)
	}
	switch {
	case f.Mode&^fs.ModePerm != 0:
		j.fail("mode", fmt.Sprintf("%s is no mode of a file", f.Mode), modeCure)
	case j.Scope == unit.User && f.Mode&0o400 == 0:
		j.fail("mode", fmt.Sprintf("%s: the account cannot read its own file then, nor could stead, which is the account there", f.mode()), "let the first of the three digits be 4 or more, such as 0400")
	}
	for _, l := range []struct{ field, name string }{{"owner", f.Owner}, {"group", f.Group}} {
		switch {
		case l.name == "":
		case j.Scope == unit.User:
			j.fail(l.field, "it is declared, and in scope user a file is the account's", "leave it out")
		case !LoginName(l.name):
			j.fail(l.field, fmt.Sprintf("%.80q is no name of a login or group", l.name), "write the name that the node knows it by, such as www-data; numbers are not taken")
		}
	}
}

// LoginName reports whether s can be the name of a login or a group: as
// systemd has it (SYSTEMD's USER_NAMES), and not all digits.
func LoginName(s string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
	if s == "" || len(s) > 255 || strings.IndexByte(first, s[0]) < 0 {
		return false
	}
	return strings.Trim(strings.TrimSuffix(s, "$"), first+"0123456789-.") == ""
}

// filePathProblem says why no declared file of that scope stands at p; "" when one
// may.
func filePathProblem(scope unit.Scope, p string) (rule, cure string) {
	home, absolute := "", p
	if scope == unit.User {
		rest, below := strings.CutPrefix(p, "~/")
		if !below {
			cure := "write ~/ and what follows the home, such as ~/.config/web.conf"
			if why, _ := ProtectedPath(unit.System, p); why != someHome {
				cure += ", or scope: system"
			}
			return fmt.Sprintf("%.80q is not below the account's home", p), cure
		}
		home, absolute = "~", "/"+rest
	} else if strings.HasPrefix(p, "~") {
		return fmt.Sprintf("%.80q is below a home, and the file is the system's", p), "write scope: user, or an absolute path"
	}
	if rule, cure := writtenOut(home, absolute, "write the absolute path of a file, such as /etc/web.conf"); rule != "" {
		return fmt.Sprintf("%.80q %s", p, rule), cure
	}
	if absolute == "/" {
		return fmt.Sprintf("%.80q is a folder", p), "write the path of a file"
	}
	if why, yes := ProtectedPath(scope, p); yes {
		return fmt.Sprintf("%.80q is protected: %s", p, why), pathCure(why)
	}
	return "", ""
}

// pathCure is what to do about a path that is protected.
func pathCure(why string) string {
	switch why {
	case unitFolder:
		return "declare it as a service: content is its unit file, dropins are its drop-ins"
	case someHome:
		return "write scope: user, and the path from ~/ on"
	}
	return "declare another path"
}

// Why paths are protected.
const (
	unitFolder = "systemd reads units there"
	ownFolder  = "it is stead's own"
	kernel     = "the kernel's file system holds no files that last"
	someHome   = "it is below a home, where the system writes nothing"
)

// ProtectedPath reports whether no declared file of a scope stands at p, or at
// anything below it, and why: folders of units, what is stead's own, the kernel's
// file systems and, for the system's files, homes. In user scope p begins with ~/.
// It judges the text alone: who knows where links lead asks for that path too.
func ProtectedPath(scope unit.Scope, p string) (why string, protected bool) {
	folders := systemFolders()
	if scope == unit.User {
		folders = homeFolders()
	}
	for _, f := range folders {
		for _, at := range strings.Fields(f.at) {
			if p == at || strings.HasPrefix(p, at+"/") || strings.HasPrefix(at, p+"/") {
				return f.why, true
			}
			if strings.HasSuffix(at, "-") && strings.HasPrefix(p, at) {
				return f.why, true
			}
		}
	}
	return "", false
}

// folder is what is protected for one reason. A path that ends in - stands for all
// that begin so.
type folder struct{ why, at string }

func systemFolders() []folder {
	return []folder{
		{unitFolder, "/etc/systemd/system /etc/systemd/user /run/systemd /usr/lib/systemd/system /usr/lib/systemd/user " +
			"/lib/systemd/system /lib/systemd/user /usr/local/lib/systemd /usr/local/share/systemd /usr/share/systemd/user /etc/xdg/systemd " +
			"/etc/systemd/system.control /etc/systemd/system.attached"},
		{ownFolder, "/etc/stead /var/lib/stead /var/lib/private/stead /run/stead /usr/bin/stead /usr/sbin/stead /bin/stead /usr/local/bin/stead /usr/local/sbin/stead " +
			"/var/lib/stead- /var/lib/private/stead- /run/stead- /etc/stead-"},
		{kernel, "/proc /sys /dev"},
		{someHome, "/home /root /run/user"},
	}
}

func homeFolders() []folder {
	return []folder{
		{unitFolder, "~/.config/systemd/user ~/.config/systemd/user.control ~/.local/share/systemd/user"},
		{ownFolder, "~/.local/state/stead ~/.config/stead"},
	}
}

// writtenOut says why p is no absolute path that is written out; "" when it is. A path
// of an account's is meant from home on.
func writtenOut(home, p, cure string) (rule, what string) {
	switch {
	case p == "":
		return "is empty", cure
	case strings.ContainsFunc(p, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Bidi_Control) }):
		return "holds a control character", "give the file another name"
	case p[0] != '/':
		return "is no absolute path", cure
	case len(p) > maxPath:
		return fmt.Sprintf("has %d bytes; a path has at most %d", len(p), maxPath), cure
	case path.Clean(p) != p:
		return "is not written out", fmt.Sprintf("write %s%.80s", home, path.Clean(p))
	}
	for name := range strings.SplitSeq(p, "/") {
		if len(name) > maxName {
			return fmt.Sprintf("has a name of %d bytes; a file's has at most %d", len(name), maxName), cure
		}
	}
	return "", ""
}
