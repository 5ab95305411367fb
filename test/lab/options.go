package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// DefaultDir is where the state folders of nodes lie. Only folders and small files are ever seen there.
const DefaultDir = "/var/tmp/stead-lab"

// Options says what machine to boot. The zero value, with a Name, is a node over "/" in a network of its own.
type Options struct {
	// Name finds the node from other processes and is unique in Dir: a DNS label. Start makes it up.
	Name string
	// Hostname is the node's own, a DNS label. Empty: Name.
	Hostname string
	// Root is the root file system that the node's disk begins as; it is never written to. Empty: "/".
	// VersionRoot names others, with systemd 247, 252 and 257, which make lab-roots makes.
	Root string
	// Dir is the folder of the state folders. Empty: DefaultDir.
	Dir string
	// ShareNet leaves the node in this machine's network instead of giving it one of its own.
	ShareNet bool
	// Networks are those that the node is attached to from its first boot on, in the same Dir.
	Networks []*Network
	// Keep lets the node outlive the process that boots it. Without it the node goes with that process, however it ends.
	Keep bool
}

var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// complete fills in the defaults and returns every problem at once.
func (o Options) complete() (Options, error) {
	if o.Hostname == "" {
		o.Hostname = o.Name
	}
	if o.Root == "" {
		o.Root = "/"
	}
	if o.Dir == "" {
		o.Dir = DefaultDir
	}
	var errs []error
	if !label.MatchString(o.Name) {
		errs = append(errs, fmt.Errorf("name %q: want a DNS label: up to 63 of a-z, 0-9 and -", o.Name))
	}
	if o.Hostname != o.Name && !label.MatchString(o.Hostname) {
		errs = append(errs, fmt.Errorf("hostname %q: want a DNS label: up to 63 of a-z, 0-9 and -", o.Hostname))
	}
	if o.ShareNet && len(o.Networks) > 0 {
		errs = append(errs, errors.New("networks: a node that shares this machine's network has none of its own"))
	}
	for what, p := range map[string]string{"root": o.Root, "dir": o.Dir} {
		if !filepath.IsAbs(p) || strings.ContainsAny(p, `:,\`) {
			errs = append(errs, fmt.Errorf("%s %q: want an absolute path without ':', ',' and '\\'", what, p))
		}
	}
	if st, err := os.Stat(o.Root); err != nil {
		errs = append(errs, fmt.Errorf("root %q: %w", o.Root, errors.Unwrap(err)))
	} else if !st.IsDir() {
		errs = append(errs, fmt.Errorf("root %q: not a folder", o.Root))
	}
	return o, errors.Join(errs...)
}
