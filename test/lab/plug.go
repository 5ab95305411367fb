package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// plug puts the cables of all networks that the node is attached to into the network namespace of a boot that is about to begin.
func (n *Node) plug(ctx context.Context) error {
	node := n.snapshot()
	if err := node.enteredNetNS(ctx); err != nil {
		return err
	}
	return n.onNetworks(func(net state, p port) error { return net.plugIn(ctx, p, node) })
}

// unplug takes the cables out: a machine that has no power neither answers nor refuses, and the kernel's farewells for connections of processes
// that were killed reach nobody.
func (n *Node) unplug(ctx context.Context) error {
	return n.onNetworks(func(net state, p port) error {
		net.pullOut(ctx, p)
		return nil
	})
}

func (n *Node) onNetworks(do func(net state, p port) error) error {
	node := n.snapshot()
	if node.ShareNet {
		return nil
	}
	return inLock(filepath.Dir(string(n.dir)), func(_, nets []state) error {
		var errs []error
		for _, net := range nets {
			if i := net.Net.find(node); i >= 0 && net.Keeper.alive() {
				errs = append(errs, do(net, net.Net.Ports[i]))
			}
		}
		return errors.Join(errs...)
	})
}

// enteredNetNS waits until PID 1 is in a network namespace of its own.
func (s state) enteredNetNS(ctx context.Context) error {
	ours, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return err
	}
	for {
		its, err := os.Readlink(s.netNS())
		if err != nil || !s.Init.alive() {
			return fmt.Errorf("PID 1 went away: %w", err)
		}
		if its != ours {
			return nil
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("wait until PID 1 has a network namespace: %w", err)
		}
	}
}
