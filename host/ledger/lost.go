package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"

	"stead/host/fault"
)

// here sees to it that what is committed is found by the next host: a file that
// was taken away while it is open lives on without a name until this process
// ends, and all in it would be lost with it. It is written again then. The
// caller holds mu.
func (l *Ledger) here() error {
	now, err := os.Lstat(l.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.rescue()
	case err != nil:
		return err
	case !os.SameFile(l.file, now):
		return fault.New(fault.Conflict, "write ledger", l.path, errors.New("another file stands in its place")).
			WithHint("systemctl restart stead-host")
	}
	return nil
}

// rescue writes what is open under its name again, whole, and goes on with that.
func (l *Ledger) rescue() error {
	dir := filepath.Dir(l.path)
	if err := makeFolder(dir); err != nil {
		return err
	}
	made, err := os.MkdirTemp(dir, halfMade)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }() // a sweep gets what stays
	file := filepath.Join(made, "ledger.db")
	if err := l.db.View(func(tx *bolt.Tx) error { return copyTo(file, tx) }); err != nil {
		return err
	}
	if err := os.Link(file, l.path); err != nil {
		return err
	}
	if err := syncFolder(dir); err != nil {
		return err
	}
	old := l.db
	if err := l.open(l.timeout); err != nil {
		l.db = old
		return err
	}
	l.log.Warn("ledger was taken away, and is written again", "path", l.path)
	return old.Close()
}

func copyTo(file string, tx *bolt.Tx) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = tx.WriteTo(f)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	return nil
}
