package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// state is what Dir/NAME/node.json tells other processes of a node, or of a network.
type state struct {
	Name     string    `json:"name"`
	Hostname string    `json:"hostname"`
	Root     string    `json:"root"`
	ShareNet bool      `json:"share_net"`
	Keep     bool      `json:"keep"`
	Group    group     `json:"cgroup"`
	Created  time.Time `json:"created"`
	Boots    int       `json:"boots"`
	Owner    process   `json:"owner"`         // who booted it
	Keeper   process   `json:"keeper"`        // zero while it is being made
	Init     process   `json:"init"`          // PID 1 of the latest boot
	Net      *wiring   `json:"net,omitempty"` // nil: it is a node
}

// folder is the state folder of one node, or network.
type folder string

func (f folder) file(name string) string { return filepath.Join(string(f), name) }

// load reads what is known of the node; fs.ErrNotExist when there is none.
func (f folder) load() (state, error) {
	var s state
	b, err := os.ReadFile(f.file("node.json"))
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("read %q: %w", f.file("node.json"), err)
	}
	return s, nil
}

// save replaces what is known of the node, so that readers never see half of it.
func (f folder) save(s state) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.file("node.json.new"), append(b, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(f.file("node.json.new"), f.file("node.json"))
}

// leftover is whether nobody answers for the node any more: neither a keeper of a kept node nor the process that booted it.
func (s state) leftover() bool {
	if s.Keep && s.Keeper.PID != 0 {
		return !s.Keeper.alive()
	}
	return !s.Owner.alive()
}

// claim makes the state folder, for us alone. What a dead owner left there is cleaned away first; a node that lives is an error.
func (f folder) claim(ctx context.Context, s state) error {
	unlock, err := lock(filepath.Dir(string(f)))
	if err != nil {
		return err
	}
	defer unlock()
	old, err := f.load()
	switch {
	case err == nil && !old.leftover() && old.Keep:
		return fmt.Errorf("there is one already, %s, in %q", old.condition(), f)
	case err == nil && !old.leftover():
		return fmt.Errorf("there is one already, of process %d, which still runs", old.Owner.PID)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		if err := f.destroy(ctx, old); err != nil {
			return fmt.Errorf("clean up what was left of it: %w", err)
		}
	}
	// Half a state folder, without what says whose it is, is nobody's while we hold the lock.
	if err := os.RemoveAll(string(f)); err != nil {
		return err
	}
	if err := os.Mkdir(string(f), 0o700); err != nil {
		return err
	}
	if s.Net != nil {
		if s.Net.Number, err = freeNumber(filepath.Dir(string(f))); err != nil {
			return errors.Join(err, os.Remove(string(f)))
		}
	}
	return f.save(s)
}

// destroy ends the node's processes, with which its mounts and namespaces go, and removes its cgroup and state folder. It may be repeated.
func (f folder) destroy(ctx context.Context, s state) error {
	if err := s.Group.remove(ctx); err != nil {
		return err
	}
	return os.RemoveAll(string(f))
}

// discard destroys the node, and removes the folder of state folders when it was the last. The caller holds the lock.
func (f folder) discard(ctx context.Context, s state) error {
	if err := f.destroy(ctx, s); err != nil {
		return err
	}
	_ = syscall.Rmdir(filepath.Dir(string(f)))
	return nil
}

// lock makes dir and excludes other processes that make or remove nodes in it, until unlock.
func lock(dir string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		d, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last node in it just went
		} else if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX); err != nil {
			d.Close()
			return nil, fmt.Errorf("lock %q: %w", dir, err)
		}
		have, err1 := d.Stat()
		want, err2 := os.Stat(dir)
		if err1 == nil && err2 == nil && os.SameFile(have, want) {
			return func() { d.Close() }, nil
		}
		d.Close()
	}
}
