package host

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// lockPath is held by the host that keeps this machine's system units, wherever
// its ledger and socket are: two of them would undo each other's work.
const lockPath = "/run/stead/system.lock"

// lock takes the lock at path and holds it until the file is closed, at the
// latest when the process ends. Errors: Conflict when another host has it.
func lock(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fault.New(fault.Failed, "make folder", filepath.Dir(path), err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Failed, "lock", path, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close() // the error of the lock is the one to tell
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fault.New(fault.Conflict, "run the host", "", errors.New("another host keeps the units of this machine")).
			WithHint("fuser -v " + path)
	}
	return nil, fault.New(fault.Failed, "lock", path, err)
}
