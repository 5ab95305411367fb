package escalate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
	"stead/host/unit"
)

const (
	// maxUntold is how many calls are kept whose end nobody was told.
	maxUntold = 1024
	// slack is how many lines the file may have beyond those that count.
	slack = 1024
)

// entry is one call, from before anything is done until somebody was told its
// end.
type entry struct {
	ID     string    `json:"id"`
	Call   string    `json:"call,omitempty"` // of the runtime's that it is part of
	Act    Act       `json:"act"`
	Unit   unit.Name `json:"unit"`
	Of     owner     `json:"of,omitzero"`
	NoWait bool      `json:"nowait,omitempty"`
	For    string    `json:"for,omitempty"`
	Began  time.Time `json:"began"`
	Before before    `json:"before"`
	Said   string    `json:"said,omitempty"` // Request.Before
	Stood  *Stood    `json:"stood,omitempty"`
	Job    uint32    `json:"job,omitempty"` // 0: none is known of
	// Links are what was changed, when systemd may not know it yet; nil: nothing is
	// known of.
	Links *unit.Linking `json:"links,omitempty"`
	End   *end          `json:"end,omitempty"` // nil: it is under way
	Told  bool          `json:"told,omitempty"`
}

// before is how a unit stood before a job.
type before struct {
	Up         bool   `json:"up"`
	Invocation string `json:"invocation,omitempty"`
}

// name is what the unit is called, as far as it is known.
func (e *entry) name() unit.Name {
	if e.Stood != nil {
		return e.Stood.ID
	}
	return e.Unit
}

// scope is "" for the system's.
func (e *entry) scope() unit.Scope {
	if e.Of == (owner{}) {
		return ""
	}
	return unit.User
}

// about is what the log says of it.
func (e *entry) about() []any { return about(e.Act, string(e.Unit), e.For, e.scope()) }

func (e *entry) answer() answered {
	return answered{ID: e.ID, Job: e.Job, Act: e.Act, Unit: e.Unit, Scope: e.scope(), For: e.For, Began: e.Began, Stood: e.Stood, End: e.End}
}

// book is all calls that matter, in memory and in a file, which outlives the
// process and not the boot.
type book struct {
	path string

	mu    sync.Mutex // guards what follows
	calls map[string]*entry
	order []string // ids, the oldest first
	past  past
	file  *os.File
	lines int
}

// line is one of the file: an entry, or until when not all is known.
type line struct {
	*entry
	Forgot time.Time `json:"forgot,omitzero"`
}

// openBook reads the file at path, "" for none. A line that is damaged, as the
// last one of a process that was killed may be, says nothing. Where there is no
// file nothing is known of what was asked before.
func openBook(path string) (*book, error) {
	b := &book{path: path, calls: map[string]*entry{}, past: past{calls: map[string]*entry{}}}
	if path == "" {
		b.past.forget(time.Now())
		return b, nil
	}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.past.forget(time.Now())
	case err != nil:
		return nil, fault.New(fault.Failed, "read calls", path, err)
	}
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, maxAnswered)
	for in.Scan() {
		l := line{entry: &entry{}}
		if json.Unmarshal(in.Bytes(), &l) != nil {
			continue
		}
		if b.past.forget(l.Forgot); l.ID != "" {
			b.set(l.entry)
		}
	}
	return b, b.rewrite()
}

// set puts e in the place of what is known of its id.
func (b *book) set(e *entry) {
	switch {
	case e.Told:
		if old := b.calls[e.ID]; old != nil {
			known := *old
			e = &known
		}
		delete(b.calls, e.ID)
		b.order = slices.DeleteFunc(b.order, func(id string) bool { return id == e.ID })
		// What was not done may be done when it is asked again.
		if e.End != nil && !fault.Is(e.End.err(), fault.Unavailable) {
			b.past.add(e)
		}
		return
	case b.calls[e.ID] == nil:
		b.order = append(b.order, e.ID)
	}
	b.calls[e.ID] = e
}

