package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	unitDir  = "/etc/systemd/system"
	wantsDir = unitDir + "/multi-user.target.wants"
	folder   = "/srv/declarations"
)

// names are the units of a measurement.
func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("bench-%04d.service", i)
	}
	return out
}

// content is the unit file of each: it runs, and is wanted at boot.
func content(name string) string {
	return "[Unit]\nDescription=Unit " + name + " of a measurement\n\n[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n"
}

// declaration declares a unit.
func declaration(name string) string {
	return "shape: service\nname: " + strings.TrimSuffix(name, ".service") + "\ncontent: |\n  " +
		strings.TrimRight(strings.ReplaceAll(content(name), "\n", "\n  "), " ") + "ensure: running\nenabled: true\n"
}

// declare writes a folder of declarations, one file for each unit.
func declare(dir string, units []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, u := range units {
		if err := os.WriteFile(filepath.Join(dir, u+".yaml"), []byte(declaration(u)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// place writes unit files and links as a bare program does.
func place(units []string) error {
	if err := os.MkdirAll(wantsDir, 0o755); err != nil {
		return err
	}
	for _, u := range units {
		if err := os.WriteFile(filepath.Join(unitDir, u), []byte(content(u)), 0o644); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join(unitDir, u), filepath.Join(wantsDir, u)); err != nil {
			return err
		}
	}
	return nil
}

// running counts the units that have processes, without a word to the manager.
func running() int {
	groups, err := os.ReadDir("/sys/fs/cgroup/system.slice")
	if err != nil {
		return 0
	}
	n := 0
	for _, g := range groups {
		if strings.HasPrefix(g.Name(), "bench-") {
			n++
		}
	}
	return n
}

// monotonic reads the clock that systemd's stamps are of.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail on Linux
	return time.Duration(ts.Nano())
}
