package disk

import (
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tmpPrefix and tmpSuffix are around the temporary names. No unit and no drop-in
// has such a name, so systemd passes them by.
const (
	tmpPrefix = ".stead-"
	tmpSuffix = ".tmp"
)

func temporary(name string) bool {
	return strings.HasPrefix(name, tmpPrefix) && strings.HasSuffix(name, tmpSuffix)
}

// Sweep removes what an earlier run left under temporary names when it was
// killed, in the configuration folder, the folders below it that units have, and
// the folder of copies. It is for the start of a host. It returns how many went.
func (d *Disk) Sweep() (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	swept, err := d.sweep(d.o.Kept, false)
	n, more := d.sweep(d.o.ConfigDir, true)
	return swept + n, errors.Join(err, more)
}

func (d *Disk) sweep(p string, below bool) (swept int, err error) {
	dir := d.tree.openDir(p, make([]byte, 32<<10))
	defer dir.close()
	if dir.err != nil {
		return 0, failure("sweep", p, dir.err)
	}
	var errs []error
	for name, kind := range dir.kinds {
		switch {
		case kind.IsDir() && below && (strings.HasSuffix(name, ".d") || pulls(name)):
			n, err := d.sweep(p+"/"+name, false)
			swept, errs = swept+n, append(errs, err)
		case !kind.IsDir() && temporary(name):
			if err := unix.Unlinkat(dir.fd, name, 0); err != nil {
				errs = append(errs, failure("remove", path.Join(p, name), err))
				continue
			}
			swept++
		}
	}
	return swept, errors.Join(errs...)
}
