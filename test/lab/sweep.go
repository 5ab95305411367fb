package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Condition is how a node stands.
type Condition string

const (
	Up       Condition = "up"       // its systemd runs
	Off      Condition = "off"      // it is powered off, its disk is kept
	Making   Condition = "making"   // it has not begun its first boot
	Leftover Condition = "leftover" // nobody answers for it any more; Sweep removes it
)

// Info is what List tells of a node.
type Info struct {
	Name, Hostname, Root string
	Condition            Condition
	PID                  int  // of its PID 1, from outside; 0 unless it is up
	Keep                 bool // it outlives the process that booted it
	Owner                int  // the process that booted it
	Boots                int
	Created              time.Time
}

// List tells of the nodes in dir, by name. dir empty: DefaultDir.
func List(dir string) ([]Info, error) {
	states, err := list(dir)
	var infos []Info
	for _, s := range states {
		if s.Net != nil {
			continue
		}
		i := Info{Name: s.Name, Hostname: s.Hostname, Root: s.Root, Keep: s.Keep, Owner: s.Owner.PID, Boots: s.Boots, Created: s.Created}
		if i.Condition = s.condition(); i.Condition == Up {
			i.PID = s.Init.PID
		}
		infos = append(infos, i)
	}
	return infos, err
}

// Condition is how the node stands.
func (n *Node) Condition() Condition { return n.refresh().condition() }

func (s state) condition() Condition {
	switch {
	case s.leftover():
		return Leftover
	case s.Net != nil && s.Keeper.alive():
		return Up
	case s.Boots == 0:
		return Making
	case s.Init.alive():
		return Up
	}
	return Off
}

func list(dir string) ([]state, error) {
	if dir == "" {
		dir = DefaultDir
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("list lab nodes: %w", err)
	}
	var states []state
	var errs []error
	for _, e := range entries {
		s, err := folder(filepath.Join(dir, e.Name())).load()
		if err == nil {
			states = append(states, s)
		} else if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("list lab nodes: %w", err))
		}
	}
	return states, errors.Join(errs...)
}

// Sweep removes what dead processes left behind, and returns the names of the nodes, and of the networks as net.NAME: those in dir (empty:
// DefaultDir) that nobody answers for, and any, wherever their state was, whose state folder or keeper is gone. It touches none of a process
// that lives, and no kept one.
func Sweep(ctx context.Context, dir string) ([]string, error) {
	if dir == "" {
		dir = DefaultDir
	}
	var swept []string
	var errs []error
	states, err := list(dir)
	errs = append(errs, err)
	for _, s := range states {
		f := folder(filepath.Join(dir, s.Name))
		if gone, err := f.sweep(ctx); err != nil {
			errs = append(errs, fmt.Errorf("sweep lab node %q: %w", s.Name, err))
		} else if gone {
			swept = append(swept, s.Name)
		}
	}
	cgroups, err := cgroupRoot()
	if err != nil {
		return swept, errors.Join(append(errs, err)...)
	}
	groups, _ := filepath.Glob(filepath.Join(cgroups, labGroup, "*", "keeper"))
	for _, k := range groups {
		g := group(filepath.Dir(k))
		if !g.orphaned() {
			continue
		}
		if err := g.remove(ctx); err != nil {
			errs = append(errs, fmt.Errorf("sweep cgroup %q: %w", g, err))
			continue
		}
		name := filepath.Base(string(g))
		swept = append(swept, name[:strings.LastIndexByte(name, '-')])
	}
	slices.Sort(swept)
	return swept, errors.Join(errs...)
}

// sweep destroys the node if, with everybody else locked out, it still is a leftover.
func (f folder) sweep(ctx context.Context) (bool, error) {
	unlock, err := lock(filepath.Dir(string(f)))
	if err != nil {
		return false, err
	}
	defer unlock()
	s, err := f.load()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !s.leftover() {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, f.discard(ctx, s)
}

// stateEnv tells, in a keeper's environment, where the state of its node lies.
const stateEnv = "STEAD_LAB_STATE"

// orphaned is whether no state folder speaks of the group any more.
func (g group) orphaned() bool {
	procs, err := os.ReadFile(filepath.Join(g.keeper(), "cgroup.procs"))
	if err != nil {
		return false
	}
	first, _, _ := strings.Cut(string(procs), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		// No keeper: it is about to be started, or it is gone for good.
		st, err := os.Stat(string(g))
		return err == nil && time.Since(st.ModTime()) > bootTimeout
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if dir, ok := strings.CutPrefix(string(entry), stateEnv+"="); ok {
			// As the keeper sees it, which may have another /tmp than we have.
			s, err := folder(fmt.Sprintf("/proc/%d/root%s", pid, dir)).load()
			return errors.Is(err, fs.ErrNotExist) || err == nil && s.Group != g
		}
	}
	return false
}
