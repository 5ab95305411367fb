package controller

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"stead/host/fault"
	"stead/mesh/replace"
)

// serversFile says where the NATS servers of the mesh are reached, for whoever
// makes credentials on this machine.
const serversFile = "servers.json"

// writeServers keeps urls in the mesh folder, when they are others than before.
func writeServers(dir string, urls []string) error {
	path := filepath.Join(dir, serversFile)
	text, err := json.Marshal(urls)
	if err != nil {
		return fault.New(fault.Internal, "write", path, err)
	}
	if old, err := os.ReadFile(path); err == nil && string(old) == string(text) {
		return nil
	}
	return replace.File(path, text, 0o600)
}

// Servers are the URLs of the NATS servers of the mesh in folder dir, as its
// controller was last reached. Errors: not_found when no controller ran there
// yet.
func Servers(dir string) ([]string, error) {
	path := filepath.Join(dir, serversFile)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "read", path, errors.New("no controller has run on this folder yet")).
			WithHint("systemctl start stead-controller, or name the address with --url tls://HOST:4222")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Denied, "read", path, fs.ErrPermission).WithHint("only root and the controller may read the mesh folder: use sudo")
	case err != nil:
		return nil, fault.New(fault.Failed, "read", path, err)
	}
	var urls []string
	if err := json.Unmarshal(text, &urls); err != nil {
		return nil, fault.New(fault.Failed, "read", path, err)
	}
	return urls, nil
}
