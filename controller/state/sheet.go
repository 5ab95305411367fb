package state

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
	"unique"

	"stead/host/report"
	"stead/mesh/wire"
)

// sheet is all that one node reported: what is stored of it, and as much of that
// as was asked for. Stored it is gzip of a head, as one line of JSON, and of the
// reports as JSON, one after the other in the order of the head. The head can be
// read without the rest.
type sheet struct {
	raw []byte

	once sync.Once
	head *head
	err  error // of reading the head
}

// head says what a sheet holds.
type head struct {
	Run     string      `json:"run"`
	Seq     uint64      `json:"seq"` // of the last batch in it
	At      time.Time   `json:"at"`
	Source  wire.Source `json:"source"`
	Filling bool        `json:"filling,omitempty"` // the rest of everything is still to come
	Lines   []Line      `json:"lines"`             // sorted by name
	// Sizes are of the JSON of each report; 0: it was too large to be kept. Old are
	// the places of those that are of before everything began to be sent anew.
	Sizes []int `json:"sizes"`
	Old   []int `json:"old,omitempty"`
}

// row is one report of a sheet.
type row struct {
	Line
	body []byte // JSON; nil: it was too large to be kept
	old  bool
}

const (
	// maxSheet is how large what is stored of one node may be, in bytes, and
	// maxUnpacked how large it may be unpacked.
	maxSheet    = 512 << 10
	maxUnpacked = 8 << 20
)

// pack makes a sheet of rows, under a head that says the rest.
func pack(h head, rows []row) (*sheet, error) {
	h.Lines, h.Sizes, h.Old = make([]Line, len(rows)), make([]int, len(rows)), nil
	for i, r := range rows {
		h.Lines[i], h.Sizes[i] = r.Line, len(r.body)
		if r.old {
			h.Old = append(h.Old, i)
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(append(text, '\n'))
	for _, r := range rows {
		if err == nil {
			_, err = z.Write(r.body)
		}
	}
	if err = errors.Join(err, z.Close()); err != nil {
		return nil, err
	}
	return &sheet{raw: b.Bytes()}, nil
}

// open is a reader of a sheet's unpacked bytes, which are bounded.
func (s *sheet) open() (*bufio.Reader, error) {
	z, err := gzip.NewReader(bytes.NewReader(s.raw))
	if err != nil {
		return nil, err
	}
	return bufio.NewReader(io.LimitReader(z, maxUnpacked+1)), nil
}

// top is the head; it is shared and not changed.
func (s *sheet) top() (*head, error) {
	s.once.Do(func() {
		r, err := s.open()
		var line []byte
		if err == nil {
			line, err = r.ReadBytes('\n')
		}
		var h head
		if err == nil {
			err = json.Unmarshal(line, &h)
		}
		if err == nil && len(h.Sizes) != len(h.Lines) {
			err = errors.New("not every report has a size")
		}
		if s.err = err; err != nil {
			return
		}
		for i := range h.Lines { // a handful of words, kept once
			l := &h.Lines[i]
			l.Outcome, l.Reason = unique.Make(l.Outcome).Value(), unique.Make(l.Reason).Value()
		}
		s.head = &h
	})
	return s.head, s.err
}

// rows are all reports, unread.
func (s *sheet) rows() ([]row, error) {
	h, err := s.top()
	if err != nil {
		return nil, err
	}
	r, err := s.open()
	if err == nil {
		_, err = r.ReadBytes('\n')
	}
	if err != nil {
		return nil, err
	}
	all := make([]row, len(h.Lines))
	for i, l := range h.Lines {
		all[i] = row{Line: l}
		if h.Sizes[i] < 0 || h.Sizes[i] > maxUnpacked {
			return nil, errors.New("the size of a report is out of bounds")
		}
		if h.Sizes[i] > 0 {
			all[i].body = make([]byte, h.Sizes[i])
			if _, err := io.ReadFull(r, all[i].body); err != nil {
				return nil, err
			}
		}
	}
	for _, i := range h.Old {
		if i >= 0 && i < len(all) {
			all[i].old = true
		}
	}
	return all, nil
}

// read is the report of a row.
func (r row) read() (*report.Report, error) {
	if r.body == nil {
		return &report.Report{Name: r.Name, UID: r.UID, Generation: r.Generation, Outcome: r.Outcome, Reason: r.Reason,
			Text: "the rest of this report was too large to be kept"}, nil
	}
	out := &report.Report{}
	return out, json.Unmarshal(r.body, out)
}
