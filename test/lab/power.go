package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// systemd(1), SIGNALS: what PID 1 takes as an order to power off, and to reboot.
const (
	sigPowerOff = syscall.Signal(34 + 4) // SIGRTMIN+4
	sigReboot   = syscall.Signal(34 + 5) // SIGRTMIN+5
)

// PowerOn boots a node that is off: after PowerOff, PowerCut, or a poweroff or reboot that came from inside. It returns when systemd says that
// the boot is over; where that takes longer than ctx allows, the error names the jobs that are still waiting, and the node is up all the same.
func (n *Node) PowerOn(ctx context.Context) error {
	unlock, err := n.exclude(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return n.powerOn(ctx)
}

// PowerOff shuts the node down in good order. Its disk is kept, /run and /tmp are not.
func (n *Node) PowerOff(ctx context.Context) error {
	unlock, err := n.exclude(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return n.shutdown(ctx, sigPowerOff)
}

// Reboot shuts the node down in good order and boots it again. Its disk is kept, /run and /tmp are not.
func (n *Node) Reboot(ctx context.Context) error {
	unlock, err := n.exclude(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.shutdown(ctx, sigReboot); err != nil {
		return err
	}
	return n.powerOn(ctx)
}

// PowerCut kills PID 1 and everything else in the node at one blow; on its networks nobody is told. Its disk is kept, with all that was written and not only what was synced:
// the pages lie in this machine's memory.
func (n *Node) PowerCut(ctx context.Context) error {
	unlock, err := n.exclude(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := n.unplug(ctx); err != nil {
		return err
	}
	return n.settle(ctx)
}

// exclude keeps others, of this process and of all, from switching the node's power until unlock, and takes in what they did to it.
func (n *Node) exclude(ctx context.Context) (unlock func(), err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("get hold of lab node %q: %w", n.Name(), err)
		}
	}()
	d, err := os.Open(string(n.dir))
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if err == syscall.EWOULDBLOCK {
			err = sleep(ctx, 5*time.Millisecond)
		}
		if err != nil {
			d.Close()
			return nil, err
		}
	}
	n.refresh()
	return func() { d.Close() }, nil
}

// WaitOff waits until the node is off, for one that was told so from inside.
func (n *Node) WaitOff(ctx context.Context) error {
	for n.PID() != 0 {
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("wait until lab node %q is off: %w", n.Name(), err)
		}
	}
	return n.unplug(ctx)
}

func (n *Node) shutdown(ctx context.Context, order syscall.Signal) error {
	pid := n.PID()
	if pid == 0 {
		return fmt.Errorf("shut down lab node %q: it is off", n.Name())
	}
	if err := syscall.Kill(pid, order); err != nil {
		return fmt.Errorf("shut down lab node %q: %w", n.Name(), err)
	}
	if err := n.WaitOff(ctx); err != nil {
		return err
	}
	return n.settle(ctx)
}

// settle clears the cgroups of the boot that was: by killing, where something still runs.
func (n *Node) settle(ctx context.Context) error {
	if err := removeCgroup(ctx, n.snapshot().Group.run()); err != nil {
		return fmt.Errorf("switch off lab node %q: %w", n.Name(), err)
	}
	return n.WaitOff(ctx)
}

func (n *Node) powerOn(ctx context.Context) error {
	s := n.snapshot()
	if n.PID() != 0 {
		return fmt.Errorf("switch on lab node %q: it is up", s.Name)
	}
	if !s.Keeper.alive() {
		return fmt.Errorf("switch on lab node %q: its keeper is gone, and the disk with it", s.Name)
	}
	if err := n.settle(ctx); err != nil {
		return err
	}
	if err := mkdir(s.Group.run()); err != nil {
		return err
	}
	if err := n.startInit(ctx, s); err != nil {
		return fmt.Errorf("switch on lab node %q: %w", s.Name, err)
	}
	if err := n.waitUp(ctx); err != nil {
		return fmt.Errorf("switch on lab node %q: %w", s.Name, err)
	}
	return nil
}

// startInit starts PID 1. Its pid, uts and ipc namespaces come with the clone, so that its id here is our child's; the cgroup namespace must
// follow from within the cgroup that is to be its root. Its network namespace is new with each boot, and has all its cables before systemd begins.
func (n *Node) startInit(ctx context.Context, s state) error {
	logs, err := os.OpenFile(n.dir.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logs.Close()
	args := []string{fmt.Sprintf("--mount=/proc/%d/ns/mnt", s.Keeper.PID), "--", "unshare", "--mount", "--cgroup", "--propagation", "private"}
	if !s.ShareNet {
		args = append(args, "--net")
	}
	cmd := exec.Command("nsenter", append(args, "--", "bash", n.dir.file("boot.sh"), n.dir.file("root"))...)
	cmd.Stdout, cmd.Stderr = logs, logs
	plugged, err := cmd.StdinPipe() // boot.sh waits for its end
	if err != nil {
		return err
	}
	defer plugged.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC}
	if err := startIn(s.Group.run(), cmd); err != nil {
		return err
	}
	init := running(cmd.Process.Pid)
	go cmd.Wait() // reaps it, whenever it ends
	if err := n.update(func(s *state) { s.Init, s.Boots = init, s.Boots+1 }); err != nil || s.ShareNet {
		return err
	}
	return n.plug(ctx)
}

// waitUp waits until PID 1 is systemd and says that its start is over.
func (n *Node) waitUp(ctx context.Context) error {
	for {
		pid := n.PID()
		if pid == 0 {
			return fmt.Errorf("PID 1 went away: %s", n.logTail())
		}
		// Before boot.sh has become systemd, its root is still this machine's.
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if string(comm) == "systemd\n" {
			if _, err := os.Stat(n.Path("/run/systemd/private")); err == nil {
				out, err := n.Exec(ctx, "systemctl", "is-system-running", "--wait")
				if word := strings.TrimSpace(out.Stdout); err == nil && (word == "running" || word == "degraded") {
					return nil
				}
			}
		}
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return errors.Join(err, n.pending())
		}
	}
}

// pending says what a boot is still waiting for.
func (n *Node) pending() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := n.Exec(ctx, "systemctl", "list-jobs", "--no-legend", "--no-pager")
	if err != nil {
		return err
	}
	return fmt.Errorf("jobs still waiting: %s; %s", strings.Join(strings.Split(strings.TrimSpace(out.Stdout), "\n"), ", "), n.logTail())
}
