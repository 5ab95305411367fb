// Package ledger is the host's durable memory: which declarations it accepted, and
// the index of the mesh that named them, what it wrote and what stood there
// before, and what it owes to a manager. It is one file, and nothing else of stead
// knows its form.
//
// A host opens it once, reads all of it with Load, and from then on only adds to
// it with Commit or Record, each of which is one transaction: it is on the disk,
// whole, when the call returns nil, and not at all when it returns an error. The
// ledger keeps no copy in memory; who commits owns what it committed. Methods
// may be called from several goroutines; commits follow one another.
//
// The file is locked for as long as it is open, so two hosts cannot share one.
// Every value carries a checksum. A damaged file is an error and stays as it is:
// a ledger that began anew would forget what belongs to the user.
package ledger

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"stead/host/fault"
)

// DefaultPath is where a host's ledger lies.
const DefaultPath = "/var/lib/stead/host/ledger.db"

// Options say which ledger to open.
type Options struct {
	Path    string        // default DefaultPath; its folder is made with mode 0700 when it is missing
	Logger  *slog.Logger  // default: nothing is logged
	Timeout time.Duration // how long to wait for another host to let go of the file; default 1 s
}

// Ledger is an open ledger. Close it.
type Ledger struct {
	path    string
	log     *slog.Logger
	timeout time.Duration

	mu   sync.Mutex // guards what follows
	db   *bolt.DB
	file os.FileInfo // of the file that is open
}

// Open opens the ledger, and makes it when there is no file. Errors: Conflict
// when another host has it, Unsupported when a newer stead wrote it (or one that
// is too old), Failed when it is damaged or cannot be read or written.
func Open(o Options) (*Ledger, error) {
	if o.Path == "" {
		o.Path = DefaultPath
	}
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Ledger{path: o.Path, log: o.Logger, timeout: o.Timeout}
	if err := l.create(); err != nil {
		return nil, fault.New(fault.Failed, "make ledger", l.path, err)
	}
	if err := l.open(o.Timeout); err != nil {
		return nil, err
	}
	l.sweep()
	if err := l.guard("open", l.upgrade); err != nil {
		_ = l.Close() // the error of upgrade is the one to tell
		return nil, err
	}
	return l, nil
}

// open opens and locks the file. The file is opened here and not by bbolt so
// that it is closed, and its lock gone, even where bbolt ends in a panic.
func (l *Ledger) open(timeout time.Duration) error {
	var file *os.File
	opened := func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
		if f, err = os.OpenFile(name, flag&^os.O_CREATE, perm); err != nil {
			return nil, err
		}
		file = f
		if st, err := f.Stat(); err == nil && st.Size() == 0 {
			return nil, l.damaged("it is empty") // bbolt would begin a new one
		}
		return f, f.Chmod(0o600)
	}
	o := &bolt.Options{Timeout: timeout, FreelistType: bolt.FreelistMapType, NoStatistics: true, OpenFile: opened}
	var err error
	broken := l.guard("open", func() error {
		l.db, err = bolt.Open(l.path, 0o600, o)
		return nil
	})
	if err == nil && broken == nil {
		l.file, err = file.Stat()
		return err
	}
	if file != nil {
		_ = file.Close() // bbolt has closed it already, unless it panicked
	}
	var call syscall.Errno
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, bolterrors.ErrTimeout):
		return fault.New(fault.Conflict, "open ledger", l.path, errors.New("another host has it open")).
			WithHint("fuser -v " + l.path)
	case errors.As(err, &call):
		return fault.New(fault.Failed, "open ledger", l.path, err)
	case err != nil:
		return l.damaged("%w", err)
	}
	return broken
}

// Close closes the ledger after the commit that is under way, if there is one.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.guard("write", l.here); err != nil {
		l.log.Warn("ledger is not where it was", "error", err)
	}
	if err := l.db.Close(); err != nil {
		return fault.New(fault.Failed, "close ledger", l.path, err)
	}
	return nil
}

// Path returns where the ledger lies.
func (l *Ledger) Path() string { return l.path }

// damaged is the error of a file that holds what no ledger holds.
func (l *Ledger) damaged(format string, args ...any) error {
	return fault.New(fault.Failed, "read ledger", l.path, fmt.Errorf("it is damaged: "+format, args...)).
		WithHint(fmt.Sprintf("put a backup in its place, or move it away and let the host begin anew: mv %[1]s %[1]s.damaged (units are then taken over as they are; withdrawing them no longer restores what stood there before)", l.path))
}
