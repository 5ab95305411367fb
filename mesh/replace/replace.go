// Package replace puts one file in the place of another, so that at every moment,
// also after a power cut, the old one or the new one is there, whole.
//
// It is for the single files that a process keeps for itself: keys, contexts,
// markers, unit files of stead's own. What declarations ask for is written in
// batches, by host/disk. The functions may be called from any goroutine; two
// that replace one file at a time leave that of one of them. Errors are
// *fault.Error of class failed.
package replace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"stead/host/fault"
)

// File puts text at path with that mode, and returns when it is on disk. Its
// folder must exist; what stood at path is gone. After an error it still stands.
func File(path string, text []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return fault.New(fault.Failed, "write", path, err)
	}
	_, err = f.Write(text)
	if err == nil {
		err = errors.Join(f.Chmod(mode), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error before is the one to tell
		return fault.New(fault.Failed, "write", path, err)
	}
	return Sync(filepath.Dir(path))
}

// Sync returns when the names in a folder are on disk.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fault.New(fault.Failed, "write", dir, err)
	}
	err = f.Sync()
	if err = errors.Join(err, f.Close()); err != nil {
		return fault.New(fault.Failed, "write", dir, err)
	}
	return nil
}
