package controller

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"stead/host/fault"
	"stead/mesh/identity"
)

// What a mesh folder holds.
const (
	keysDir    = "keys"       // mesh/identity
	storeDir   = "store"      // JetStream's files
	markerFile = "epoch.json" // the state that this controller saw last (controller/state)
)

// KeysDir is where a mesh folder has the keys of the mesh.
func KeysDir(dir string) string { return filepath.Join(dir, keysDir) }

// lend makes a folder root's when root runs a controller in that of another
// account, as the cures say to do once. What root writes there could not be read by
// that account afterwards. systemd gives a StateDirectory= to the account of its
// unit with all that is in it, but only where the folder itself is somebody else's.
func lend(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fault.New(fault.Failed, "look at mesh folder", dir, err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || os.Geteuid() != 0 || owner.Uid == 0 {
		return nil
	}
	if err := os.Chown(dir, 0, 0); err != nil {
		return fault.New(fault.Failed, "take over mesh folder", dir, err)
	}
	return nil
}

// openKeys opens the keys of the mesh, and makes them where there are none yet.
func openKeys(dir string, now time.Time) (*identity.Mesh, error) {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fault.New(fault.Failed, "make mesh folder", dir, err)
	}
	if err := lend(dir); err != nil {
		return nil, err
	}
	keys, err := identity.Open(KeysDir(dir))
	if !fault.Is(err, fault.NotFound) {
		return keys, err
	}
	// What a mesh wrote without its keys can be read by nobody: other keys would
	// only hide that they are missing.
	for _, name := range []string{storeDir, markerFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return nil, fault.New(fault.NotFound, "open keys", KeysDir(dir), errors.New("the mesh folder has state and no keys")).
				WithHint("put the keys of this mesh back there, or name an empty folder for another mesh")
		}
	}
	return identity.Create(KeysDir(dir), now)
}
