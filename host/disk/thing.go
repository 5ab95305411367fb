package disk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/plan"
	"stead/host/unit"
)

// MaxFile is the largest file whose bytes are taken in account, in bytes. What
// is larger is never overwritten or removed.
const MaxFile = 16 << 20

// maxText is the largest file that is read as a unit file.
const maxText = 1 << 20

// thing is what stands at a path, and what its text says.
type thing struct {
	entry plan.Entry
	stamp stamp
	text  unit.File // of a file of at most maxText
	null  bool      // an empty file, a device, or a link to /dev/null: systemd takes it for a mask
	err   error
}

// stamp tells whether a path was touched since it was looked at.
type stamp struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{uint64(st.Dev), st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim} //nolint:unconvert // 32 bits on some machines
}

// modeOf turns the mode of a stat into Go's.
func modeOf(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	default:
		mode |= fs.ModeSocket
	}
	return mode
}

// modeBits is modeOf backwards, for the bits that chmod takes.
func modeBits(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSetuid != 0 {
		bits |= unix.S_ISUID
	}
	if m&fs.ModeSetgid != 0 {
		bits |= unix.S_ISGID
	}
	if m&fs.ModeSticky != 0 {
		bits |= unix.S_ISVTX
	}
	return bits
}

// reader reads files. Its buffer serves one file after another.
type reader struct {
	texts  *cache[[sha256.Size]byte, unit.File]
	syntax func([]byte) unit.File // of the running systemd
	owner  *owner                 // whom files count as belonging to; nil for whom they belong to
	buf    []byte
	last   []byte // the bytes of the last file, in buf
}

// at looks at name in the directory dirfd without following it. A device, FIFO
// or socket is never opened: systemd itself hangs on a FIFO.
func (r *reader) at(dirfd int, name string, kind fs.FileMode) *thing {
	t := &thing{entry: plan.Entry{Kind: plan.Other}}
	switch {
	case kind.IsDir():
		t.entry.Kind = plan.Dir
	case kind&fs.ModeSymlink != 0:
		r.link(t, dirfd, name)
	case kind.IsRegular():
		fd, err := again(func() (int, error) {
			return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		})
		if err != nil {
			t.gone(err)
			return t
		}
		r.file(t, fd)
		unix.Close(fd)
	default:
		t.null = kind&fs.ModeDevice != 0
	}
	return t
}

func (r *reader) link(t *thing, dirfd int, name string) {
	if r.buf == nil {
		r.buf = make([]byte, 64<<10)
	}
	n, err := unix.Readlinkat(dirfd, name, r.buf)
	if err != nil {
		t.gone(err)
		return
	}
	t.entry = plan.Entry{Kind: plan.Link, Target: string(r.buf[:n])}
	t.null = leadsToNull(t.entry.Target)
}

// gone takes in that a path is no longer what the listing said.
func (t *thing) gone(err error) {
	t.entry = plan.Entry{Kind: plan.Absent}
	if !errors.Is(err, unix.ENOENT) {
		t.entry.Kind, t.err = plan.Other, err
	}
}

// file reads the open file fd.
func (r *reader) file(t *thing, fd int) {
	data, st, err := r.bytes(fd)
	t.stamp, r.last = stampOf(&st), data
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		t.err = err
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			t.entry = r.owner.of(fileEntry(&st, ""))
		}
		return
	}
	sum := sha256.Sum256(data)
	t.entry = r.owner.of(fileEntry(&st, hex.EncodeToString(sum[:])))
	t.null = len(data) == 0
	t.text = r.texts.get(sum, func() unit.File { return r.parse(data) })
}

// parse reads the bytes of a unit file.
func (r *reader) parse(data []byte) unit.File {
	if len(data) > maxText {
		return unit.File{Broken: fmt.Sprintf("it has %d bytes, and more than %d are not read as a unit file", len(data), maxText)}
	}
	return r.syntax(data)
}

// owner is an account that is not root: it can give files to nobody else, so of
// those that are another's it only knows that it may replace them.
type owner struct {
	uid, gid int
	groups   []int
}

func (o *owner) of(e plan.Entry) plan.Entry {
	if o == nil {
		return e
	}
	e.UID = o.uid
	if e.GID != o.gid && !slices.Contains(o.groups, e.GID) {
		e.GID = o.gid
	}
	return e
}

func fileEntry(st *unix.Stat_t, digest string) plan.Entry {
	return plan.Entry{Kind: plan.File, Digest: digest, Mode: modeOf(st.Mode), UID: int(st.Uid), GID: int(st.Gid)}
}

// bytes returns the bytes of fd, valid until the next call, and its stat.
func (r *reader) bytes(fd int) ([]byte, unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, st, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, nil
	}
	if st.Size > MaxFile {
		return nil, st, fmt.Errorf("it has %d bytes; stead takes files of at most %d in account", st.Size, MaxFile)
	}
	if need := int(st.Size) + 1; len(r.buf) < need {
		r.buf = make([]byte, max(need, 64<<10))
	}
	n := 0
	for {
		m, err := again(func() (int, error) { return unix.Read(fd, r.buf[n:]) })
		if err != nil {
			return nil, st, err
		}
		n += m
		// A read that falls short of a regular file's size and of the buffer is its
		// end; it need not be asked for once more.
		if m == 0 || n == int(st.Size) && n < len(r.buf) {
			return r.buf[:n], st, nil
		}
		if n == len(r.buf) {
			if n > MaxFile {
				return nil, st, fmt.Errorf("it grows beyond %d bytes", MaxFile)
			}
			r.buf = append(r.buf, make([]byte, n)...)
		}
	}
}

// failure is the error of a path.
func failure(op, path string, err error) error {
	var known *fault.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	f := fault.New(fault.Failed, op, path, err)
	if errors.Is(err, unix.EACCES) && os.Geteuid() == 0 {
		// Root may do everything but what a security module forbids.
		return f.WithHint("SELinux or AppArmor may forbid it: ls -Z " + path + " shows the label, restorecon -v " + path + " sets it")
	}
	return f
}

func canceled(op string, err error) error { return fault.New(fault.Canceled, op, "", err) }
