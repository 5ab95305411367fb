package disk

import (
	"context"
	"path"

	"golang.org/x/sys/unix"

	"stead/host/plan"
)

// few is up to how many files, or folders, are synced one by one; for more it is
// their file system that is.
const few = 16

// sync makes the prepared files, and the kept copies, durable. It closes them.
func (b *batch) sync(ctx context.Context, acts []*act) {
	err := b.keep.sync()
	if b.keep != nil && err == nil {
		for _, c := range b.keep.fresh {
			b.copies.keep(c, b.res.Kept[c.path])
		}
	}
	synced := make(map[uint64]error)
	for _, a := range acts {
		switch {
		case a.err != nil:
		case err != nil:
			a.err = err // no copy, no change
		case ctx.Err() != nil:
			a.err = canceled("write", ctx.Err())
		case a.file >= 0:
			a.err = unix.Fsync(a.file)
		case a.tmp != "" && a.Entry.Kind == plan.File:
			a.err = syncOnce(a.dir.fd, synced)
		}
		if a.file >= 0 {
			unix.Close(a.file)
		}
	}
}

// syncOnce syncs the file system that fd is on, unless that was done.
func syncOnce(fd int, synced map[uint64]error) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	dev := uint64(st.Dev) //nolint:unconvert // 32 bits on some machines
	err, done := synced[dev]
	if !done {
		err = unix.Syncfs(fd)
		synced[dev] = err
	}
	return err
}

// settle takes away what must not stay, and makes the names durable.
func (b *batch) settle(acts []*act) {
	for _, a := range acts {
		if a.tmp != "" {
			_ = unix.Unlinkat(a.dir.fd, a.tmp, 0) // a sweep gets what stays
			a.tmp = ""
		}
	}
	var dirty []*place
	for _, m := range b.res.Made {
		p := b.dirs[m]
		p.dirty = p.dirty || p.used
		if up := b.dirs[path.Dir(m)]; up != nil && p.used {
			up.used, up.dirty = true, true
		}
	}
	b.leaveEmpty()
	for _, p := range b.dirs {
		if p.dirty {
			dirty = append(dirty, p)
		}
	}
	synced := make(map[uint64]error)
	failed := make(map[*place]error)
	for _, p := range dirty {
		var err error
		if len(dirty) <= few {
			err = unix.Fsync(p.fd)
		} else {
			err = syncOnce(p.fd, synced)
		}
		if err != nil {
			failed[p] = err
		}
	}
	for _, a := range acts {
		if a.err == nil && a.dir != nil {
			a.err = failed[a.dir]
		}
	}
}

// leaveEmpty removes folders that were made for nothing, children first.
func (b *batch) leaveEmpty() {
	made := b.res.Made
	b.res.Made = nil
	for i := len(made) - 1; i >= 0; i-- {
		if !b.dirs[made[i]].used && b.rmdir(made[i]) == nil {
			continue
		}
		b.res.Made = append([]string{made[i]}, b.res.Made...)
	}
}
