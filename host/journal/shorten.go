package journal

import (
	"bufio"
	"errors"
	"strings"

	"stead/host/fault"
	"stead/seats"
)

// field is one of an entry that is too large.
type field struct {
	name  string // with its quotation marks
	value []byte
	size  int64 // of the value as it was
	gone  bool
}

// shortener reads one entry of any size and keeps max bytes of it.
type shortener struct {
	in     source
	max    int
	fields []field
	size   int // of all that is kept, and of what stands around it
}

// source is what was read of an entry already, and what is behind it.
type source struct {
	begun []byte
	r     *bufio.Reader
}

// window is some of what comes next, at least a byte of it.
func (s *source) window() ([]byte, error) {
	if len(s.begun) > 0 {
		return s.begun, nil
	}
	if _, err := s.r.Peek(1); err != nil {
		return nil, err
	}
	return s.r.Peek(s.r.Buffered())
}

// skip goes on behind the first n bytes of the window.
func (s *source) skip(n int) {
	if len(s.begun) > 0 {
		s.begun = s.begun[n:]
		return
	}
	_, _ = s.r.Discard(n) // they are buffered
}

func (s *source) next() (byte, error) {
	w, err := s.window()
	if err != nil {
		return 0, err
	}
	b := w[0]
	s.skip(1)
	return b, nil
}

// errBroken is an entry that is no JSON object.
var errBroken = errors.New("journalctl writes what is no entry")

// shorten reads the rest of an entry of which begun was read and which is too
// large, and puts null in the place of its largest fields. Memory is bounded by
// what an entry may have, whatever this one does.
func (e *entries) shorten(begun []byte) (entry, error) {
	s := &shortener{in: source{begun, e.r}, max: e.max}
	if err := s.object(); err != nil {
		if errors.Is(err, errBroken) {
			err = fault.New(fault.Failed, "read", "journal", err)
		}
		return entry{}, err
	}
	return s.entry()
}

// object reads {"NAME":value,…} and the end of the line.
func (s *shortener) object() error {
	if b, err := s.skip(); err != nil || b != '{' {
		return broken(err)
	}
	for {
		b, err := s.skip()
		if err != nil || b != '"' {
			return broken(err)
		}
		name, err := s.name()
		if err != nil {
			return err
		}
		if b, err = s.skip(); err != nil || b != ':' {
			return broken(err)
		}
		s.fields = append(s.fields, field{name: name})
		s.size += len(name) + len(`:null,`)
		if b, err = s.value(); err != nil {
			return err
		}
		if b == '}' {
			if b, err = s.in.next(); err != nil || b != '\n' {
				return broken(err)
			}
			return nil
		}
	}
}

func broken(err error) error {
	if err == nil {
		err = errBroken
	}
	return err
}

// skip is the next byte that is no blank.
func (s *shortener) skip() (byte, error) {
	for {
		if b, err := s.in.next(); err != nil || b != ' ' && b != '\t' {
			return b, err
		}
	}
}

// maxName is more than the name of a field can have: journald takes 64 bytes.
const maxName = 256

// name reads the name of a field behind its first quotation mark.
func (s *shortener) name() (string, error) {
	name := []byte{'"'}
	for len(name) < maxName {
		b, err := s.in.next()
		if err != nil {
			return "", err
		}
		if name = append(name, b); b == '"' {
			return string(name), nil
		}
	}
	return "", errBroken
}

// value reads the value of the last field and returns what stands behind it, a
// comma or the closing brace.
func (s *shortener) value() (byte, error) {
	var at place
	for {
		w, err := s.in.window()
		if err != nil {
			return 0, err
		}
		n, end := at.scan(w)
		s.keep(w[:n])
		switch s.in.skip(n); end {
		case 0:
		case '\n':
			return 0, errBroken
		default:
			s.in.skip(1)
			return end, nil
		}
	}
}

// place is where in a value a scan is.
type place struct {
	depth           int
	inText, escaped bool
}

// scan returns how many bytes of w belong to the value, and what ends it: a
// comma, the closing brace, a line's end where none may be, or 0: w did not reach
// so far.
func (p *place) scan(w []byte) (int, byte) {
	for i, b := range w {
		switch {
		case p.escaped:
			p.escaped = false
		case p.inText:
			p.escaped, p.inText = b == '\\', b != '"'
		case b == '"':
			p.inText = true
		case p.depth == 0 && (b == ',' || b == '}'), b == '\n':
			return i, b
		case b == '[' || b == '{':
			p.depth++
		case b == ']' || b == '}':
			p.depth--
		}
	}
	return len(w), 0
}

// keep adds bytes to the last field, and lets the largest go when there is no
// room.
func (s *shortener) keep(b []byte) {
	last := &s.fields[len(s.fields)-1]
	last.size += int64(len(b))
	if last.gone {
		return
	}
	last.value = append(last.value, b...)
	s.size += len(b)
	for s.size > s.max {
		largest := last
		for i := range s.fields {
			if f := &s.fields[i]; !f.gone && len(f.value) > len(largest.value) {
				largest = f
			}
		}
		if len(largest.value) == 0 {
			return // names alone are too much, which journald does not take
		}
		s.size -= len(largest.value)
		largest.gone, largest.value = true, nil
	}
}

// entry is what was kept.
func (s *shortener) entry() (entry, error) {
	raw := []byte{'{'}
	var out []seats.OmittedField
	for i, f := range s.fields {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(append(raw, f.name...), ':')
		if f.gone {
			raw = append(raw, "null"...)
			out = append(out, seats.OmittedField{Field: strings.Trim(f.name, `"`), Bytes: f.size})
			continue
		}
		raw = append(raw, f.value...)
	}
	e, err := whole(append(raw, '}'))
	if err != nil {
		return e, err
	}
	for i := range out {
		out[i].Cursor = e.cursor
	}
	e.omitted = out
	return e, nil
}
