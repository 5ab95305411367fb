package ledger

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// create makes the ledger's file when there is none. It appears under its name
// whole, so that an empty or half-made file is always damage and never taken
// for a new ledger.
func (l *Ledger) create() error {
	if _, err := os.Lstat(l.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(l.path)
	if err := makeFolder(dir); err != nil {
		return err
	}
	made, err := os.MkdirTemp(dir, halfMade) // on the same file system
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }() // a sweep gets what stays
	file := filepath.Join(made, "ledger.db")
	if err := fill(file); err != nil {
		return err
	}
	// A link does not take the place of a ledger that another host has made
	// meanwhile.
	if err := os.Link(file, l.path); err != nil {
		if _, there := os.Lstat(l.path); there != nil {
			return err
		}
	}
	l.log.Info("ledger made", "path", l.path)
	return syncFolder(dir)
}

// halfMade begins the names of folders in which a new ledger is made.
const halfMade = ".stead-new-"

// sweep removes what a host left that was killed while it made a ledger. A
// ledger exists and is locked by now, so nobody needs another one.
func (l *Ledger) sweep() {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(l.path), halfMade+"*"))
	for _, d := range left {
		err = errors.Join(err, os.RemoveAll(d))
	}
	if err != nil {
		l.log.Warn("half-made ledger stays", "path", l.path, "error", err)
	}
}

// makeFolder makes the ledger's folder, which nobody else may look into.
func makeFolder(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// fill writes an empty ledger.
func fill(file string) error {
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, b := range allBuckets() {
			if _, err := tx.CreateBucket(b); err != nil {
				return err
			}
		}
		return tx.Bucket(metaBucket).Put(schemaKey, []byte(strconv.Itoa(Schema)))
	})
	return errors.Join(err, db.Close())
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
