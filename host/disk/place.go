package disk

import (
	"errors"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// place opens a folder to write in, and makes it, with mode 0755, when it is
// missing and make is true; nil without an error when it is missing and make is
// false. Unless loose, no link may stand on the way to it.
func (b *batch) place(p string, make, loose bool) (*place, error) {
	if known := b.dirs[p]; known != nil {
		return known, nil
	}
	open := b.tree.plainly
	if loose {
		open = b.tree.open
	}
	// Fsync wants more than O_PATH.
	fd, err := open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	pl := &place{path: p, fd: fd}
	if errors.Is(err, unix.ENOENT) {
		if !make {
			return nil, nil
		}
		if pl.fd, err = b.mkdir(p, loose); err == nil {
			pl.made = true
			b.res.Made = append(b.res.Made, p)
		}
	}
	if err != nil {
		return nil, err
	}
	b.dirs[p] = pl
	return pl, nil
}

func (b *batch) mkdir(p string, loose bool) (int, error) {
	up, err := b.place(path.Dir(p), true, loose)
	if err != nil {
		return -1, err
	}
	if err := unix.Mkdirat(up.fd, path.Base(p), 0o755); err != nil {
		return -1, err
	}
	fd, err := unix.Openat(up.fd, path.Base(p), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Fchmod(fd, 0o755); err != nil { // whatever the umask took
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Missing returns the folders that Apply would have to make for these paths,
// parents first, so that they can be remembered before they are.
func (d *Disk) Missing(paths []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []string
	for _, p := range paths {
		var chain []string
		for dir := path.Dir(p); !slices.Contains(all, dir) && !d.tree.is(dir); dir = path.Dir(dir) {
			chain = append(chain, dir)
		}
		slices.Reverse(chain)
		all = append(all, chain...)
	}
	return all
}

func (t tree) is(p string) bool {
	fd, err := t.open(p, unix.O_PATH)
	if err != nil {
		return !errors.Is(err, unix.ENOENT)
	}
	unix.Close(fd)
	return true
}

// RemoveDirs removes those of the folders that are empty, and returns those that
// are gone, also those that were gone before. It removes nothing else.
func (d *Disk) RemoveDirs(paths []string) (removed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	deepest := slices.Clone(paths)
	slices.SortFunc(deepest, func(a, b string) int { return len(b) - len(a) })
	for _, p := range deepest {
		err := d.rmdir(p)
		switch {
		case err == nil, errors.Is(err, unix.ENOENT):
			removed = append(removed, p)
		case !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOTDIR):
			d.o.Logger.Warn("empty folder stays", "path", p, "error", err)
		}
	}
	slices.Sort(removed)
	return removed
}

func (d *Disk) rmdir(p string) error {
	up, err := d.parent(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(up)
	return unix.Unlinkat(up, path.Base(p), unix.AT_REMOVEDIR)
}
