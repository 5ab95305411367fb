package lab

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Node is one lab node, up or off. Boot, Start and Open make them.
type Node struct {
	dir  folder
	tie  *os.File // the keeper's standard input; nil when the node is kept, or was booted by another process
	logs *os.File // nil when the node was booted by another process

	power sync.Mutex // held while the node is being switched on or off

	mu    sync.Mutex // guards state
	state state
}

// Boot makes a node and returns when it is up, that is, when its systemd says that the boot is over: running, or degraded where a unit failed.
// What a dead process left of the same name is cleaned away first. Nothing stays when it fails.
func Boot(ctx context.Context, o Options) (*Node, error) {
	n, err := boot(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("boot lab node %q: %w", o.Name, err)
	}
	return n, nil
}

func boot(ctx context.Context, o Options) (*Node, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if err := Check(o.Root); err != nil {
		return nil, err
	}
	cgroups, err := cgroupRoot()
	if err != nil {
		return nil, err
	}
	n := &Node{dir: folder(filepath.Join(o.Dir, o.Name))}
	n.state = state{
		Name: o.Name, Hostname: o.Hostname, Root: o.Root, ShareNet: o.ShareNet, Keep: o.Keep,
		// A name that was never used before: whoever cleans up an older node of this name cannot mean it.
		Group:   group(filepath.Join(cgroups, labGroup, o.Name+"-"+random(4))),
		Created: time.Now().UTC(), Owner: running(os.Getpid()),
	}
	if err := n.dir.claim(ctx, n.state); err != nil {
		return nil, err
	}
	if err := n.make(ctx); err != nil {
		return nil, errors.Join(err, n.Down(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// make gives the claimed node its cgroups, its keeper and its first boot.
func (n *Node) make(ctx context.Context) error {
	if err := n.state.Group.create(); err != nil {
		return fmt.Errorf("create cgroups: %w", err)
	}
	if err := n.startKeeper(ctx); err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	return n.PowerOn(ctx)
}

// Open finds a node that another process booted and keeps. dir is where its state lies; empty: DefaultDir.
func Open(dir, name string) (*Node, error) {
	if dir == "" {
		dir = DefaultDir
	}
	if !label.MatchString(name) {
		return nil, fmt.Errorf("open lab node %q: not a node's name", name)
	}
	n := &Node{dir: folder(filepath.Join(dir, name))}
	var err error
	if n.state, err = n.dir.load(); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open lab node %q: there is none in %q: %w", name, dir, fs.ErrNotExist)
	} else if err != nil {
		return nil, fmt.Errorf("open lab node %q: %w", name, err)
	}
	return n, nil
}

// Down takes the node off the earth: processes, mounts, namespaces, cgroups, disk, state folder. It asks nothing inside (PowerOff does), takes
// a few milliseconds, and may be called twice.
func (n *Node) Down(ctx context.Context) error {
	n.power.Lock()
	defer n.power.Unlock()
	unlock, err := lock(filepath.Dir(string(n.dir)))
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.dir.discard(ctx, n.snapshot()); err != nil {
		return fmt.Errorf("take down lab node %q: %w", n.Name(), err)
	}
	for _, f := range []*os.File{n.tie, n.logs} {
		if f != nil {
			f.Close()
		}
	}
	return nil
}

// Name is what finds the node from other processes.
func (n *Node) Name() string { return n.snapshot().Name }

// Hostname is what the node calls itself.
func (n *Node) Hostname() string { return n.snapshot().Hostname }

// PID is the id, outside, of the node's PID 1; 0 while it is off.
func (n *Node) PID() int {
	if s := n.snapshot(); s.Init.alive() {
		return s.Init.PID
	}
	return 0
}

// NetNS is the path of the node's network namespace, which outlives its reboots: where networks between nodes are to be plugged in.
func (n *Node) NetNS() string { return fmt.Sprintf("/proc/%d/ns/net", n.snapshot().Keeper.PID) }

func (n *Node) snapshot() state {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// update changes what is known of the node, here and for other processes.
func (n *Node) update(change func(*state)) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.state)
	return n.dir.save(n.state)
}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}
