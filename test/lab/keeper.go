package lab

import (
	"bufio"
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

//go:embed keeper.sh boot.sh net.sh hold.sh
var scripts embed.FS

// holding is what a process holds of a node, or of a network, that lives by a keeper.
type holding struct {
	dir  folder
	tie  int      // writes to the keeper's standard input, and no os.File since garbage collection must not close it; 0 when it is kept
	logs *os.File // nil when another process made it

	mu    sync.Mutex // guards state, and what down closes
	state state
}

// startKeeper starts the script that holds it all, in namespaces that unshare makes by these flags, and returns when it says that all is there.
func (h *holding) startKeeper(ctx context.Context, flags []string, script string, args ...string) error {
	s := h.snapshot()
	if err := h.writeScripts(); err != nil {
		return err
	}
	var err error
	if h.logs, err = os.OpenFile(h.dir.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	life := "tied"
	if s.Keep {
		life = "keep"
	}
	flags = append(flags, "--", "bash", h.dir.file(script), string(h.dir), string(s.Group), ownCgroup(), life)
	cmd := exec.Command("unshare", append(flags, args...)...)
	cmd.Env = append(os.Environ(), stateEnv+"="+string(h.dir))
	cmd.Stderr = h.logs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
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
		cmd.Stdin, h.tie = in, pipe[1]
	}
	if err := startIn(s.Group.keeper(), cmd); err != nil {
		return err
	}
	if err := h.update(func(s *state) { s.Keeper = running(cmd.Process.Pid) }); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	line, _ := bufio.NewReader(ready).ReadString('\n')
	go cmd.Wait() // reaps it, whenever down or its own end comes
	if line != "ready\n" {
		return fmt.Errorf("the keeper went away: %s", h.logTail())
	}
	return nil
}

func (h *holding) writeScripts() error {
	entries, err := scripts.ReadDir(".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		script, err := scripts.ReadFile(e.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(h.dir.file(e.Name()), script, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// down ends the keeper and all that it holds. It may be repeated.
func (h *holding) down(ctx context.Context) error {
	unlock, err := lock(filepath.Dir(string(h.dir)))
	if err != nil {
		return err
	}
	defer unlock()
	// One that another process took down before us may have a successor of the same name, which is none of ours.
	mine := h.snapshot()
	if there, err := h.dir.load(); err == nil && there.Group != mine.Group {
		h.forget()
		return nil
	}
	if err := h.dir.discard(ctx, h.refresh()); err != nil {
		return err
	}
	h.forget()
	return nil
}

// forget closes what this process holds of what is no more.
func (h *holding) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.tie != 0 {
		syscall.Close(h.tie)
		h.tie = 0
	}
	if h.logs != nil {
		h.logs.Close()
		h.logs = nil
	}
}

func (h *holding) snapshot() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// update changes what is known of it, here and for other processes.
func (h *holding) update(change func(*state)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.state)
	return h.dir.save(h.state)
}

// refresh takes in what other processes did to it.
func (h *holding) refresh() state {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s, err := h.dir.load(); err == nil && s.Group == h.state.Group {
		h.state = s
	}
	return h.state
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
func (h *holding) logTail() string {
	b, err := os.ReadFile(h.dir.file("log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
