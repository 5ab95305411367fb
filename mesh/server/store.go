package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stead/host/fault"
)

// markFile lies in the store and says whose it is. It is also what the process
// that owns the store holds locked.
const markFile = "stead-store.json"

// markSchema is the version of the store. A newer one is refused.
const markSchema = 1

// mark is what markFile says.
type mark struct {
	Schema int    `json:"schema"`
	Server string `json:"server"`
	Mesh   string `json:"mesh"` // public key of the account SYS
}

// store is the folder of JetStream's files.
type store struct{ dir, mesh string }

// check looks at the store and changes nothing.
func (s store) check(cluster string) error {
	m, err := s.read()
	if err != nil {
		return err
	}
	clustered, err := filepath.Glob(filepath.Join(s.dir, "jetstream", "*", "_js_", "_meta_"))
	if err != nil {
		return fault.New(fault.Invalid, "open store", s.dir, err)
	}
	switch {
	case cluster != "" && m.Schema != 0:
		return fault.New(fault.Refused, "join cluster", cluster,
			fmt.Errorf("the store %s was written by a server alone, and a server in a cluster would delete its streams", s.dir)).
			WithHint("keep this controller alone, or back up and restore into an existing NATS cluster")
	case cluster != "":
		return fault.New(fault.Unsupported, "join cluster", cluster, errors.New("the embedded NATS server stands alone")).
			WithHint("give the URL of an existing NATS cluster instead")
	case len(clustered) > 0:
		return fault.New(fault.Refused, "open store", s.dir, errors.New("it was written by a NATS server in a cluster")).
			WithHint("name another folder, or restore a backup into this one")
	case m.Schema > markSchema:
		return fault.New(fault.Unsupported, "open store", s.dir, fmt.Errorf("schema %d; this version reads %d", m.Schema, markSchema))
	case m.Schema != 0 && m.Mesh != s.mesh:
		return fault.New(fault.Conflict, "open store", s.dir, errors.New("it belongs to another mesh")).
			WithHint("the keys and the store of a mesh belong together: name the folders that do")
	}
	return nil
}

// read returns the mark, a zero one when there is none.
func (s store) read() (mark, error) {
	path := filepath.Join(s.dir, markFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist), err == nil && len(text) == 0:
		return mark{}, nil
	case err != nil:
		return mark{}, fault.New(fault.Failed, "open store", path, err)
	}
	m := mark{}
	if err := json.Unmarshal(text, &m); err != nil || m.Schema < 1 {
		return mark{}, fault.New(fault.Invalid, "open store", path, fmt.Errorf("not what stead wrote"))
	}
	return m, nil
}

// take makes the store and marks it for server, and holds it until release.
// Another process that holds it is a conflict.
func (s store) take(server string) (release func(), err error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fault.New(fault.Failed, "open store", s.dir, err)
	}
	path := filepath.Join(s.dir, markFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fault.New(fault.Failed, "open store", path, err)
	}
	release = func() { _ = f.Close() } // which ends the lock
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		release()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fault.New(fault.Conflict, "open store", s.dir, errors.New("another process serves it")).
				WithHint("end that first: systemctl stop stead-controller")
		}
		return nil, fault.New(fault.Failed, "lock store", path, err)
	}
	// Looked at again, now that nobody else can change it.
	if err = s.check(""); err == nil {
		err = s.write(f, server)
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// write marks a new store. A write that a crash cut short is a file that is
// empty or does not parse; it is one short line, so the first holds in practice.
func (s store) write(f *os.File, server string) error {
	if end, err := f.Seek(0, io.SeekEnd); err != nil || end > 0 {
		if err != nil {
			return fault.New(fault.Failed, "mark store", f.Name(), err)
		}
		return nil
	}
	text, err := json.Marshal(mark{Schema: markSchema, Server: server, Mesh: s.mesh})
	if err != nil {
		return fault.New(fault.Internal, "mark store", f.Name(), err)
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync()); err != nil {
		return fault.New(fault.Failed, "mark store", f.Name(), err)
	}
	return nil
}
