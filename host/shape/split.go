package shape

import (
	"bytes"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

// Bounds of one document, so that parsing it costs bounded memory. A node of the
// parser's tree takes some 200 bytes, and a document may hold a node a byte
// ("{a,a,a"); each structural character makes at most two, or keeps a comment.
const (
	maxDocument  = 1 << 20  // bytes: the largest content and drop-ins, indented, fit twice
	maxStructure = 96 << 10 // structural characters: the largest unit file may be made of nothing else
)

// document is one YAML document of a file, not parsed yet.
type document struct {
	text []byte
	line int // of its first line in the file, from 1
}

// split cuts a file at its document markers. A line that begins with --- or ...
// and ends there or goes on with white space is one wherever it stands, by
// YAML's own rule.
func split(data []byte) iter.Seq[document] {
	return func(yield func(document) bool) {
		doc := document{line: 1}
		start, line := 0, 1
		for pos := 0; pos < len(data); line++ {
			end := pos + bytes.IndexByte(data[pos:], '\n') + 1
			if end == pos {
				end = len(data)
			}
			next := document{line: -1}
			switch text := data[pos:end]; {
			case marker(text, "---"):
				doc.text, next.line, start = data[start:pos], line, pos
			case marker(text, "..."):
				doc.text, next.line, start = data[start:end], line+1, end
			}
			pos = end
			if next.line < 0 {
				continue
			}
			if !yield(doc) {
				return
			}
			doc = next
		}
		doc.text = data[start:]
		yield(doc)
	}
}

// blank reports whether nothing stands in the document.
func (d document) blank() bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(d.text, []byte("---")))) == 0
}

func marker(line []byte, mark string) bool {
	if !bytes.HasPrefix(line, []byte(mark)) {
		return false
	}
	return len(line) == len(mark) || bytes.IndexByte([]byte(" \t\n"), line[len(mark)]) >= 0
}

// measure refuses a document that would cost too much to parse, and one that
// begins with directives. Its line counts from the document's first one.
func (d document) measure() *rawProblem {
	if len(d.text) > maxDocument {
		return &rawProblem{1, fmt.Sprintf("the document has %d bytes; at most %d are read", len(d.text), maxDocument), "one declaration is one document: put --- between them, and large data elsewhere"}
	}
	structure := 0
	for _, c := range d.structured() {
		switch c {
		case ',', ':', '-', '?', '[', '{', '#':
			structure++
		}
	}
	if structure > maxStructure {
		return &rawProblem{1, fmt.Sprintf("the document has %d of the characters , : - ? [ { #; at most %d are read", structure, maxStructure), "one declaration is one document: put --- between them"}
	}
	number := 0
	for line := range bytes.Lines(d.text) {
		number++
		if t := bytes.TrimSpace(line); len(t) > 0 && t[0] != '#' {
			if line[0] == '%' {
				return &rawProblem{number, "a YAML directive (%) is not read", "delete the line"}
			}
			break
		}
	}
	return nil
}

// plainLine is a line of a document that leaves nothing open: what follows it at
// the first column is a field again.
var plainLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:---|[a-z_]+:(?: (?:\[[A-Za-z0-9 ,._-]*\]|\{[A-Za-z0-9 ,:._-]*\}|"[^"\\]*"|'[^']*'|[A-Za-z0-9~/][A-Za-z0-9~/ ._@-]*))?)? *$`)
})

// structured is what of the document the parser may make nodes of: all, but for
// the literal block of a content that follows plain lines only.
func (d document) structured() []byte {
	pos := 0
	for line := range bytes.Lines(d.text) {
		pos += len(line)
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case string(line) == "content: |" || string(line) == "content: |-" || string(line) == "content: |+":
			end := pos
			for text := range bytes.Lines(d.text[pos:]) {
				if text[0] != ' ' && text[0] != '\n' {
					break
				}
				end += len(text)
			}
			return slices.Concat(d.text[:pos], d.text[end:])
		case !bytes.HasPrefix(line, []byte("#")) && !plainLine().Match(line):
			return d.text
		}
	}
	return d.text
}

// rawProblem is a byte sequence that no file of declarations may hold.
type rawProblem struct {
	line       int
	rule, cure string
}

// rawProblems finds, for each kind of refused bytes, the first place. YAML would
// turn CR, CRLF and U+0085 into a newline and break lines at U+2028 and U+2029,
// so that what is applied would not be what stands in the file.
func rawProblems(data []byte) []rawProblem {
	var found []rawProblem
	seen := map[string]bool{}
	line := 1
	for pos := 0; pos < len(data); {
		r, size := rune(data[pos]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(data[pos:])
		}
		if rule, cure := badRune(r, size, data[pos], pos); rule != "" && !seen[cure] {
			seen[cure] = true
			found = append(found, rawProblem{line, rule, cure})
		}
		if r == '\n' {
			line++
		}
		pos += size
	}
	return found
}

func badRune(r rune, size int, first byte, pos int) (rule, cure string) {
	const escape = "write it as an escape in a double-quoted text"
	switch {
	case r == utf8.RuneError && size == 1:
		return fmt.Sprintf("the byte 0x%02x is not valid UTF-8", first), "save the file as UTF-8"
	case r == 0:
		return "the file holds a NUL byte", "it is no text, or was written only in part: write it again"
	case r == 0xFEFF && pos == 0:
		return "the file begins with a byte order mark (BOM)", "save it as UTF-8 without BOM"
	case r == '\r':
		return "the line holds a carriage return (CR, CRLF)", "save the file with Unix line ends"
	case r == 0x85 || r == 0x2028 || r == 0x2029:
		return fmt.Sprintf("U+%04X would break the line for YAML", r), escape
	case r < 0x20 && r != '\t' && r != '\n', r >= 0x7F && r < 0xA0, r == 0xFFFE, r == 0xFFFF:
		return fmt.Sprintf("the control character U+%04X is not allowed", r), escape + " (control characters)"
	}
	return "", ""
}
