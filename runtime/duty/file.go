package duty

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"stead/host/fault"
	"stead/mesh/wire"
)

// File is where a runtime keeps what it is to serve: one file of its own, mode
// 0600, replaced in one step.
type File struct{ Path string }

// Read returns what was kept; nil when nothing was. A file that cannot be read
// as one is an error, and no reason not to run.
func (f File) Read() (*wire.Signed, error) {
	text, err := os.ReadFile(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Failed, "read", f.Path, err)
	}
	var kept wire.Signed
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fault.New(fault.Failed, "read", f.Path, err)
	}
	return &kept, nil
}

// Keep puts s in place of what was kept, and returns when it is on disk.
func (f File) Keep(s wire.Signed) (err error) {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(s); err != nil {
		return fault.New(fault.Internal, "write", f.Path, err)
	}
	half, err := os.CreateTemp(filepath.Dir(f.Path), "."+filepath.Base(f.Path)+"-*") // mode 0600
	if err != nil {
		return fault.New(fault.Failed, "write", f.Path, err)
	}
	_, err = half.Write(text.Bytes())
	if err == nil {
		err = half.Sync()
	}
	err = errors.Join(err, half.Close())
	if err == nil {
		err = os.Rename(half.Name(), f.Path)
	}
	if err != nil {
		_ = os.Remove(half.Name()) // it is worth nothing, and the next one has another name
		return fault.New(fault.Failed, "write", f.Path, err)
	}
	return nil
}
