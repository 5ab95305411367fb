package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"stead/host/fault"
	"stead/mesh/replace"
	"stead/mesh/wire"
)

// kept is the file in which a runtime keeps what it is to serve.
type kept struct{ path string }

// read returns what was kept; nil when nothing was. A file that cannot be read
// as one is an error, and no reason not to run.
func (k kept) read() (*wire.Signed, error) {
	text, err := os.ReadFile(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fault.New(fault.Failed, "read", k.path, err)
	}
	var s wire.Signed
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fault.New(fault.Failed, "read", k.path, err)
	}
	return &s, nil
}

// keep puts s in place of what was kept, and returns when it is on disk.
func (k kept) keep(s wire.Signed) error {
	var text bytes.Buffer
	if err := json.NewEncoder(&text).Encode(s); err != nil {
		return fault.New(fault.Internal, "write", k.path, err)
	}
	return replace.File(k.path, text.Bytes(), 0o600)
}
