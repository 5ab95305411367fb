package disk

import (
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
)

// sight is what was last seen at a path.
type sight struct {
	entry plan.Entry
	stamp stamp
}

// Snapshot returns what stands at p, and a file's bytes. Nothing at p is no
// error. A folder, device, FIFO, socket (Conflict) and a file of more than MaxFile
// are: they cannot be put back, so they are not to be overwritten.
func (d *Disk) Snapshot(p string) (plan.Entry, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, data, err := d.standing(p)
	if err == nil {
		d.seen[p] = sight{t.entry, t.stamp}
	}
	return t.entry, data, err
}

// Peek is Snapshot for those who only want to know: what is overwritten later is
// kept as if nobody had looked.
func (d *Disk) Peek(p string) (plan.Entry, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, data, err := d.standing(p)
	return t.entry, data, err
}

func (d *Disk) standing(p string) (*thing, []byte, error) {
	at, err := d.parent(p, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t := &thing{}
		t.gone(err)
		return t, nil, failure("read", p, t.err)
	}
	defer unix.Close(at)
	t, data := d.snapshot(at, path.Base(p))
	if t.err != nil {
		return t, nil, failure("read", p, t.err)
	}
	return t, data, obstacle(p, t.entry.Kind == plan.Dir, t.entry.Kind == plan.Other)
}

// obstacle is the error of what is never taken away.
func obstacle(p string, folder, other bool) error {
	switch {
	case folder:
		return fault.New(fault.Conflict, "write", p, errors.New("a folder stands there")).WithHint("rmdir " + p)
	case other:
		return fault.New(fault.Conflict, "write", p, errors.New("a device, FIFO or socket stands there")).WithHint("rm " + p)
	}
	return nil
}

// snapshot reads the entry name of an open directory.
func (d *Disk) snapshot(at int, name string) (*thing, []byte) {
	var st unix.Stat_t
	if err := unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t := &thing{}
		t.gone(err)
		return t, nil
	}
	t := d.reader.at(at, name, modeOf(st.Mode))
	if t.entry.Kind != plan.File || t.err != nil {
		return t, nil
	}
	return t, append([]byte{}, d.reader.last...)
}
