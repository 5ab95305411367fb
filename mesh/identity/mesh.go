package identity

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/mesh/replace"
)

// Mesh is the identity of one mesh: its keys, in one folder. A folder holds
//
//	keys.json      the keys that controllers use
//	operator.seed  the operator's identity; nothing reads it: keep it elsewhere
//	ca.pem         the certificate that clients pin, ten years
//	ca.key.pem     its key
//	server.pem     certificate and key of the NATS server, one year, made anew in time
type Mesh struct {
	dir  string
	keys keys
	ca   authority
}

const (
	keysFile   = "keys.json"
	seedFile   = "operator.seed"
	caFile     = "ca.pem"
	caKeyFile  = "ca.key.pem"
	serverFile = "server.pem"
)

// Create makes a new mesh in dir, which must be missing or empty; its parent
// must exist. It appears whole or not at all, whatever happens meanwhile. A
// folder that holds anything is a conflict.
func Create(dir string, now time.Time) (*Mesh, error) {
	k, identity, err := newKeys(Permissions())
	if err != nil {
		return nil, err
	}
	ca, err := newAuthority(k.Mesh, now)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return nil, fault.New(fault.Internal, "write keys", dir, err)
	}
	files := map[string][]byte{
		keysFile: append(text, '\n'), seedFile: []byte(string(identity) + "\n"), caFile: ca.certificate, caKeyFile: ca.key,
	}
	if err := createFolder(dir, files); err != nil {
		return nil, err
	}
	return Open(dir)
}

// Open reads the mesh in dir. It is not_found when there is none, refused when
// others than its owner may read it, and unsupported when a newer version wrote
// it.
func Open(dir string) (*Mesh, error) {
	m := &Mesh{dir: dir}
	text, err := readOwn(filepath.Join(dir, keysFile))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &m.keys); err != nil {
		return nil, fault.New(fault.Invalid, "read keys", filepath.Join(dir, keysFile), err)
	}
	if err := m.keys.check(); err != nil {
		return nil, err
	}
	certificate, err := readOwn(filepath.Join(dir, caFile))
	if err != nil {
		return nil, err
	}
	key, err := readOwn(filepath.Join(dir, caKeyFile))
	if err != nil {
		return nil, err
	}
	if m.ca, err = readAuthority(certificate, key); err != nil {
		return nil, fault.New(fault.Invalid, "read certificate", filepath.Join(dir, caFile), err)
	}
	return m, nil
}

// ID is the name of the mesh, made with its keys: 26 lower-case letters and
// digits. Two meshes never share one.
func (m *Mesh) ID() string { return m.keys.Mesh }

// DeclarationKey seals declarations and signs indexes.
func (m *Mesh) DeclarationKey() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(m.keys.Declarations)
}

// createFolder puts files below dir in one step: they are written beside it and
// renamed over it, which the kernel allows for a missing or an empty folder.
func createFolder(dir string, files map[string][]byte) error {
	if have, err := os.ReadDir(dir); err == nil && len(have) > 0 {
		return exists(dir)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return fault.New(fault.Failed, "create folder", dir, err)
	}
	defer func() { _ = os.RemoveAll(aside) }()
	for name, text := range files {
		if err := replace.File(filepath.Join(aside, name), text, 0o600); err != nil {
			return err
		}
	}
	// Not os.Rename, which refuses an empty folder too.
	switch err := unix.Rename(aside, dir); {
	case errors.Is(err, fs.ErrExist): // ENOTEMPTY is one
		return exists(dir)
	case err != nil:
		return fault.New(fault.Failed, "create folder", dir, err)
	}
	return replace.Sync(filepath.Dir(dir))
}

func exists(dir string) error {
	return fault.New(fault.Conflict, "create keys", dir, fmt.Errorf("the folder is not empty")).
		WithHint("the keys of a mesh are made once: open the ones that are there, or name another folder")
}
