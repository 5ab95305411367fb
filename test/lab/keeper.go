package lab

import (
	"bufio"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed keeper.sh
var keeperScript []byte

//go:embed boot.sh
var bootScript []byte

// startKeeper starts the process that is the node's hardware and returns when the disk is there.
func (n *Node) startKeeper(ctx context.Context) error {
	s := n.snapshot()
	for name, script := range map[string][]byte{"keeper.sh": keeperScript, "boot.sh": bootScript} {
		if err := os.WriteFile(n.dir.file(name), script, 0o600); err != nil {
			return err
		}
	}
	for _, point := range []string{"disk", "root"} {
		if err := os.Mkdir(n.dir.file(point), 0o755); err != nil {
			return err
		}
	}
	var err error
	if n.logs, err = os.OpenFile(n.dir.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	cmd := n.keeperCommand(s)
	ready, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if !s.Keep {
		var pipe [2]int
		if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
			return err
		}
		in := os.NewFile(uintptr(pipe[0]), "tie")
		defer in.Close()
		cmd.Stdin, n.tie = in, pipe[1]
	}
	if err := startIn(s.Group.keeper(), cmd); err != nil {
		return err
	}
	if err := n.update(func(s *state) { s.Keeper = running(cmd.Process.Pid) }); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	line, _ := bufio.NewReader(ready).ReadString('\n')
	go cmd.Wait() // reaps it, whenever Down or its own end comes
	if line != "ready\n" {
		return fmt.Errorf("the keeper went away: %s", n.logTail())
	}
	return nil
}

func (n *Node) keeperCommand(s state) *exec.Cmd {
	life := "tied"
	if s.Keep {
		life = "keep"
	}
	args := []string{"--mount", "--propagation", "private"}
	if !s.ShareNet {
		args = append(args, "--net")
	}
	args = append(args, "--", "bash", n.dir.file("keeper.sh"), string(n.dir), s.Root, s.Hostname, random(16), string(s.Group), ownCgroup(), life)
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), stateEnv+"="+string(n.dir))
	cmd.Stderr = n.logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// startIn starts cmd as a member of the cgroup from its first instruction on.
func startIn(cgroup string, cmd *exec.Cmd) error {
	d, err := os.Open(cgroup)
	if err != nil {
		return err
	}
	defer d.Close()
	cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(d.Fd())
	return cmd.Start()
}

// ownCgroup is the folder of the cgroup2 group that this process is in.
func ownCgroup() string {
	root, _ := cgroupRoot()
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return filepath.Join(root, strings.TrimSpace(path))
		}
	}
	return root
}

// logTail is the end of what keeper and boots had to say before a journal was there.
func (n *Node) logTail() string {
	b, err := os.ReadFile(n.dir.file("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
