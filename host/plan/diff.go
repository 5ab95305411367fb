package plan

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// Version is what stands, or would stand, at a path.
type Version struct {
	Entry   Entry
	Content []byte // of a file; nil when its bytes are not at hand
}

// Bounds of a diff.
const (
	// DiffLines is how many lines a diff has at most, its last one then says how
	// many more there are.
	DiffLines = 200
	// DiffBytes is how many bytes its lines have together, at most.
	DiffBytes = 16 << 10
	// DiffLine is how many bytes one of them has at most.
	DiffLine = 400
	// maxDiffed is the size of a file beyond which it is named, not compared.
	maxDiffed = 256 << 10
)

// Diff returns, in the lines of a unified diff without line ends, what becomes
// of path when now stands there in the place of was; nil when both are the same.
// A file that is no text, or is larger than 256 KiB, is named by its size and
// digest. A link is a line that says where it leads to; other rights of a file
// are a line of their own, after the two that name the versions.
func Diff(path string, was, now Version) []string {
	if was.Entry == now.Entry {
		return nil
	}
	before, after := was.text(), now.text()
	all := []string{"--- " + was.name(path), "+++ " + now.name(path)}
	all = append(all, rights(was.Entry, now.Entry)...)
	if before != after {
		text := diff.Diff("a", []byte(before), "b", []byte(after))
		lines := strings.SplitAfter(strings.TrimSuffix(string(text), "\n"), "\n")
		const headed = 3 // "diff", and the two names
		for _, l := range lines[min(headed, len(lines)):] {
			all = append(all, strings.TrimSuffix(l, "\n"))
		}
	}
	return bounded(all)
}

func (v Version) name(path string) string {
	if v.none() {
		return "/dev/null"
	}
	return path
}

func (v Version) none() bool { return v.Entry.Kind == Absent || v.Entry.Kind == "" }

// text is what v says, or what it is.
func (v Version) text() string {
	switch e := v.Entry; {
	case v.none():
		return ""
	case e.Kind == Link:
		return "link to " + e.Target + "\n"
	case e.Kind != File:
		return "(" + string(e.Kind) + ")\n"
	case v.Content == nil && e.Digest != "":
		return fmt.Sprintf("(file, sha256 %.16s…)\n", e.Digest)
	case len(v.Content) > maxDiffed, bytes.IndexByte(v.Content, 0) >= 0, !utf8.Valid(v.Content):
		return fmt.Sprintf("(file of %d bytes, sha256 %.16s…)\n", len(v.Content), e.Digest)
	}
	return string(v.Content)
}

// rights says how mode and owner of a file change.
func rights(was, now Entry) []string {
	if was.Kind != File || now.Kind != File {
		return nil
	}
	var all []string
	if was.Mode != now.Mode {
		all = append(all, fmt.Sprintf("mode %s → %s", was.Mode, now.Mode))
	}
	if was.UID != now.UID || was.GID != now.GID {
		all = append(all, fmt.Sprintf("owner %d:%d → %d:%d", was.UID, was.GID, now.UID, now.GID))
	}
	return all
}

// bounded cuts lines that are too long, and then the end.
func bounded(all []string) []string {
	size := 0
	for i, l := range all {
		if len(l) > DiffLine {
			cut := DiffLine - len("…")
			for cut > 0 && !utf8.RuneStart(l[cut]) {
				cut--
			}
			l = l[:cut] + "…"
			all[i] = l
		}
		if size += len(l); size > DiffBytes-64 || i == DiffLines-1 && len(all) > DiffLines {
			return append(all[:i:i], fmt.Sprintf("… %d more lines", len(all)-i))
		}
	}
	return all
}
