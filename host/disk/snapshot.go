package disk

import (
	"path"

	"golang.org/x/sys/unix"

	"stead/host/plan"
)

// sight is what was last seen at a path.
type sight struct {
	entry plan.Entry
	stamp stamp
}

// Snapshot returns what stands at p, and a file's bytes. Nothing at p is no
// error. A file of more than MaxFile is one: it cannot be put back, so it is not
// to be overwritten.
func (d *Disk) Snapshot(p string) (plan.Entry, []byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, err := d.tree.open(path.Dir(p), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		t := &thing{}
		t.gone(err)
		return t.entry, nil, failure("read", p, t.err)
	}
	defer unix.Close(at)
	t, data := d.snapshot(at, path.Base(p))
	if t.err != nil {
		return t.entry, nil, failure("read", p, t.err)
	}
	d.seen[p] = sight{t.entry, t.stamp}
	return t.entry, data, nil
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
