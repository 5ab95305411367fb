// Package contexts keeps on disk what a person's commands go by: in which mesh,
// as whom, and what was last seen there.
//
// A context is a file of credentials under a name (mesh/identity, mode 0600); one
// of them is the current one. What was seen are marks: in which state this person
// last saw each declaration of a mesh, so that an apply can be held against it.
// They are kept by mesh, role and name of the credentials, and not by the name of
// the context: a context that is renamed or made again has seen what it saw.
//
// For the nats command, and other clients of NATS, the same can be written in the
// form that they read; it goes with the context.
//
// Use: Places says where the files of this user lie, New opens them, Find gives
// the context that a command line asks for, Marks and Remember are for what was
// seen, NATS is for the nats command. Every file is replaced in one step, and whoever reads, changes and writes
// holds a lock between processes; all methods may be called from any goroutine.
// Errors are *fault.Error, with the cure where there is one.
package contexts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/fault"
	"stead/mesh/identity"
	"stead/mesh/replace"
	"stead/mesh/subject"
)

const (
	suffix  = ".json"
	current = "current" // the file that names the current context
)

// Options say where the files lie. The folders are made when something is put
// there, for their owner alone.
type Options struct {
	Config string // contexts
	State  string // marks
	NATS   string // contexts of the nats command
}

// Places are the folders of the user whose environment env is, after the rules of
// the XDG base directories: a path there that is not absolute counts for nothing.
func Places(env func(string) string) (Options, error) {
	at := func(variable, below, name string) string {
		if dir := env(variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, name)
		}
		if home := env("HOME"); filepath.IsAbs(home) {
			return filepath.Join(home, below, name)
		}
		return ""
	}
	o := Options{
		Config: at("XDG_CONFIG_HOME", ".config", "stead"), State: at("XDG_STATE_HOME", ".local/state", "stead"),
		NATS: at("XDG_CONFIG_HOME", ".config", "nats/context"),
	}
	if o.Config == "" || o.State == "" {
		return o, fault.New(fault.Failed, "find contexts", "", errors.New("it is not known where this user's files lie: HOME is not set")).
			WithHint("HOME=/root stead …, or set XDG_CONFIG_HOME and XDG_STATE_HOME")
	}
	return o, nil
}

// Store is the contexts and marks of one user.
type Store struct{ config, state, nats string }

// New returns a Store and touches nothing.
func New(o Options) (*Store, error) {
	if o.Config == "" || o.State == "" || o.NATS == "" {
		return nil, fault.New(fault.Invalid, "open contexts", "", errors.New("three folders are wanted"))
	}
	return &Store{config: o.Config, state: o.State, nats: o.NATS}, nil
}

// Context is one context.
type Context struct {
	Name        string // "" when it was given as a file
	Path        string // of its credentials
	Current     bool
	Credentials identity.Credentials
	Err         error // why Credentials cannot be used; of List alone
}

func (s *Store) folder() string { return filepath.Join(s.config, "contexts") }

func (s *Store) path(name string) string { return filepath.Join(s.folder(), name+suffix) }

// List returns all contexts, sorted by name, those that cannot be read too.
func (s *Store) List() ([]Context, error) {
	entries, err := os.ReadDir(s.folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed("read contexts", s.folder(), err)
	}
	chosen, err := s.Current()
	if err != nil {
		return nil, err
	}
	var all []Context
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || subject.CheckLabel("context", name) != nil {
			continue // of an editor, or a file that is being written
		}
		c := Context{Name: name, Path: s.path(name), Current: name == chosen}
		c.Credentials, c.Err = identity.ReadCredentials(c.Path)
		all = append(all, c)
	}
	return all, nil
}

