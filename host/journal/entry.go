package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"stead/host/fault"
	"stead/seats"
)

// MaxEntry is how many bytes of JSON an entry may have. A larger one, which a
// program may well log, is made smaller by its largest fields: they read null.
const MaxEntry = 704 << 10

// entry is one line of journalctl -o json.
type entry struct {
	raw     []byte // the object, byte for byte
	cursor  string
	omitted []seats.OmittedField
}

// entries reads what a journalctl writes.
type entries struct {
	r   *bufio.Reader
	max int
}

func newEntries(r io.Reader) *entries { return &entries{bufio.NewReaderSize(r, 64<<10), MaxEntry} }

// waiting reports whether bytes of a further entry are at hand.
func (e *entries) waiting() bool { return e.r.Buffered() > 0 }

// next returns the next entry, and io.EOF behind the last one that is whole.
func (e *entries) next() (entry, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil && len(line)-1 <= e.max:
			return whole(line[:len(line)-1])
		case err == nil || errors.Is(err, bufio.ErrBufferFull) && len(line) > e.max:
			return e.shorten(line)
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return entry{}, err // what it ended in the middle of is dropped
		}
	}
}

// whole is an entry that fits.
func whole(line []byte) (entry, error) {
	c := cursorIn(line)
	if c == "" || !json.Valid(line) {
		return entry{}, fault.New(fault.Failed, "read", "journal", errors.New("journalctl writes what is no entry: "+clean(line)))
	}
	return entry{raw: line, cursor: c}, nil
}

// cursorIn finds the cursor of an entry. A quotation mark within a text has a
// backslash before it, so the name with both its marks, and a colon behind, is a
// field's.
func cursorIn(line []byte) string {
	const name = `"__CURSOR"`
	for {
		i := bytes.Index(line, []byte(name))
		if i < 0 {
			return ""
		}
		escaped := i > 0 && line[i-1] == '\\'
		line = bytes.TrimLeft(line[i+len(name):], " ")
		if value, ok := bytes.CutPrefix(line, []byte(":")); ok && !escaped {
			value = bytes.TrimLeft(value, " ")
			if end := bytes.IndexByte(value[min(1, len(value)):], '"'); end >= 0 && value[0] == '"' {
				return string(value[1 : 1+end])
			}
			return ""
		}
	}
}

// each hands the entries that journalctl writes to take, until take returns false.
func each(ctx context.Context, args []string, take func(entry) (bool, error)) error {
	c, err := start(ctx, args...)
	if err != nil {
		return err
	}
	in := newEntries(c.out)
	for {
		e, err := in.next()
		more := err == nil
		if more {
			more, err = take(e)
		}
		switch {
		case errors.Is(err, io.EOF):
			if err = c.wait(); errors.Is(err, errNothing) {
				err = nil
			}
			return err
		case err != nil:
			c.kill()
			if ctx.Err() != nil {
				err = fault.New(ended(ctx), "read", "journal", context.Cause(ctx))
			}
			return err
		case !more:
			c.kill()
			return nil
		}
	}
}
