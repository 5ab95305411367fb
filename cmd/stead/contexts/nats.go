package contexts

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/replace"
	"stead/mesh/subject"
)

// maxNATS is more than a context of the nats command has, in bytes.
const maxNATS = 64 << 10

// NATS is a context of the nats command, by which it is the user of a context of
// ours. Other NATS clients take its parts.
type NATS struct {
	Name  string
	Path  string
	Creds string // the file with what the mesh signed, and the seed
	CA    string // the file with the authority that is believed
	Inbox string
}

// NATS writes a context of that name for the nats command, for the user of c,
// which has a name. What else a person set in it stays. Errors: conflict when
// the nats command has one of that name that is not of c.
func (s *Store) NATS(ctx context.Context, c Context, name string) (NATS, error) {
	if c.Name == "" {
		return NATS{}, fault.New(fault.Invalid, "write nats context", c.Path, errors.New("a file of credentials is no context")).
			WithHint("stead context add " + c.Path)
	}
	n := s.natsOf(c.Name, name)
	n.Inbox = c.Credentials.Inbox()
	if err := subject.CheckLabel("context", name); err != nil {
		return n, err
	}
	return n, locked(ctx, s.config, func() error {
		fields, err := readNATS(n.Path)
		if err == nil && fields != nil && !n.is(fields) {
			err = fault.New(fault.Conflict, "write nats context", name, errors.New("the nats command has a context of that name, and stead did not write it for this one")).
				WithHint("take another name: stead context nats " + c.Name + " --as NAME")
		}
		if err != nil {
			return err
		}
		return n.write(fields, c.Credentials)
	})
}

// natsOf is the nats command's context called name, of ours called own.
func (s *Store) natsOf(own, name string) NATS {
	at := filepath.Join(s.config, "nats", own)
	return NATS{Name: name, Path: filepath.Join(s.nats, name+suffix), Creds: at + ".creds", CA: at + ".pem"}
}

// is whether these are the fields of a context that was written for n.
func (n NATS) is(fields map[string]json.RawMessage) bool {
	var creds string
	return json.Unmarshal(fields["creds"], &creds) == nil && creds == n.Creds
}

// write puts the files there, those first that the context names.
func (n NATS) write(fields map[string]json.RawMessage, c identity.Credentials) error {
	creds, err := c.NATS()
	if err != nil {
		return err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	set := map[string]string{"url": strings.Join(c.URLs, ","), "creds": n.Creds, "ca": n.CA, "inbox_prefix": c.Inbox()}
	if _, said := fields["description"]; !said {
		set["description"] = "stead: " + string(c.Role) + " " + c.Name
	}
	for key, value := range set {
		if fields[key], err = json.Marshal(value); err != nil {
			return fault.New(fault.Internal, "write nats context", n.Name, err)
		}
	}
	text, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return fault.New(fault.Internal, "write nats context", n.Name, err)
	}
	if err := errors.Join(makeFolder(filepath.Dir(n.Creds)), makeFolder(filepath.Dir(n.Path))); err != nil {
		return err
	}
	for _, file := range []struct {
		path string
		text []byte
	}{{n.Creds, creds}, {n.CA, []byte(c.CA)}, {n.Path, append(text, '\n')}} {
		if err := replace.File(file.path, file.text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// renewNATS brings newer credentials of our context to the contexts of the nats
// command that were written for it. The lock is held.
func (s *Store) renewNATS(own string, c identity.Credentials) error {
	return s.eachNATS(own, func(n NATS, fields map[string]json.RawMessage) error { return n.write(fields, c) })
}

// removeNATS takes away what was written for the nats command for our context. The
// lock is held.
func (s *Store) removeNATS(own string) error {
	err := s.eachNATS(own, func(n NATS, _ map[string]json.RawMessage) error { return remove(n.Path) })
	n := s.natsOf(own, own)
	return errors.Join(err, remove(n.Creds), remove(n.CA))
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("remove", path, err)
	}
	return nil
}

// eachNATS calls do with each context of the nats command that was written for
// ours, and its fields.
func (s *Store) eachNATS(own string, do func(NATS, map[string]json.RawMessage) error) error {
	entries, err := os.ReadDir(s.nats)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failed("read nats contexts", s.nats, err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || subject.CheckLabel("context", name) != nil {
			continue // none of ours is called so
		}
		n := s.natsOf(own, name)
		fields, err := readNATS(n.Path)
		if err != nil || !n.is(fields) {
			continue // somebody else's, whatever is the matter with it
		}
		if err := do(n, fields); err != nil {
			return err
		}
	}
	return nil
}

// readNATS reads a context of the nats command; nil when there is none, and no
// fields when it is not one.
func readNATS(path string) (map[string]json.RawMessage, error) {
	text, err := readSome(path, maxNATS)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, failed("read nats context", path, err)
	}
	fields := map[string]json.RawMessage{}
	_ = json.Unmarshal(text, &fields) // what is no context has no fields
	if fields == nil {                // it was null
		fields = map[string]json.RawMessage{}
	}
	return fields, nil
}
