package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// programs that a lab needs on the machine itself, each with the Debian package that brings it.
var programs = map[string]string{"bash": "bash", "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount", "sleep": "coreutils", "ip": "iproute2"}

// inside lists what the root file system of a node must hold, each with the Debian package that brings it.
var inside = map[string]string{
	"lib/systemd/systemd": "systemd", "usr/bin/dbus-daemon": "dbus", "sbin/pivot_root": "util-linux", "bin/mount": "mount",
}

// Check says everything that keeps this machine from running lab nodes over root, with the package to install where there is one.
// nil means that Boot can be tried; whether the kernel lets it mount overlays is seen only then.
func Check(root string) error {
	var errs []error
	lacks := func(what, pkg, where string) {
		errs = append(errs, fmt.Errorf("%s is missing%s: apt-get install %s", what, where, pkg))
	}
	if os.Geteuid() != 0 {
		errs = append(errs, fmt.Errorf("user id is %d: lab nodes are made of namespaces and mounts, which takes root", os.Geteuid()))
	}
	for _, p := range sortedKeys(programs) {
		if _, err := exec.LookPath(p); err != nil {
			lacks(p, programs[p], "")
		}
	}
	for _, p := range sortedKeys(inside) {
		if _, err := os.Stat(filepath.Join(root, p)); err != nil {
			lacks("/"+p, inside[p], " below "+root)
		}
	}
	if _, err := cgroupRoot(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
