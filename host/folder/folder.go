// Package folder takes declarations from a folder of YAML files.
//
// Read looks at the folder as it is and answers with all valid declarations, or
// with every problem at once: a reading is whole or it counts for nothing. It
// tells a folder that is missing, or holds no declaration file, from one whose
// files declare nothing: only the last is a wish. Files that are being written
// make a reading unsettled, and it is made again soon. Nothing is kept open and
// nothing in the folder is changed.
//
// Run watches the folder and says on Wake when to look again; it never says
// what changed. A Source owns its watches and remembers its last reading. Read
// and Run may be called at the same time, each from one goroutine.
//
// Texts reads a folder or a file by the same rules and parses nothing: it is for
// whoever sends files to be judged elsewhere.
//
// # Which files
//
// All regular files, and links to them, whose names end in .yaml or .yml, in the
// folder and its sub-folders down to MaxDepth, in the order of their paths.
// Hidden files and folders, and the files that editors make for themselves
// (.x.swp, .#x, #x#, x~), are passed over. Links to folders are not followed. A
// device, FIFO or socket of such a name is a problem and is never opened.
package folder

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/shape"
)

// Limits of a folder. shape.MaxDeclarations and shape.MaxBatch hold besides.
const (
	MaxFiles   = 4096     // declaration files
	MaxEntries = 16 << 10 // names of any kind
	MaxDepth   = 8        // sub-folders below one another
	quiet      = 200 * time.Millisecond
)

// Options say which folder, and how patiently it is watched.
type Options struct {
	Dir    string        // required; it need not exist, and may be a link to a folder
	Logger *slog.Logger  // required
	Quiet  time.Duration // how long the folder is to be still before a wake; 0: 200 ms
	Max    time.Duration // the longest a wake is put off while changes go on; 0: ten times Quiet
	Poll   time.Duration // how often to wake where the folder cannot be watched; 0: 10 s
}

// Source is one folder of declarations.
type Source struct {
	o     Options
	dir   string // absolute
	wake  chan struct{}
	again chan time.Duration // from Read: a reading was unsettled, look again after that time

	mu    sync.Mutex // one Read at a time
	last  *Reading   // nil when the next reading must not rest on it
	delay time.Duration
	moved string // the fingerprint of the last reading, when that was unsettled
}

// New returns a Source and touches nothing.
func New(o Options) (*Source, error) {
	if o.Dir == "" || o.Logger == nil {
		return nil, fault.New(fault.Invalid, "open folder", o.Dir, errors.New("a folder and a logger are wanted"))
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fault.New(fault.Invalid, "open folder", o.Dir, err)
	}
	for _, d := range []struct {
		value *time.Duration
		unset time.Duration
	}{{&o.Quiet, quiet}, {&o.Poll, 50 * quiet}} {
		if *d.value <= 0 {
			*d.value = d.unset
		}
	}
	if o.Max <= 0 {
		o.Max = 10 * o.Quiet
	}
	return &Source{o: o, dir: dir, wake: make(chan struct{}, 1), again: make(chan time.Duration, 1)}, nil
}

// Wake is sent to when it is time to Read: once when Run begins, and after every
// change, when the folder has been still for Options.Quiet or changes have gone
// on for Options.Max. It holds one wake at most and is never closed.
func (s *Source) Wake() <-chan struct{} { return s.wake }

// Kind says what a reading found.
type Kind string

// The kinds of readings. None but OK may change what is in force.
const (
	OK        Kind = "ok"        // every file was read and is valid; Services is all there is, be it nothing
	Missing   Kind = "missing"   // there is no such folder
	Empty     Kind = "empty"     // there is no declaration file in it
	Bad       Kind = "bad"       // there are problems
	Unsettled Kind = "unsettled" // files are being written; it is looked at again soon
)

// Reading is what the folder held at one moment. It is never changed.
type Reading struct {
	Kind     Kind
	Services []*shape.Service // in the order of files and documents; nil unless Kind is OK
	Problems shape.Problems   // why Kind is not OK; empty when it is
	Warnings []string         // what was passed over and might have been meant
	Files    int              // declaration files
	Bytes    int64            // their size in all

	// Fingerprint is of the names, sizes, times and inodes of everything that was
	// looked at. Unchanged says that it is that of the reading before, which was
	// taken over without reading a file.
	Fingerprint string
	Unchanged   bool
}

// Read reads the folder. Whatever the folder is like stands in the Reading; the
// error is a *fault.Error of class canceled, and only when ctx ends.
func (s *Source) Read(ctx context.Context) (Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := time.Now()
	t := s.scan(ctx)
	if s.last != nil && s.last.Fingerprint == t.fingerprint() && t.settled() && ctx.Err() == nil {
		r := *s.last
		r.Unchanged = true
		return r, nil
	}
	r := s.readTree(ctx, t)
	if err := ctx.Err(); err != nil {
		return Reading{}, fault.New(fault.Canceled, "read folder", s.o.Dir, err)
	}
	s.remember(r, t.trustworthy(started))
	return r, nil
}

// remember keeps a reading for the next one to rest on, and asks for another one
// soon when r is unsettled: later and later while nothing moves at all.
func (s *Source) remember(r Reading, keep bool) {
	s.last = nil
	if keep && r.Kind != Unsettled {
		s.last = &r
	}
	if r.Kind != Unsettled {
		s.delay, s.moved = 0, ""
		return
	}
	if r.Fingerprint != s.moved {
		s.delay, s.moved = 0, r.Fingerprint // the writer is at work, and may end at any moment
	}
	s.delay = min(max(2*s.delay, s.o.Quiet), max(5*time.Second, s.o.Quiet))
	select {
	case <-s.again:
	default:
	}
	s.again <- s.delay
}

// shown returns the name of a file for people: as it is reached from the folder
// that was given, quoted when it is not plain text.
func (s *Source) shown(rel string) string {
	name := filepath.Join(s.o.Dir, rel)
	if quoted := strconv.Quote(name); strings.Trim(quoted, `"`) != name || strings.ContainsRune(name, '"') {
		return quoted
	}
	return name
}
