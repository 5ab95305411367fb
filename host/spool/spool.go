// Package spool is a host's durable queue of events that controllers have not
// acknowledged yet, and its note of what it told last. It is one file, which
// nothing else of stead knows the form of.
//
// Put adds events and notes in one transaction, which is on the disk when it
// returns nil. Next reads from the front and takes nothing away; Done says that
// this was acknowledged. Acknowledged events leave the file with the
// next Put, Sync or Close: a host that is killed before sends them once more,
// under the same ids.
//
// The queue is bounded. What is put beyond the bound takes the place of the
// oldest events that are not being sent at the moment, and an event of kind
// "lost" in their place counts them and says from when to when they were. A file
// that is damaged is moved aside and begun anew, and a lost event says that.
//
// Methods may be called from several goroutines; one of them at a time may be
// reading (Next and Done). Errors are *fault.Error.
package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"stead/host/fault"
	"stead/mesh/wire"
)

// Bound is how many events a spool holds when Options do not say it.
const Bound = 10_000

// schema is the version of the file's form.
const schema = 1

// buckets of the file.
var (
	metaBucket   = []byte("meta")   // "schema" → version, decimal
	eventsBucket = []byte("events") // number, big endian → checksum and record
	toldBucket   = []byte("told")   // name → checksum and bytes

	schemaKey = []byte("schema")
)

// Options say which spool to open.
type Options struct {
	Path   string // its folder is made with mode 0700 when it is missing; required
	Bound  int    // of events; 0 is Bound
	Logger *slog.Logger
}

// Spool is an open spool. Close it.
type Spool struct {
	path  string
	bound int
	log   *slog.Logger

	mu    sync.Mutex // guards what follows
	db    *bolt.DB
	count int    // events in the file that are not done
	done  uint64 // up to here they were acknowledged
	gone  uint64 // up to here those are taken out of the file
	taken uint64 // up to here Next has handed them out
	sent  int    // how many that were, since done
}

// Open opens the spool, and makes it when there is no file. Errors: Conflict
// when another process has it, Failed when it cannot be read or written.
func Open(o Options) (*Spool, error) {
	if o.Bound <= 0 {
		o.Bound = Bound
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Spool{path: o.Path, bound: o.Bound, log: o.Logger}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
		return nil, fault.New(fault.Failed, "make folder", filepath.Dir(s.path), err)
	}
	err := s.open()
	var bad *damage
	if !errors.As(err, &bad) {
		return s, err
	}
	aside := s.path + ".damaged"
	s.log.Error("spool of events is damaged, and begun anew", "path", s.path, "error", bad, "moved", aside)
	if err := os.Rename(s.path, aside); err != nil {
		return nil, fault.New(fault.Failed, "move aside", s.path, err)
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	now := time.Now()
	return s, s.Put([]wire.Event{{ID: fmt.Sprintf("spool.%x", now.UnixNano()), At: now, Source: "host", Kind: Lost,
		Text: "events that were not sent yet were lost: the spool was damaged"}}, nil)
}

// Passing opens a spool that ends with the process, for when there is no place for
// one that stays.
func Passing(log *slog.Logger) (*Spool, error) {
	dir, err := os.MkdirTemp("", "stead-events-")
	if err != nil {
		return nil, fault.New(fault.Failed, "make folder", os.TempDir(), err)
	}
	s, err := Open(Options{Path: filepath.Join(dir, "events.db"), Logger: log})
	// The open file lives on without a name.
	return s, errors.Join(err, os.RemoveAll(dir))
}

// damage is the error of a file that holds what no spool holds.
type damage struct{ cause error }

func (d *damage) Error() string { return "it is damaged: " + d.cause.Error() }

// open opens the file, makes what it lacks, and reads all of it once.
func (s *Spool) open() error {
	o := &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, NoStatistics: true}
	var opened error
	broken := guard(func() error {
		s.db, opened = bolt.Open(s.path, 0o600, o)
		return nil
	})
	var io *os.PathError
	switch {
	case errors.Is(opened, bolterrors.ErrTimeout):
		return fault.New(fault.Conflict, "open spool", s.path, errors.New("another process has it open")).WithHint("fuser -v " + s.path)
	case errors.As(opened, &io):
		return fault.New(fault.Failed, "open spool", s.path, opened)
	case opened != nil:
		return &damage{opened}
	case broken != nil:
		return broken
	}
	if err := guard(s.begin); err != nil {
		_ = s.db.Close() // the error of begin is the one to tell
		return s.fault("open", err)
	}
	return nil
}

func (s *Spool) begin() error {
	return s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{metaBucket, eventsBucket, toldBucket} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		meta := tx.Bucket(metaBucket)
		if found := meta.Get(schemaKey); found != nil && string(found) != strconv.Itoa(schema) {
			return &damage{fmt.Errorf("its schema is %.40q and this stead reads %d", found, schema)}
		}
		return errors.Join(meta.Put(schemaKey, []byte(strconv.Itoa(schema))), s.measure(tx))
	})
}

// measure counts the events and sees that everything can be read.
func (s *Spool) measure(tx *bolt.Tx) error {
	err := tx.Bucket(eventsBucket).ForEach(func(k, v []byte) error {
		if _, err := recordOf(k, v); err != nil || len(k) != 8 {
			return &damage{fmt.Errorf("event %x: %w", k, err)}
		}
		if s.count == 0 {
			s.done = binary.BigEndian.Uint64(k) - 1
			s.gone, s.taken = s.done, s.done
		}
		s.count++
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(toldBucket).ForEach(func(k, v []byte) error {
		if _, err := unseal(k, v); err != nil {
			return &damage{fmt.Errorf("note %.300q: %w", k, err)}
		}
		return nil
	})
}

// Close takes out what was acknowledged and closes the file.
func (s *Spool) Close() error {
	first := s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(first, s.fault("close", s.db.Close()))
}

// guard calls f and turns what it meets in a damaged file into an error: bbolt
// panics over a page that makes no sense, and a file that was cut short faults
// where it is mapped.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &damage{fmt.Errorf("%v", p)}
		}
	}()
	return f()
}

// fault gives an error its class; damage stays damage for Open.
func (s *Spool) fault(op string, err error) error {
	if err == nil {
		return nil
	}
	var bad *damage
	if op == "open" && errors.As(err, &bad) {
		return bad
	}
	return fault.New(fault.Failed, op+" spool", s.path, err)
}