// rewrite makes the file anew from what counts.
func (b *book) rewrite() error {
	if b.path == "" {
		return nil
	}
	fail := func(err error) error { return fault.New(fault.Failed, "keep calls", b.path, err) }
	lines := []line{{entry: &entry{}, Forgot: b.past.forgot}}
	for _, id := range b.past.order {
		lines = append(lines, line{entry: b.past.calls[id]})
	}
	for _, id := range b.order {
		lines = append(lines, line{entry: b.calls[id]})
	}
	var text bytes.Buffer
	for _, l := range lines {
		words, err := json.Marshal(l)
		if err != nil {
			return fail(err)
		}
		text.Write(append(words, '\n'))
	}
	if err := os.MkdirAll(filepath.Dir(b.path), 0o700); err != nil {
		return fail(err)
	}
	half := b.path + ".new"
	if err := os.WriteFile(half, text.Bytes(), 0o600); err != nil {
		return fail(err)
	}
	file, err := os.OpenFile(half, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fail(err)
	}
	if err := os.Rename(half, b.path); err != nil {
		return errors.Join(fail(err), file.Close())
	}
	if b.file != nil {
		_ = b.file.Close()
	}
	b.file, b.lines = file, len(lines)
	return nil
}

// note writes e to the file; b.mu is held. The page cache outlives the process,
// and calls do not outlive the boot, so nothing is synced.
func (b *book) note(e *entry) error {
	if b.path == "" {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return fault.New(fault.Failed, "keep calls", b.path, err)
	}
	if b.lines > len(b.order)+len(b.past.order)+slack {
		if err := b.rewrite(); err != nil {
			return err
		}
	}
	b.lines++
	if _, err := b.file.Write(append(line, '\n')); err != nil {
		return fault.New(fault.Failed, "keep calls", b.path, err)
	}
	return nil
}

// begin notes a call before it is done. It returns what is known of the id when
// it came before; then nothing is to be done.
func (b *book) begin(e *entry) (known *entry, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.find(e.ID); old != nil {
		c := *old
		return &c, nil
	}
	if err := b.note(e); err != nil {
		return nil, err
	}
	b.set(e)
	if err := b.trim(); err != nil {
		b.set(&entry{ID: e.ID, Told: true}) // it is not done
		return nil, err
	}
	return nil, nil
}

// trim forgets the oldest calls whose end nobody was told, beyond maxUntold.
func (b *book) trim() error {
	ended := 0
	for _, e := range b.calls {
		if e.End != nil {
			ended++
		}
	}
	for _, id := range slices.Clone(b.order) {
		if ended <= maxUntold {
			break
		}
		if b.calls[id].End != nil {
			ended--
			gone := entry{ID: id, Told: true}
			b.set(&gone)
			if err := b.note(&gone); err != nil {
				return err
			}
		}
	}
	return nil
}

// known returns what is known of an id, nil for nothing.
func (b *book) known(id string) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.find(id); e != nil {
		c := *e
		return &c
	}
	return nil
}

// find is what is known of an id; b.mu is held.
func (b *book) find(id string) *entry {
	if e := b.calls[id]; e != nil {
		return e
	}
	return b.past.calls[id]
}

// change changes what is known of a call that is under way, and returns it; nil
// when there is none of that id.
func (b *book) change(id string, f func(*entry)) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.calls[id]
	if old == nil || old.End != nil {
		return nil, nil
	}
	e := *old
	f(&e)
	b.set(&e)
	c := e
	return &c, b.note(&e)
}

// told notes calls whose end somebody knows: they matter only when they are asked
// again.
func (b *book) told(ids []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if e := b.calls[id]; e == nil || e.End == nil {
			continue
		}
		gone := entry{ID: id, Told: true}
		b.set(&gone)
		if err := b.note(&gone); err != nil {
			return err
		}
	}
	return nil
}

// all returns the calls that hold, the oldest first.
func (b *book) all(holds func(*entry) bool) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []entry
	for _, id := range b.order {
		if e := b.calls[id]; holds(e) {
			out = append(out, *e)
		}
	}
	return out
}

// underWay counts the calls of a scope that have not ended.
func (b *book) underWay(scope unit.Scope) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, e := range b.calls {
		if e.End == nil && (e.scope() == unit.User) == (scope == unit.User) {
			n++
		}
	}
	return n
}

func (b *book) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	if err := b.file.Close(); err != nil {
		return fault.New(fault.Failed, "keep calls", b.path, fmt.Errorf("close: %w", err))
	}
	return nil
}
