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
	"time"
)

// Node is one lab node, up or off. Boot, Start and Open make them.
type Node struct{ holding }

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
	n := &Node{}
	n.dir = folder(filepath.Join(o.Dir, o.Name))
	n.state = state{
		Name: o.Name, Hostname: o.Hostname, Root: o.Root, ShareNet: o.ShareNet, Keep: o.Keep,
		// A name that was never used before: whoever cleans up an older node of this name cannot mean it.
		Group:   group(filepath.Join(cgroups, labGroup, o.Name+"-"+random(4))),
		Created: time.Now().UTC(), Owner: running(os.Getpid()),
	}
	if err := n.dir.claim(ctx, n.state); err != nil {
		return nil, err
	}
	if err := n.make(ctx, o.Networks); err != nil {
		return nil, errors.Join(err, n.Down(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// make gives the claimed node its cgroups, its keeper and its first boot.
func (n *Node) make(ctx context.Context, networks []*Network) error {
	if err := n.state.Group.create(); err != nil {
		return fmt.Errorf("create cgroups: %w", err)
	}
	for _, point := range []string{"disk", "root"} {
		if err := os.Mkdir(n.dir.file(point), 0o755); err != nil {
			return err
		}
	}
	if err := n.startKeeper(ctx, []string{"--mount", "--propagation", "private"}, "keeper.sh", n.state.Root, n.state.Hostname, random(16)); err != nil {
		return fmt.Errorf("make the disk: %w", err)
	}
	for _, w := range networks {
		if err := w.Attach(ctx, n); err != nil {
			return err
		}
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
	n := &Node{}
	n.dir = folder(filepath.Join(dir, name))
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
	if err := n.down(ctx); err != nil {
		return fmt.Errorf("take down lab node %q: %w", n.Name(), err)
	}
	return nil
}

// Name is what finds the node from other processes.
func (n *Node) Name() string { return n.snapshot().Name }

// Hostname is what the node calls itself.
func (n *Node) Hostname() string { return n.snapshot().Hostname }

// PID is the id, outside, of the node's PID 1; 0 while it is off.
func (n *Node) PID() int {
	s := n.snapshot()
	if !s.Init.alive() {
		s = n.refresh()
	}
	if !s.Init.alive() {
		return 0
	}
	return s.Init.PID
}

// NetNS is the path of the network namespace of a node that is up. Each boot has another.
func (n *Node) NetNS() string { return n.snapshot().netNS() }

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b)
	return hex.EncodeToString(b)
}
