package identity

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// largest is how much of a file is read.
const largest = 256 << 10

// readOwn reads a file that only its owner may read.
func readOwn(path string) ([]byte, error) {
	// O_NONBLOCK: a pipe at this path must not hold the caller up.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "read", path, unix.ENOENT)
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Denied, "read", path, unix.EACCES)
	case err != nil:
		return nil, fault.New(fault.Failed, "read", path, err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, fault.New(fault.Failed, "read", path, err)
	case !info.Mode().IsRegular():
		return nil, fault.New(fault.Refused, "read", path, fmt.Errorf("not a regular file"))
	case info.Mode().Perm()&0o077 != 0 && !handed(info):
		return nil, fault.New(fault.Refused, "read", path, fmt.Errorf("mode %04o: others may read or change it", info.Mode().Perm())).
			WithHint("chmod 0600 " + path)
	}
	text, err := io.ReadAll(io.LimitReader(f, largest+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.Failed, "read", path, err)
	case len(text) > largest:
		return nil, fault.New(fault.Invalid, "read", path, fmt.Errorf("more than %d bytes", largest))
	}
	return text, nil
}

// handed is whether root hands the file to this process by an access list, as
// systemd does with LoadCredential=: the bits of the group are then the mask of
// that list, and only root changes it. The group itself is root's.
func handed(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm() == 0o440 && st.Uid == 0 && st.Gid == 0 && os.Geteuid() != 0
}
