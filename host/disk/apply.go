package disk

import (
	"context"
	"errors"
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

// Apply makes the changes, in their order, and makes them durable before it
// returns. A change that does not succeed leaves what stood at its path, and
// stops no other. Folders that a put lacks are made, and left again when nothing
// comes to stand in them.
//
// A copy is kept of what is overwritten or removed when its change asks for it,
// and also when the path was touched since Look or Snapshot last saw it.
// Directories, devices, FIFOs and sockets are never taken away (Conflict).
func (d *Disk) Apply(ctx context.Context, cs []plan.Change) plan.Applied {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := &batch{Disk: d, dirs: make(map[string]*place), res: plan.Applied{Errs: make([]error, len(cs)), Kept: make(map[string]string)}}
	defer b.close()
	for _, c := range cs {
		if c.Entry.Kind == plan.File {
			b.files++
		}
	}
	acts := make([]*act, len(cs))
	paths := make(map[string]bool, len(cs))
	for i, c := range cs {
		a := &act{Change: c, seen: d.seen[c.Path], file: -1}
		acts[i] = a
		switch {
		case ctx.Err() != nil:
			a.err = canceled("write", ctx.Err())
		case paths[c.Path]:
			a.err = fault.New(fault.Internal, "write", c.Path, errors.New("two changes of one path in a batch"))
		default:
			a.err = b.prepare(a)
		}
		paths[c.Path] = true
	}
	b.sync(ctx, acts)
	for _, a := range acts {
		if a.err == nil {
			a.err = b.finish(a)
		}
		delete(d.seen, a.Path)
		if a.err == nil {
			d.seen[a.Path] = sight{entry: a.Entry}
		}
	}
	b.settle(acts)
	for i, a := range acts {
		b.res.Errs[i] = writeFailure(a.Path, a.err)
	}
	return b.res
}

// act is one change on its way.
type act struct {
	plan.Change
	seen sight
	dir  *place
	tmp  string // the temporary name, in the same folder, "" when there is none
	file int    // its open file, where it is synced on its own; else -1
	err  error
}

// place is a folder that is written to.
type place struct {
	path  string
	fd    int
	made  bool // by this batch
	used  bool // something came to stand in it
	dirty bool // it must be synced
}

// batch is one Apply.
type batch struct {
	*Disk
	dirs  map[string]*place
	files int // to be written
	keep  *keeper
	res   plan.Applied
}

func (b *batch) close() {
	for _, p := range b.dirs {
		unix.Close(p.fd)
	}
	b.keep.close()
}

// prepare does all that does not show yet: the copy of what stands there, and
// the new entry under its temporary name.
func (b *batch) prepare(a *act) (err error) {
	absent := a.Entry.Kind == plan.Absent
	if a.dir, err = b.place(path.Dir(a.Path), !absent, b.ours(a.Path)); err != nil {
		return err
	}
	if a.dir == nil {
		return nil // nothing to remove
	}
	if err := b.preserve(a); err != nil || absent {
		return err
	}
	b.serial++
	name := fmt.Sprintf("%s%d-%d%s", tmpPrefix, unix.Getpid(), b.serial, tmpSuffix)
	switch a.Entry.Kind {
	case plan.Link:
		err = unix.Symlinkat(a.Entry.Target, a.dir.fd, name)
	case plan.File:
		a.file, err = write(a.dir.fd, name, a.Change)
	default:
		return fault.New(fault.Internal, "write", a.Path, fmt.Errorf("kind %q", a.Entry.Kind))
	}
	if err != nil {
		return err
	}
	a.tmp = name
	if b.files > few && a.file >= 0 {
		unix.Close(a.file) // or a batch would need as many descriptors
		a.file = -1
	}
	return nil
}

// write makes a file with all that it shall have but its name. Nothing is left
// of it when that does not succeed.
func write(dir int, name string, c plan.Change) (int, error) {
	fd, err := again(func() (int, error) {
		return unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return -1, err
	}
	if err = fill(fd, c); err != nil {
		unix.Close(fd)
		_ = unix.Unlinkat(dir, name, 0) // the error to tell is the first
		return -1, err
	}
	return fd, nil
}

func fill(fd int, c plan.Change) error {
	if err := writeAll(fd, c.Content); err != nil {
		return err
	}
	// The owner first: a change of it takes setuid away.
	if err := unix.Fchown(fd, c.Entry.UID, c.Entry.GID); err != nil {
		return err
	}
	return unix.Fchmod(fd, modeBits(c.Entry.Mode))
}

func writeAll(fd int, rest []byte) error {
	for len(rest) > 0 {
		n, err := again(func() (int, error) { return unix.Write(fd, rest) })
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// finish gives the new entry its name, or takes the old one away.
func (b *batch) finish(a *act) error {
	if a.dir == nil {
		return nil
	}
	name := path.Base(a.Path)
	var err error
	if a.Entry.Kind == plan.Absent {
		if err = unix.Unlinkat(a.dir.fd, name, 0); err == unix.ENOENT {
			return nil
		}
	} else if err = unix.Renameat(a.dir.fd, a.tmp, a.dir.fd, name); err == nil {
		a.tmp, a.dir.used = "", true
	}
	a.dir.dirty = a.dir.dirty || err == nil
	return err
}

// writeFailure is the error of a change, with the cure where one is known.
func writeFailure(p string, err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	e := fault.New(fault.Failed, "write", p, err)
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return e.WithHint("make room: df -h " + path.Dir(p))
	case errors.Is(err, unix.EROFS):
		return e.WithHint("make it writable: findmnt -T " + path.Dir(p))
	case errors.Is(err, unix.EPERM):
		return e.WithHint("see whether it is immutable: lsattr -d " + path.Dir(p) + " " + p)
	}
	return e
}
