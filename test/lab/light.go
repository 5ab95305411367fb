package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// light switches the cables of the node's networks as its power goes, for a machine that is off neither answers nor refuses; wired is whether it
// has any.
func (n *Node) light(ctx context.Context, power bool) (wired bool, err error) {
	node := n.snapshot()
	if node.ShareNet {
		return false, nil
	}
	err = inLock(filepath.Dir(string(n.dir)), func(_, nets []state) error {
		var errs []error
		for _, net := range nets {
			if i := net.Net.find(node); i >= 0 && net.Keeper.alive() {
				wired = true
				if power {
					errs = append(errs, net.Net.Ports[i].forget(ctx, node))
				}
				errs = append(errs, net.switchPort(ctx, net.Net.Ports[i], power))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return wired, fmt.Errorf("switch the network of lab node %q: %w", n.Name(), err)
	}
	return wired, nil
}

// goSilent takes the node off its networks before its processes are killed, so that the farewells of their connections reach nobody: where a
// machine lost its power, the others are told nothing.
func (n *Node) goSilent(ctx context.Context) error {
	wired, err := n.light(ctx, false)
	if err != nil || !wired {
		return err
	}
	return n.farewells(ctx, 1)
}

// goLoud waits until the kernel has given up on the farewells that are left of the boot before, which a machine with a kernel of its own would
// not remember, and puts the node back on its networks.
func (n *Node) goLoud(ctx context.Context) error {
	wired, err := n.light(ctx, false)
	if err != nil || !wired {
		return err
	}
	for {
		left, err := anyFarewell(n.snapshot().Keeper.PID)
		if err != nil {
			return err
		}
		if !left {
			break
		}
		if err := sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("wait until connections of the boot before are gone: %w", err)
		}
	}
	if err := n.farewells(ctx, 0); err != nil {
		return err
	}
	_, err = n.light(ctx, true)
	return err
}

// farewells says how often a connection that nobody owns any more sends its farewell again; 0 is the kernel's own number, 8 (Linux,
// Documentation/networking/ip-sysctl.rst).
func (n *Node) farewells(ctx context.Context, retries int) error {
	// A /proc of its own, since in a lab node this one cannot be written to.
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+n.NetNS(), "--", "unshare", "--mount", "--", "sh", "-ec",
		fmt.Sprintf("mount -t proc proc /proc; echo %d > /proc/sys/net/ipv4/tcp_orphan_retries", retries))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("set the farewells of lab node %q: %w: %s", n.Name(), err, bytes.TrimSpace(out))
	}
	return nil
}

// anyFarewell is whether a connection in the process's network namespace still wants to tell its other end that it is closed.
func anyFarewell(pid int) (bool, error) {
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
		for line := range strings.Lines(string(b)) {
			// sl local remote ST …: FIN_WAIT1, LAST_ACK, CLOSING (Linux, include/net/tcp_states.h)
			if f := strings.Fields(line); len(f) > 3 && slices.Contains([]string{"04", "09", "0B"}, f[3]) {
				return true, nil
			}
		}
	}
	return false, nil
}
