package host

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/disk"
	"stead/host/fault"
	"stead/host/journal"
	"stead/host/plan"
	"stead/host/systemd"
	"stead/host/unit"
	"stead/host/verify"
)

// Machine is what a host keeps. Left out of Options it is the one that the process
// runs on, which takes root and systemd as PID 1. Tests hand in others, many to a
// process, which need neither.
type Machine struct {
	// Manager is run by the host, and by nobody else.
	Manager Manager
	// ConfigDir is where unit files and links are written. It is one of the
	// manager's UnitPath.
	ConfigDir string
	Boot      string                               // tells one boot from another
	Clock     func() plan.Clock                    // nil: this machine's, in Boot
	Watcher   Watcher                              // nil: the kernel's
	Adviser   Adviser                              // what systemd wrote
	Tenants   func(TenantOptions) (*Tenant, error) // nil: this machine's logins; nobody where Manager is not systemd's
	Lock      string                               // a file that only one host of the machine holds; "": none
	Facts     Facts
}

// Facts are what a profile says of a machine.
type Facts struct {
	OS     string // PRETTY_NAME of os-release(5)
	Kernel string
	ID     string // of the machine; no other has it
}

// Manager is a service manager, as host/systemd has one.
type Manager interface {
	signaller
	observer
	actor
	// Run keeps the connection to the service manager until ctx ends.
	Run(ctx context.Context) error
}

type signaller interface {
	Wake() <-chan struct{}
	Drain() unit.Changes
	Connected() bool
}

type observer interface {
	Observe(ctx context.Context, names []unit.Name) ([]unit.Status, error)
	Reloads(ctx context.Context, names []unit.Name) ([]time.Duration, error)
	UnitPath(ctx context.Context) ([]string, error)
	Version(ctx context.Context) (string, error)
}

type actor interface {
	Enqueue(ctx context.Context, jobs []unit.JobRequest) []unit.Queued
	Reload(ctx context.Context) (time.Duration, error)
	ResetFailed(ctx context.Context, names []unit.Name) []error
}

// Watcher says which watched paths changed, as disk.Watcher does.
type Watcher interface {
	Set(dirs []string)
	Wake() <-chan struct{}
	Drain() (paths []string, all bool)
	Run(ctx context.Context) error
}

// Adviser reads what systemd wrote about units.
type Adviser interface {
	Lines(ctx context.Context, names []unit.Name) map[unit.Name][]string
	Verify(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string
}

// thisMachine is the one that the process runs on.
func thisMachine(log *slog.Logger) (*Machine, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Denied, "run the host", "", errors.New("only root may write unit files")).
			WithHint("sudo stead host run …, or: systemctl start stead-host")
	}
	if _, err := os.Lstat("/run/systemd/system"); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Unsupported, "run the host", "", errors.New("systemd is not PID 1 on this machine")).
			WithHint("stead keeps units of systemd; boot the machine, or the container, with systemd as its init")
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	manager, err := systemd.New(systemd.Options{Scope: unit.System, Logger: log})
	if err != nil {
		return nil, err
	}
	return &Machine{Manager: manager, ConfigDir: configDir, Boot: boot, Adviser: adviser{journal.Reader{Scope: unit.System}},
		Lock: lockPath, Facts: facts()}, nil
}

// watcher is the machine's.
func (m *Machine) watcher(log *slog.Logger) (Watcher, error) {
	if m.Watcher != nil {
		return m.Watcher, nil
	}
	return disk.NewWatcher(disk.WatcherOptions{Logger: log})
}

// clock is the machine's.
func (m *Machine) clock() func() plan.Clock {
	if m.Clock != nil {
		return m.Clock
	}
	return clock(m.Boot)
}

// adviser joins the two readers of what systemd wrote.
type adviser struct{ journal.Reader }

// Verify implements Adviser.
func (adviser) Verify(ctx context.Context, files map[unit.Name]string) map[unit.Name][]string {
	return verify.Run(ctx, files)
}

// facts reads those of this machine; what cannot be read is left out.
func facts() Facts {
	var f Facts
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	for _, p := range []string{"/etc/os-release", "/usr/lib/os-release"} { // os-release(5)
		if data, err := os.ReadFile(p); err == nil {
			f.OS = prettyName(string(data))
			break
		}
	}
	if data, err := os.ReadFile("/etc/machine-id"); err == nil {
		f.ID = strings.TrimSpace(string(data))
	}
	return f
}

// prettyName reads PRETTY_NAME, the last one where there are more.
func prettyName(text string) string {
	name := ""
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if value, is := strings.CutPrefix(strings.TrimSpace(lines.Text()), "PRETTY_NAME="); is {
			name = unquote(value)
		}
	}
	return name
}

// unquote reads a value as a shell would, as far as os-release(5) has it.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\"`, `"`, `\$`, `$`, "\\`", "`", `\\`, `\`).Replace(s)
}
