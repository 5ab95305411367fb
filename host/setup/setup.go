// Package setup puts stead's own units on this machine and starts them.
//
// Put writes unit files and the links that start them at boot; it leaves alone
// what a package has installed already. Start reloads the manager, starts units
// and waits until they are ready, which stead's units say themselves
// (Type=notify). Both may be repeated: what is right already is not touched, and
// a unit that runs as it should is not restarted.
//
// It is for the commands that a person runs once on a machine, as root. Nothing
// here is kept right afterwards: upgrades are the package's work.
package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stead/host/fault"
	"stead/host/unit"
	"stead/mesh/replace"
)

// Dir is where the units of this machine's administrator lie.
const Dir = "/etc/systemd/system"

// Unit is one unit to put and start.
type Unit struct {
	Name unit.Name
	Text string // of the unit file
	// DropIns are by file name, and replace what stands under that name; those
	// that are "" are removed.
	DropIns map[string]string
	// Wanted is the target that starts it at boot; "" for none.
	Wanted unit.Name
}

// Put puts u below dir, where it is not found in one of path already: the unit
// files that packages brought. It returns what it wrote. A unit file of another
// text that stood in dir is kept beside it, with ".old" behind its name.
func Put(dir string, path []string, u Unit) (wrote []string, err error) {
	file := installed(dir, path, u.Name)
	if file == "" {
		file = filepath.Join(dir, string(u.Name))
		did, err := put(file, u.Text)
		if err != nil {
			return wrote, err
		}
		wrote = append(wrote, did...)
	}
	for name, text := range u.DropIns {
		did, err := put(filepath.Join(dir, string(u.Name)+".d", name), text)
		if err != nil {
			return wrote, err
		}
		wrote = append(wrote, did...)
	}
	if u.Wanted == "" {
		return wrote, nil
	}
	link := filepath.Join(dir, string(u.Wanted)+".wants", string(u.Name))
	did, err := point(link, file)
	return append(wrote, did...), err
}

// installed is the unit file that a package brought, "" when none did.
func installed(dir string, path []string, name unit.Name) string {
	for _, d := range path {
		file := filepath.Join(d, string(name))
		if d == dir || strings.HasPrefix(d, "/run/") {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			return file
		}
	}
	return ""
}

// put writes text to file, or takes the file away when text is "".
func put(file, text string) ([]string, error) {
	old, err := os.ReadFile(file)
	switch {
	case err == nil && string(old) == text && text != "":
		return nil, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.Failed, "read", file, err)
	case text == "" && err != nil: // it is not there
		return nil, nil //nolint:nilerr // that is what is wanted
	case text == "":
		if err := os.Remove(file); err != nil {
			return nil, fault.New(fault.Failed, "remove", file, err)
		}
		return []string{file}, nil
	}
	if err == nil && filepath.Ext(file) != ".conf" {
		if err := os.Rename(file, file+".old"); err != nil {
			return nil, fault.New(fault.Failed, "keep", file, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, fault.New(fault.Failed, "make folder", filepath.Dir(file), err)
	}
	// systemd passes a half-written file over, by its name.
	if err := replace.File(file, []byte(text), 0o644); err != nil {
		return nil, err
	}
	return []string{file}, nil
}

// point makes a link at path that leads to file.
func point(path, file string) ([]string, error) {
	if to, err := os.Readlink(path); err == nil && to == file {
		return nil, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fault.New(fault.Failed, "make folder", filepath.Dir(path), err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Failed, "replace", path, err)
	}
	if err := os.Symlink(file, path); err != nil {
		return nil, fault.New(fault.Failed, "link", path, err)
	}
	return []string{path}, nil
}
