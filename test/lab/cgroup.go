package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// labGroup is the one cgroup of this machine below which everything of ours happens.
const labGroup = "stead-lab"

// cgroupRoot finds where cgroup2 is mounted: /sys/fs/cgroup, /sys/fs/cgroup/unified on hybrid machines, or elsewhere.
func cgroupRoot() (string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		// ID parent major:minor root MOUNTPOINT options [tags…] - TYPE source super-options
		before, after, _ := strings.Cut(s.Text(), " - ")
		if fields := strings.Fields(before); strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 {
			return fields[4], nil
		}
	}
	return "", errors.New("cgroup2 is not mounted: mount -t cgroup2 cgroup2 /sys/fs/cgroup")
}

// group is the cgroup of one node: "keeper" for its keeper, and "run", the root that the node's own systemd sees, for everything else.
type group string

func (g group) keeper() string { return filepath.Join(string(g), "keeper") }
func (g group) run() string    { return filepath.Join(string(g), "run") }

// create makes the cgroups and hands down every controller that the machine offers. Those it does not (all of them on hybrid machines) the
// node lacks too.
func (g group) create() error {
	for _, dir := range []string{filepath.Dir(string(g)), string(g)} {
		// A sibling's removal may take the shared parent away in between.
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		offered, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
		if err != nil {
			return err
		}
		for _, c := range strings.Fields(string(offered)) {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
		}
	}
	return errors.Join(mkdir(g.keeper()), mkdir(g.run()))
}

func mkdir(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// removeCgroup kills whatever runs in dir or below, waits for it and removes the cgroup. It is no error when there is none.
func removeCgroup(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("kill cgroup %q: this kernel has no cgroup.kill, want Linux 5.14 or newer", dir)
	} else if err != nil {
		return fmt.Errorf("kill cgroup: %w", err)
	}
	for {
		err := rmdirAll(dir)
		if err == nil {
			return nil
		}
		if err := sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("remove cgroup %q: %w", dir, err)
		}
	}
}

// rmdirAll removes the cgroup and those below it, deepest first.
func rmdirAll(dir string) error {
	var dirs []string
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	for i := len(dirs) - 1; i >= 0; i-- {
		if err := syscall.Rmdir(dirs[i]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("rmdir %q: %w", dirs[i], err)
		}
	}
	return nil
}

// remove ends every process of the node and removes its cgroups, the shared parent too when it was the last.
func (g group) remove(ctx context.Context) error {
	if g == "" {
		return nil
	}
	if err := removeCgroup(ctx, string(g)); err != nil {
		return err
	}
	_ = syscall.Rmdir(filepath.Dir(string(g)))
	return nil
}

// sleep waits for d, or returns why ctx ended first.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
