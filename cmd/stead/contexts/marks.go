package contexts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/replace"
	"stead/mesh/wire"
)

const (
	// MaxMarks is how many declarations of a mesh are remembered; those that were
	// seen the longest time ago go first.
	MaxMarks = 10000
	// maxFile is more than a file of MaxMarks marks can have, in bytes.
	maxFile = 4 << 20
	schema  = 1
)

// seen is what stands in a file of marks.
type seen struct {
	Schema int    `json:"schema"`
	Mesh   string `json:"mesh"`
	Epoch  string `json:"epoch"`
	Marks  []mark `json:"marks"` // those seen last stand last
}

type mark struct {
	Name     string    `json:"name"`
	Mark     wire.Mark `json:"mark"`
	Revision uint64    `json:"revision"` // of mesh state when it was seen
}

// Marks are what one user last saw, in one epoch of one mesh.
type Marks struct {
	Epoch string // "" when nothing was seen yet
	Seen  map[string]wire.Mark
}

// word is what a mesh and a role are called; a name was checked with the
// credentials.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]{1,64}$`) })

// marksOf is the file of the user's marks. Invalid: mesh or role are no names,
// and would lead somewhere else.
func (s *Store) marksOf(c identity.Credentials) (string, error) {
	if !word().MatchString(c.Mesh) || !word().MatchString(string(c.Role)) {
		return "", fault.New(fault.Invalid, "remember what was seen", c.Name, fmt.Errorf("%q is no mesh, or %q no role", c.Mesh, c.Role))
	}
	return filepath.Join(s.state, "marks", c.Mesh+"-"+string(c.Role)+"-"+c.Name+suffix), nil
}

// Marks returns what the user of these credentials last saw. A file that cannot
// be read is an error, and whoever goes on without it has seen nothing.
func (s *Store) Marks(c identity.Credentials) (Marks, error) {
	path, err := s.marksOf(c)
	if err != nil {
		return Marks{}, err
	}
	was, err := readMarks(path)
	if err != nil {
		return Marks{}, err
	}
	m := Marks{Epoch: was.Epoch, Seen: make(map[string]wire.Mark, len(was.Marks))}
	for _, one := range was.Marks {
		m.Seen[one.Name] = one.Mark
	}
	return m, nil
}

// Sight is what was seen of a mesh at one revision.
type Sight struct {
	Epoch    string
	Revision uint64
	// Marks are by name of the declaration; "" says that it is not declared.
	Marks map[string]wire.Mark
}

// Remember takes in what was seen. What was seen at a later revision, by a
// command that ended sooner, stays; what was seen in another epoch is forgotten,
// since generations may have gone back with it.
func (s *Store) Remember(ctx context.Context, c identity.Credentials, now Sight) error {
	path, err := s.marksOf(c)
	if err != nil || len(now.Marks) == 0 {
		return err
	}
	return locked(ctx, s.state, func() error {
		was, err := readMarks(path)
		switch {
		case fault.Is(err, fault.Invalid): // damaged: it is written anew
			was = seen{}
		case err != nil:
			return err
		}
		if err := makeFolder(filepath.Dir(path)); err != nil {
			return err
		}
		text, err := json.Marshal(was.with(c.Mesh, now))
		if err != nil {
			return fault.New(fault.Internal, "remember what was seen", path, err)
		}
		return replace.File(path, append(text, '\n'), 0o600)
	})
}

// with is was and what is seen now.
func (s seen) with(mesh string, now Sight) seen {
	next := seen{Schema: schema, Mesh: mesh, Epoch: now.Epoch}
	later := map[string]bool{}
	for _, m := range s.Marks {
		_, again := now.Marks[m.Name]
		switch {
		case s.Epoch != now.Epoch:
		case again && m.Revision > now.Revision:
			later[m.Name] = true
			next.Marks = append(next.Marks, m)
		case !again:
			next.Marks = append(next.Marks, m)
		}
	}
	for _, name := range sorted(now.Marks) {
		if m := now.Marks[name]; m != "" && !later[name] {
			next.Marks = append(next.Marks, mark{name, m, now.Revision})
		}
	}
	next.Marks = next.Marks[max(0, len(next.Marks)-MaxMarks):]
	return next
}

// forget takes the marks of a user away.
func (s *Store) forget(ctx context.Context, c identity.Credentials) error {
	path, err := s.marksOf(c)
	if err != nil {
		return err
	}
	return locked(ctx, s.state, func() error {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failed("forget what was seen", path, err)
		}
		return nil
	})
}

func readMarks(path string) (seen, error) {
	text, err := readSome(path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return seen{}, nil
	case err != nil:
		return seen{}, failed("read what was seen", path, err)
	}
	var s seen
	if err := json.Unmarshal(text, &s); err != nil {
		return seen{}, fault.New(fault.Invalid, "read what was seen", path, err)
	}
	if s.Schema != schema {
		return seen{}, fault.New(fault.Unsupported, "read what was seen", path, fmt.Errorf("schema %d; this version reads %d", s.Schema, schema)).
			WithHint("use the newer stead that wrote it, or delete the file")
	}
	return s, nil
}
