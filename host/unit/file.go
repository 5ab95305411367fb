package unit

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// LineMax is the longest line that systemd reads once its continuation lines
// are joined to it, in bytes. A single line must be shorter than that.
const LineMax = 1 << 20

const bom = "\xef\xbb\xbf"

// File is what a unit file, or several merged ones, says. Its zero value says
// nothing. A File is never changed once it is made, so it may be shared.
type File struct {
	// Remarks are the lines that systemd skips because of their form, and what
	// Broken says. Each begins with "line N: ".
	Remarks []string
	// Broken says why systemd refuses the whole file; "" when it takes it. What
	// stands before the broken line is still readable here.
	Broken string

	assignments []assignment
	sections    []string
}

type assignment struct{ section, key, value string }

// ParseFile reads a unit file as systemd does (systemd.syntax(7)). It takes
// any bytes: what systemd skips is skipped and remarked upon, and where systemd
// stops reading it stops too and says so in Broken. Sections and keys are kept
// whether systemd knows them or not, in their order; names are case-sensitive.
func ParseFile(data []byte) File { return (&reader{rest: string(data)}).read() }

// ParseFile247 is ParseFile as systemd does it before version 251: it takes any
// section header that ends in "]".
func ParseFile247(data []byte) File { return (&reader{rest: string(data), anyHeader: true}).read() }

func (r *reader) read() File {
	for r.file.Broken == "" && r.next() {
		r.physical()
	}
	if r.pending != nil && r.file.Broken == "" {
		r.logical(string(r.pending))
	}
	return r.file
}

// reader walks through the lines of one file.
type reader struct {
	file      File
	rest      string
	line      int    // number of the current line
	text      string // the current line, without its end
	pending   []byte // of a continued line: what stands before the current one; nil when there is none
	sawBOM    bool
	anyHeader bool
	section   string
	inSection bool
}

func (r *reader) remark(format string, args ...any) {
	r.file.Remarks = append(r.file.Remarks, fmt.Sprintf("line %d: ", r.line)+fmt.Sprintf(format, args...))
}

func (r *reader) broken(format string, args ...any) {
	r.remark(format, args...)
	r.file.Broken = r.file.Remarks[len(r.file.Remarks)-1]
}

// next takes one line off rest. A newline, a carriage return and a zero byte
// each end a line; different ones that follow each other are one end, of which
// a zero byte is always the last.
func (r *reader) next() bool {
	if len(r.rest) == 0 {
		return false
	}
	r.line++
	n := strings.IndexAny(r.rest, "\n\r\x00")
	if n < 0 {
		r.text, r.rest = r.rest, ""
		return true
	}
	r.text, r.rest = r.rest[:n], r.rest[n:]
	end := 1
	for end < len(r.rest) && r.rest[end-1] != 0 && lineEnd(r.rest[end]) && strings.IndexByte(r.rest[:end], r.rest[end]) < 0 {
		end++
	}
	r.rest = r.rest[end:]
	return true
}

func lineEnd(c byte) bool { return c == '\n' || c == '\r' || c == 0 }

// physical takes one line of the file into account.
func (r *reader) physical() {
	if len(r.text) >= LineMax {
		r.broken("it has %d bytes or more, for which systemd refuses the whole file", LineMax)
		return
	}
	if lead := strings.TrimLeft(r.text, space); lead != "" && (lead[0] == '#' || lead[0] == ';') {
		return // also between continued lines
	}
	if !r.sawBOM && strings.HasPrefix(r.text, bom) {
		r.text, r.sawBOM = r.text[len(bom):], true
	}
	if len(r.pending)+len(r.text) > LineMax {
		r.broken("with the lines that it continues it has more than %d bytes, for which systemd refuses the whole file", LineMax)
		return
	}
	if endsEscaped(r.text) {
		r.pending = append(append(r.pending, r.text[:len(r.text)-1]...), ' ')
		return
	}
	if r.pending != nil {
		r.text, r.pending = string(append(r.pending, r.text...)), nil
	}
	r.logical(r.text)
}

const space = " \t\n\r"

