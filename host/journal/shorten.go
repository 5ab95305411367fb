package journal

import (
	"bytes"
	"errors"
	"io"
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
	in     io.ByteReader
	max    int
	fields []field
	size   int // of all that is kept, and of what stands around it
}

// errBroken is an entry that is no JSON object.
var errBroken = errors.New("journalctl writes what is no entry")

// shorten reads the rest of an entry of which begun was read and which is too
// large, and puts null in the place of its largest fields. Memory is bounded by
// what an entry may have, whatever this one does.
func (e *entries) shorten(begun []byte) (entry, error) {
	s := &shortener{in: bytes.NewReader(begun), max: e.max}
	if begun[len(begun)-1] != '\n' {
		s.in = &joined{s.in, e.r}
	}
	if err := s.object(); err != nil {
		if errors.Is(err, errBroken) {
			err = fault.New(fault.Failed, "read", "journal", err)
		}
		return entry{}, err
	}
	return s.entry()
}

// joined is one reader behind another.
type joined struct{ first, second io.ByteReader }

// ReadByte implements io.ByteReader.
func (j *joined) ReadByte() (byte, error) {
	b, err := j.first.ReadByte()
	if err != nil {
		return j.second.ReadByte()
	}
	return b, nil
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
			if b, err = s.in.ReadByte(); err != nil || b != '\n' {
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
		if b, err := s.in.ReadByte(); err != nil || b != ' ' && b != '\t' {
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
		b, err := s.in.ReadByte()
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
	depth, inText, escaped := 0, false, false
	for {
		b, err := s.in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case escaped:
			escaped = false
		case inText:
			escaped, inText = b == '\\', b != '"'
		case b == '"':
			inText = true
		case depth == 0 && (b == ',' || b == '}'):
			return b, nil
		case b == '[' || b == '{':
			depth++
		case b == ']' || b == '}':
			depth--
		case b == '\n':
			return 0, errBroken
		}
		s.keep(b)
	}
}

// keep adds a byte to the last field, and lets the largest go when there is no
// room.
func (s *shortener) keep(b byte) {
	last := &s.fields[len(s.fields)-1]
	last.size++
	if last.gone {
		return
	}
	last.value = append(last.value, b)
	s.size++
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
