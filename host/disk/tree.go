package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is the file system below a root. Symbolic links are followed as a
// process would follow them whose root it is; none leads out.
type tree struct{ root string } // absolute, without links; "/" for the machine's own

func newTree(root string) (tree, error) {
	if root == "" || root == "/" {
		return tree{"/"}, nil
	}
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(fd)
	real, err := os.Readlink(procPath(fd))
	return tree{real}, err
}

func procPath(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// open opens an absolute path.
func (t tree) open(p string, flags int) (int, error) {
	flags |= unix.O_CLOEXEC
	if t.root == "/" {
		return again(func() (int, error) { return unix.Open(p, flags, 0) })
	}
	root, err := unix.Open(t.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	return again(func() (int, error) { return unix.Openat2(root, p, how) })
}

// again repeats a call that a signal, or a rename in its way, broke off.
func again(call func() (int, error)) (int, error) {
	for range 64 {
		n, err := call()
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) {
			return n, err
		}
	}
	return -1, unix.EAGAIN
}

// real returns where the open fd is, below the root and without links.
func (t tree) real(fd int) (string, error) {
	p, err := os.Readlink(procPath(fd))
	if err != nil || t.root == "/" {
		return p, err
	}
	return path.Join("/", strings.TrimPrefix(p, t.root)), nil
}

// dir is one directory, listed once.
type dir struct {
	path  string // as it was asked for
	real  string // without links
	fd    int    // -1 when it is closed, or not there
	kinds map[string]fs.FileMode
	known map[string]*thing // what was read of it
	err   error             // why it could not be listed
}

// there reports whether the directory exists.
func (d *dir) there() bool { return d.kinds != nil }

// openDir opens a directory by its path and lists it, with buf to do so. One that does not exist,
// or is none, is empty and not there; d.err tells of other trouble.
func (t tree) openDir(p string, buf []byte) *dir {
	d := &dir{path: p, real: p, fd: -1}
	fd, err := t.open(p, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		d.real, err = t.real(fd)
		d.list(fd, err, buf)
		return d
	}
	return d.absent(err)
}

// sub opens a directory below d that is no link.
func (d *dir) sub(name string, buf []byte) *dir {
	s := &dir{path: d.path + "/" + name, real: d.real + "/" + name, fd: -1}
	fd, err := again(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return s.absent(err)
	}
	s.list(fd, nil, buf)
	return s
}

func (d *dir) absent(err error) *dir {
	for _, e := range []error{unix.ENOENT, unix.ENOTDIR, unix.ENAMETOOLONG, unix.ELOOP} {
		if errors.Is(err, e) {
			return d
		}
	}
	d.err = err
	return d
}

func (d *dir) list(fd int, err error, buf []byte) {
	d.fd = fd
	if err == nil {
		d.kinds, err = kinds(fd, buf)
	}
	if err != nil {
		d.err = err
		d.close()
	}
}

func (d *dir) close() {
	if d.fd >= 0 {
		unix.Close(d.fd)
		d.fd = -1
	}
}

// kinds lists a directory: the type bits of each entry, by name.
func kinds(fd int, buf []byte) (map[string]fs.FileMode, error) {
	all := make(map[string]fs.FileMode)
	for {
		n, err := again(func() (int, error) { return unix.Getdents(fd, buf) })
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			return all, nil
		}
		if err := dirents(fd, buf[:n], all); err != nil {
			return nil, err
		}
	}
}

// dirents reads linux_dirent64 records: inode and offset of 8 bytes, length of 2,
// type of 1, name with a zero behind it.
func dirents(fd int, buf []byte, all map[string]fs.FileMode) error {
	for len(buf) > 19 {
		size := int(buf[16]) | int(buf[17])<<8
		name := buf[19:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		switch s, kind := string(name), buf[18]; {
		case s == "." || s == "..":
		case kind != unix.DT_UNKNOWN:
			all[s] = modeOf(uint32(kind) << 12).Type() // DT_ is S_IF >> 12
		default: // a file system that does not say
			var st unix.Stat_t
			if err := unix.Fstatat(fd, s, &st, unix.AT_SYMLINK_NOFOLLOW); err == nil {
				all[s] = modeOf(st.Mode).Type()
			} else if err != unix.ENOENT {
				return err
			}
		}
		buf = buf[size:]
	}
	return nil
}