// endsEscaped reports whether s ends with a backslash that no other one
// escapes.
func endsEscaped(s string) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// logical takes a line into account whose continuation lines are joined to it.
func (r *reader) logical(s string) {
	s = strings.Trim(s, space)
	switch {
	case s == "":
	case !validText(s):
		r.broken("it is not valid UTF-8, for which systemd refuses the whole file: %.80q", s)
	case s[0] == '[':
		r.header(s)
	case !r.inSection:
		r.remark("assignment before the first section, which systemd skips: %.80q", s)
	default:
		r.assign(s)
	}
}

func (r *reader) header(s string) {
	name := s[1:max(1, len(s)-1)]
	switch {
	case s[len(s)-1] != ']':
		r.broken("section header without \"]\", for which systemd refuses the whole file: %.80q", s)
	case !r.anyHeader && strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f || c == '"' || c == '\'' || c == '\\' }):
		r.broken("section header with a quote, backslash or control character, for which systemd refuses the whole file: %.80q", s)
	default:
		r.section, r.inSection = name, true
		r.file.sections = append(r.file.sections, name)
	}
}

// validText reports whether systemd takes s for text: UTF-8 without the code
// points that Unicode sets aside as noncharacters.
func validText(s string) bool {
	for i, c := range s {
		switch {
		case c < utf8.RuneSelf:
		case c == utf8.RuneError:
			if !strings.HasPrefix(s[i:], "\uFFFD") {
				return false
			}
		case c >= 0xFDD0 && c <= 0xFDEF || c&0xFFFE == 0xFFFE:
			return false
		}
	}
	return true
}

func (r *reader) assign(s string) {
	key, value, found := strings.Cut(s, "=")
	switch {
	case !found:
		r.remark("no \"=\" in it, so systemd skips it: %.80q", s)
	case key == "":
		r.remark("nothing before the \"=\", so systemd skips it: %.80q", s)
	default:
		r.file.assignments = append(r.file.assignments, assignment{r.section, strings.TrimRight(key, space), strings.TrimLeft(value, space)})
	}
}

// Merge returns what f and then each of the drop-ins say, in that order.
// Broken is that of the first broken one.
func (f File) Merge(dropins ...File) File {
	m := File{
		Remarks:     append([]string(nil), f.Remarks...),
		Broken:      f.Broken,
		assignments: append([]assignment(nil), f.assignments...),
		sections:    append([]string(nil), f.sections...),
	}
	for _, d := range dropins {
		m.Remarks = append(m.Remarks, d.Remarks...)
		m.assignments = append(m.assignments, d.assignments...)
		m.sections = append(m.sections, d.sections...)
		if m.Broken == "" {
			m.Broken = d.Broken
		}
	}
	return m
}

// Entries yields the key and value of all assignments in sections of that
// name, in order.
func (f File) Entries(section string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		for _, a := range f.assignments {
			if a.section == section && !yield(a.key, a.value) {
				return
			}
		}
	}
}

// HasSection reports whether f has a section of that name, be it empty.
func (f File) HasSection(section string) bool {
	return slices.Contains(f.sections, section)
}

// Values returns what is assigned to key in all sections of that name, in
// order and verbatim, empty assignments included.
func (f File) Values(section, key string) []string {
	var values []string
	for _, a := range f.assignments {
		if a.key == key && a.section == section {
			values = append(values, a.value)
		}
	}
	return values
}

// Last returns the last value that is assigned to key, which is the one that
// counts for settings that are no lists, and whether there is any.
func (f File) Last(section, key string) (string, bool) {
	for i := len(f.assignments) - 1; i >= 0; i-- {
		if a := f.assignments[i]; a.key == key && a.section == section {
			return a.value, true
		}
	}
	return "", false
}

// List returns the words of all values of key, as systemd reads lists such as
// WantedBy=: an empty assignment forgets what stands before it.
func (f File) List(section, key string) []string {
	var list []string
	for _, a := range f.assignments {
		if a.key != key || a.section != section {
			continue
		}
		if a.value == "" {
			list = nil
			continue
		}
		words, _ := Words(a.value)
		list = append(list, words...)
	}
	return list
}