// Current is the name of the current context, "" when none was chosen.
func (s *Store) Current() (string, error) {
	path := filepath.Join(s.config, current)
	text, err := readSome(path, 1024)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", failed("read the current context", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Find returns the context that asked names: a file of credentials when there is
// a "/" in it, a context by its name, and the current one when it is "". Errors:
// not_found, with what there is; those of identity.ReadCredentials.
func (s *Store) Find(asked string) (Context, error) {
	if strings.Contains(asked, "/") {
		c := Context{Path: asked}
		var err error
		c.Credentials, err = Read(asked)
		return c, err
	}
	chosen, err := s.Current()
	if err != nil {
		return Context{}, err
	}
	name := asked
	if name == "" {
		name = chosen
	}
	if name == "" {
		return Context{}, s.unknown("", "no context is chosen")
	}
	if err := subject.CheckLabel("context", name); err != nil {
		return Context{}, err
	}
	c := Context{Name: name, Path: s.path(name), Current: name == chosen}
	c.Credentials, err = identity.ReadCredentials(c.Path)
	switch {
	case fault.Is(err, fault.NotFound) && asked == "":
		return c, s.unknown(name, "it is the current context, and its file is gone")
	case fault.Is(err, fault.NotFound):
		return c, s.unknown(name, "there is no context of that name")
	}
	return c, err
}

// Read reads a file of credentials that somebody named; where there is none, the
// error says where they come from.
func Read(file string) (identity.Credentials, error) {
	c, err := identity.ReadCredentials(file)
	if fault.Is(err, fault.NotFound) {
		return c, fault.New(fault.NotFound, "read credentials", file, errors.New("there is no such file")).
			WithHint("credentials are made where a controller runs: stead credentials operator NAME")
	}
	return c, err
}

// unknown is the error of a context that there is not, with those that there are.
func (s *Store) unknown(name, why string) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	f := fault.New(fault.NotFound, "find context", name, errors.New(why))
	switch {
	case len(names) == 0:
		return f.WithHint("stead context add NAME FILE, with a file of credentials of the mesh")
	case name == "":
		return f.WithHint("stead context use " + names[0] + chooseFrom(names))
	}
	return f.WithHint("stead context use NAME: there is " + strings.Join(names[:min(len(names), 8)], ", "))
}

func chooseFrom(names []string) string {
	if len(names) == 1 {
		return ""
	}
	return "; there is " + strings.Join(names[:min(len(names), 8)], ", ")
}

// Add puts credentials under a name; the first context becomes the current one.
// The same user's newer credentials take the place of older ones. Errors: conflict
// when the name is another user's, or another mesh's.
func (s *Store) Add(ctx context.Context, name string, c identity.Credentials) (Context, error) {
	added := Context{Name: name, Path: s.path(name), Credentials: c}
	if err := subject.CheckLabel("context", name); err != nil {
		return added, err
	}
	return added, locked(ctx, s.config, func() error {
		if err := makeFolder(s.folder()); err != nil {
			return err
		}
		old, err := identity.ReadCredentials(added.Path)
		switch {
		case err == nil && (old.Mesh != c.Mesh || old.Role != c.Role || old.Name != c.Name):
			return fault.New(fault.Conflict, "add context", name, fmt.Errorf("it is that of %s %s in mesh %s", old.Role, old.Name, old.Mesh)).
				WithHint("stead context remove " + name + ", or take another name")
		case err != nil && !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Invalid):
			return err
		}
		if err := identity.WriteCredentials(added.Path, c); err != nil {
			return err
		}
		if err := s.renewNATS(name, c); err != nil {
			return err
		}
		chosen, err := s.Current()
		if err != nil {
			return err
		}
		if chosen != "" {
			if _, err := os.Lstat(s.path(chosen)); err == nil {
				added.Current = chosen == name
				return nil
			}
		}
		added.Current = true
		return s.choose(name)
	})
}

func (s *Store) choose(name string) error {
	return replace.File(filepath.Join(s.config, current), []byte(name+"\n"), 0o600)
}

// Use makes a context the current one.
func (s *Store) Use(ctx context.Context, name string) (Context, error) {
	c, err := s.Find(name)
	if err != nil {
		return c, err
	}
	c.Current = true
	return c, locked(ctx, s.config, func() error { return s.choose(name) })
}

// Remove takes a context away, with what was written of it for the nats command,
// and what was seen through it when it was the last one of its user.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := subject.CheckLabel("context", name); err != nil {
		return err
	}
	return locked(ctx, s.config, func() error {
		gone, unreadable := identity.ReadCredentials(s.path(name))
		if err := s.removeNATS(name); err != nil {
			return err
		}
		switch err := os.Remove(s.path(name)); {
		case errors.Is(err, fs.ErrNotExist):
			return s.unknown(name, "there is no context of that name")
		case err != nil:
			return failed("remove context", name, err)
		}
		if chosen, err := s.Current(); err != nil {
			return err
		} else if chosen == name {
			if err := os.Remove(filepath.Join(s.config, current)); err != nil {
				return failed("remove context", name, err)
			}
		}
		rest, err := s.List()
		if err != nil || unreadable != nil || slices.ContainsFunc(rest, func(c Context) bool { return sameUser(c.Credentials, gone) }) {
			return err
		}
		return s.forget(ctx, gone)
	})
}

func sameUser(a, b identity.Credentials) bool {
	return a.Mesh == b.Mesh && a.Role == b.Role && a.Name == b.Name
}
