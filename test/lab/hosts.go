package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The lines of /etc/hosts that are the lab's stand between these.
const (
	hostsBegin = "# the nodes of lab networks\n"
	hostsEnd   = "# end of the nodes of lab networks\n"
)

// rewriteHosts brings /etc/hosts of all nodes up to date. The caller holds the lock.
func (w *Network) rewriteHosts() error {
	nodes, nets, err := both(w.place())
	if err != nil {
		return err
	}
	return writeHosts(w.place(), nodes, nets)
}

// writeHosts gives each node the names of all that are attached to its networks, itself among them, before all other names that it knows.
func writeHosts(dir string, nodes, nets []state) error {
	var errs []error
	for _, node := range nodes {
		if !node.Keeper.alive() || node.ShareNet {
			continue
		}
		var lines string
		for _, net := range nets {
			if net.Net.find(node) < 0 {
				continue
			}
			for _, p := range net.Net.Ports {
				lines += fmt.Sprintf("%s\t%s\n", net.Net.address(p.Host), p.Hostname)
			}
		}
		disk := fmt.Sprintf("/proc/%d/root%s/%s/root", node.Keeper.PID, dir, node.Name)
		if err := replaceHosts(disk, lines); err != nil && node.Keeper.alive() {
			errs = append(errs, fmt.Errorf("write /etc/hosts of lab node %q: %w", node.Name, err))
		}
	}
	return errors.Join(errs...)
}

// replaceHosts puts lines in the place of the lab's earlier ones, in one step, and follows no symlink of the disk's out of it.
func replaceHosts(disk, lines string) error {
	root, err := unix.Open(disk, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	open := func(at int, path string, flags uint64) (*os.File, error) {
		fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT,
			Mode: map[bool]uint64{true: 0o644}[flags&unix.O_CREAT != 0]})
		if err != nil {
			return nil, err
		}
		return os.NewFile(uintptr(fd), path), nil
	}
	var was []byte
	if f, err := open(root, "etc/hosts", unix.O_RDONLY); err == nil {
		was, err = io.ReadAll(f)
		f.Close()
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	is := hostsWith(string(was), lines)
	if is == string(was) {
		return nil
	}
	etc, err := open(root, "etc", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer etc.Close()
	f, err := open(int(etc.Fd()), ".hosts.lab", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteString(is)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return unix.Renameat(int(etc.Fd()), ".hosts.lab", int(etc.Fd()), "hosts")
}

// hostsWith is a hosts file with other lines of the lab's; with none of them, nothing shows that there ever were any.
func hostsWith(was, lines string) string {
	rest := was
	if before, after, ok := strings.Cut(was, hostsBegin); ok {
		_, after, _ = strings.Cut(after, hostsEnd)
		rest = before + after
	}
	if lines == "" {
		return rest
	}
	return hostsBegin + lines + hostsEnd + rest
}
