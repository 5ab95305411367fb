package bucket

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"stead/host/fault"
)

// Changes are what happened to a bucket since they were last taken.
type Changes[T any] struct {
	// Entries are the last values of the keys that were written or deleted, in
	// the order of their revisions. A key that was written twice stands once.
	Entries []Entry[T]
	// Gone are keys that vanished without a tombstone: the bucket was made anew
	// or restored, or somebody purged it.
	Gone []string
	// Revision is the bucket's, of which the copy is now exact. Lower than the
	// last one: it was restored.
	Revision uint64
	// Created is when the bucket was made. Another than the last one: it is
	// another bucket.
	Created time.Time
}

// Status is how a watcher's copy stands.
type Status struct {
	Read     bool // the bucket was read once; until then there is no copy
	Current  bool // it is being followed now; otherwise the copy is as old as Since says
	Since    time.Time
	Revision uint64
	Created  time.Time // of the bucket
	Readings int       // how often the whole bucket was read
	Err      error     // why it is not current; nil while it is
}

// view is a watcher's copy of the bucket. One goroutine writes it.
type view[T any] struct {
	wake chan struct{} // capacity one

	mu      sync.Mutex
	status  Status
	entries map[string]Entry[T]
	changed map[string]struct{} // since Take
	moved   chan struct{}       // closed and replaced when the copy or the status changes
}

func newView[T any]() *view[T] {
	return &view[T]{
		wake: make(chan struct{}, 1), entries: map[string]Entry[T]{},
		changed: map[string]struct{}{}, moved: make(chan struct{}),
	}
}

// Wake holds a token whenever there may be changes to take or the status is
// another. It is never closed.
func (w *Watcher[T]) Wake() <-chan struct{} { return w.view.wake }

// Status returns how the copy stands.
func (w *Watcher[T]) Status() Status {
	w.view.mu.Lock()
	defer w.view.mu.Unlock()
	return w.view.status
}

// Take returns what changed since it was called last, everything the first time,
// and false as long as the bucket was never read. It has one caller.
func (w *Watcher[T]) Take() (Changes[T], bool) {
	v := w.view
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.status.Read {
		return Changes[T]{}, false
	}
	c := Changes[T]{Revision: v.status.Revision, Created: v.status.Created}
	for key := range v.changed {
		if e, ok := v.entries[key]; ok {
			c.Entries = append(c.Entries, e)
		} else {
			c.Gone = append(c.Gone, key)
		}
	}
	v.changed = map[string]struct{}{}
	slices.SortFunc(c.Entries, func(a, b Entry[T]) int { return cmp.Compare(a.Revision, b.Revision) })
	slices.Sort(c.Gone)
	return c, true
}

// Snapshot returns the whole copy, tombstones included, and the revision of
// which it is exact; false as long as the bucket was never read. The map is the
// caller's.
func (w *Watcher[T]) Snapshot() (map[string]Entry[T], uint64, bool) {
	v := w.view
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.entries), v.status.Revision, v.status.Read
}

// Entry returns what the copy has under key, a tombstone too.
func (w *Watcher[T]) Entry(key string) (Entry[T], bool) {
	w.view.mu.Lock()
	defer w.view.mu.Unlock()
	e, ok := w.view.entries[key]
	return e, ok
}

// Reach waits until the copy holds what was written up to revision: one's own
// write, say. It is a timeout when ctx ends before.
func (w *Watcher[T]) Reach(ctx context.Context, revision uint64) error {
	for {
		w.view.mu.Lock()
		there, moved := w.view.status.Read && w.view.status.Revision >= revision, w.view.moved
		w.view.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fault.New(fault.Timeout, "follow", w.b.o.Name, ctx.Err())
		}
	}
}

// set changes the view by do, under its lock, and wakes who waits.
func (v *view[T]) set(do func()) {
	v.mu.Lock()
	do()
	close(v.moved)
	v.moved = make(chan struct{})
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// lost notes that the copy is not followed any more, for err.
func (v *view[T]) lost(err error) {
	v.set(func() {
		if v.status.Current {
			v.status.Current, v.status.Since = false, time.Now()
		}
		v.status.Err = err
	})
}

// replace makes all, read from the bucket that was created then, the copy. Only
// what differs counts as changed.
func (v *view[T]) replace(all map[string]Entry[T], revision uint64, created time.Time) {
	v.set(func() {
		same := v.status.Created.Equal(created)
		for key, e := range all {
			// The time tells two writes apart that got one revision, before and
			// after a restore.
			if old, ok := v.entries[key]; !ok || !same || old.Revision != e.Revision || !old.Time.Equal(e.Time) {
				v.changed[key] = struct{}{}
			}
		}
		for key := range v.entries {
			if _, ok := all[key]; !ok {
				v.changed[key] = struct{}{}
			}
		}
		v.entries = all
		v.status = Status{Read: true, Current: true, Since: time.Now(), Revision: revision, Created: created, Readings: v.status.Readings + 1}
	})
}

// add puts entries into the copy, which is exact up to revision then.
func (v *view[T]) add(entries map[string]Entry[T], revision uint64) {
	v.set(func() {
		for key, e := range entries {
			v.entries[key] = e
			v.changed[key] = struct{}{}
		}
		v.status.Revision = revision
	})
}

// size is how many keys the copy has.
func (v *view[T]) size() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.entries)
}
