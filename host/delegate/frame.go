package delegate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"stead/host/disk"
	"stead/host/fault"
	"stead/host/plan"
	"stead/host/shape"
)

// op is what a child is asked to do.
type op string

const (
	opOpen      op = "open" // the folders; must come first
	opWatch     op = "watch"
	opLook      op = "look"
	opLookAfter op = "look-after"
	opSnapshot  op = "snapshot"
	opPeek      op = "peek"
	opApply     op = "apply"
	opMissing   op = "missing"
	opRemove    op = "remove"
)

// ask is a message to the child.
type ask struct {
	ID       uint64                    `json:"id"`
	Op       op                        `json:"op"`
	Config   *Config                   `json:"config,omitempty"`
	Services map[string]*shape.Service `json:"services,omitempty"` // those that the child does not have yet, by digest
	Queries  []query                   `json:"queries,omitempty"`
	Changes  []change                  `json:"changes,omitempty"`
	Paths    []string                  `json:"paths,omitempty"`
	Anew     bool                      `json:"anew,omitempty"` // forget the services that were sent before
}

// query is a plan.Query whose service is named.
type query struct {
	plan.Query
	Declared string `json:"declared,omitempty"` // digest of the service
}

// change is a plan.Change whose content is among the raw bytes.
type change struct {
	plan.Change
	Size int `json:"size"` // of the content; -1 for none
}

// reply is a message of the child's: the answer to an ask, or, without an ID, what
// its watcher saw.
type reply struct {
	ID      uint64            `json:"id,omitempty"`
	Err     *fault.Told       `json:"err,omitempty"`
	Disks   []looked          `json:"disks,omitempty"`
	Entry   plan.Entry        `json:"entry,omitzero"` // whose bytes are the raw ones
	Errs    []*fault.Told     `json:"errs,omitempty"`
	Made    []string          `json:"made,omitempty"`
	Kept    map[string]string `json:"kept,omitempty"`
	Paths   []string          `json:"paths,omitempty"`
	Changed bool              `json:"changed,omitempty"` // of the watcher
	All     bool              `json:"all,omitempty"`
}

// looked is a plan.Disk whose errors are told, and whose wants are without bytes.
type looked struct {
	plan.Disk
	Errs []*fault.Told `json:"Errs,omitempty"` // in the place of plan.Disk's own
}

// Bounds of what a child says.
const (
	replyBase = 1 << 20  // bytes of an answer that is not about units
	replyUnit = 64 << 10 // and for each unit that was asked about
	maxRaw    = disk.MaxFile
	// partsBase and partsUnit bound the objects and elements of an answer: a short
	// text can ask for much memory.
	partsBase = 8 << 10
	partsUnit = 1 << 10
	maxAsk    = 256 << 20 // the parent is believed
	maxPath   = 4 << 10   // bytes of a path that changed
)

// pace bounds how often something happens: newsAtOnce times, and newsEach apart
// from there on. A watcher tells five times a second at most.
type pace struct {
	left int
	at   time.Time
}

const (
	newsAtOnce = 100
	newsEach   = 50 * time.Millisecond
)

// step reports whether it may happen at now.
func (p *pace) step(now time.Time) bool {
	if p.at.IsZero() {
		p.left, p.at = newsAtOnce, now
	}
	if n := int(now.Sub(p.at) / newsEach); n > 0 {
		p.left, p.at = min(p.left+n, newsAtOnce), p.at.Add(time.Duration(n)*newsEach)
	}
	p.left--
	return p.left >= 0
}

// send writes a frame.
func send(w io.Writer, msg any, raw []byte) error {
	text, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	head := make([]byte, 8, 8+len(text)+len(raw))
	binary.LittleEndian.PutUint32(head, uint32(len(text)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(raw)))
	_, err = w.Write(append(append(head, text...), raw...))
	return err
}

// receive reads a frame of at most so many bytes, which is asked when it begins.
func receive(r io.Reader, allowed func() (text, raw int)) (text, raw []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, err
	}
	most, mostRaw := allowed()
	n, m := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	if int64(n) > int64(most) || int64(m) > int64(mostRaw) {
		return nil, nil, fmt.Errorf("a message of %d and %d bytes; at most %d and %d are taken", n, m, most, mostRaw)
	}
	if text, err = body(r, int64(n)); err != nil {
		return nil, nil, err
	}
	raw, err = body(r, int64(m))
	return text, raw, err
}

// body reads n bytes. Memory grows with what comes, not with what is announced.
func body(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	m, err := io.CopyN(&b, r, n)
	if errors.Is(err, io.EOF) && m < n {
		err = io.ErrUnexpectedEOF
	}
	return b.Bytes(), err
}

// parts counts what each may become a value of its own.
func parts(text []byte) int {
	n := 0
	for _, c := range text {
		if c == '{' || c == '[' || c == ',' {
			n++
		}
	}
	return n
}
