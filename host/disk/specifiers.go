package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"stead/host/fault"
	"stead/host/install"
)

// HostSpecifiers reads the facts of this machine that [Install] sections may
// cite, for the system manager. Root is where its files are, "/" but in tests; a
// file that is missing leaves its facts empty.
func HostSpecifiers(root string) (install.Specifiers, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return install.Specifiers{}, fault.New(fault.Failed, "read", "kernel's names", err)
	}
	f := facts{root: root}
	osRelease := f.assignments("etc/os-release")
	if len(osRelease) == 0 {
		osRelease = f.assignments("usr/lib/os-release")
	}
	host := unix.ByteSliceToString(u.Nodename[:])
	s := install.Specifiers{
		Arch:          architecture(unix.ByteSliceToString(u.Machine[:])),
		ImageVersion:  osRelease["IMAGE_VERSION"],
		BootID:        strings.ReplaceAll(f.line("proc/sys/kernel/random/boot_id"), "-", ""),
		BuildID:       osRelease["BUILD_ID"],
		Group:         "root",
		GID:           "0",
		Hostname:      host,
		MachineID:     f.line("etc/machine-id"),
		ImageID:       osRelease["IMAGE_ID"],
		OS:            osRelease["ID"],
		PrettyHost:    f.assignments("etc/machine-info")["PRETTY_HOSTNAME"],
		User:          "root",
		UID:           "0",
		KernelRelease: unix.ByteSliceToString(u.Release[:]),
		OSVersion:     osRelease["VERSION_ID"],
		Variant:       osRelease["VARIANT_ID"],
	}
	if s.PrettyHost == "" {
		s.PrettyHost = host
	}
	return s, errors.Join(f.errs...)
}

// architecture returns systemd's name (systemd.unit(5), ConditionArchitecture=)
// of what uname says.
func architecture(machine string) string {
	switch machine {
	case "x86_64":
		return "x86-64"
	case "aarch64":
		return "arm64"
	case "aarch64_be":
		return "arm64-be"
	case "i386", "i486", "i586", "i686":
		return "x86"
	case "ppc64le":
		return "ppc64-le"
	case "ppcle":
		return "ppc-le"
	}
	if strings.HasPrefix(machine, "armv") {
		if strings.HasSuffix(machine, "b") {
			return "arm-be"
		}
		return "arm"
	}
	return machine // riscv64, s390x, loongarch64, …: as they are
}

// facts reads small files and remembers what could not be read.
type facts struct {
	root string
	errs []error
}

func (f *facts) text(name string) string {
	p := filepath.Join(f.root, name)
	data, err := os.ReadFile(p)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.errs = append(f.errs, fault.New(fault.Failed, "read", p, err))
	}
	return string(data)
}

func (f *facts) line(name string) string {
	first, _, _ := strings.Cut(f.text(name), "\n")
	return strings.TrimSpace(first)
}

// assignments reads a file of KEY=value lines, quoted or not (os-release(5)).
func (f *facts) assignments(name string) map[string]string {
	all := make(map[string]string)
	for line := range strings.Lines(f.text(name)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if found && !strings.HasPrefix(key, "#") {
			all[key] = unquote(value)
		}
	}
	return all
}

func unquote(v string) string {
	if len(v) >= 2 && (v[0] == '"' || v[0] == '\'') && v[len(v)-1] == v[0] {
		single := v[0] == '\''
		if v = v[1 : len(v)-1]; single {
			return v
		}
	}
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		if v[i] == '\\' && i+1 < len(v) {
			i++
		}
		b.WriteByte(v[i])
	}
	return b.String()
}
