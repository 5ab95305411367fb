package lab

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ip gives orders to ip(8), of iproute2, in a network namespace, one after the other until one fails.
func ip(ctx context.Context, netns string, orders ...string) error {
	cmd := exec.CommandContext(ctx, "nsenter", "--net="+netns, "--", "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(orders, "\n") + "\n")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", orders, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

// Command is a command of this machine, with its files and its environment, to be run on the network, under its address Own. When ctx ends, it
// and its process group are killed. Names of nodes are not known to it: Address is.
func (w *Network) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--net=" + w.snapshot().netNS(), "--"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

// DialContext connects this process to an address of the network, from its address Own, as net.Dialer.DialContext does. address is an IP address
// and a port: names are not looked up.
func (w *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return nil, err
	}
	var c net.Conn
	err := inNetNS(w.snapshot().netNS(), func() (err error) {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
		return err
	})
	return c, err
}

// inNetNS calls do in a network namespace. Sockets that do makes on its own goroutine stay there.
func inNetNS(netns string, do func() error) error {
	done := make(chan error)
	go func() {
		// Never unlocked: the thread goes with the goroutine, and nobody else gets into the namespace by it.
		runtime.LockOSThread()
		done <- func() error {
			f, err := os.Open(netns)
			if err != nil {
				return err
			}
			defer f.Close()
			if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("enter %q: %w", netns, err)
			}
			return do()
		}()
	}()
	return <-done
}
