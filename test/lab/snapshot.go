package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the list of what is left out
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

//go:embed excluded
var excluded string

// Exclusion is a path that a comparison leaves out, with all below it.
type Exclusion struct{ Path, Reason string }

// Exclusions are what comparisons of snapshots leave out: the file excluded in this folder, the only place where something can be.
func Exclusions() []Exclusion {
	var all []Exclusion
	for line := range strings.Lines(excluded) {
		path, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if path != "" && path != "#" {
			all = append(all, Exclusion{path, strings.TrimSpace(reason)})
		}
	}
	return all
}

// Snapshot is what a node is like at one moment, looked at from outside.
type Snapshot struct {
	// Disk describes, by path, everything that is another on the node's disk than below Root: kind, mode, owner, content. Times and extended
	// attributes are not in it, nor what lies below /run, /tmp, /dev, /proc and /sys, which are no part of the disk.
	Disk map[string]string
	// Files is the enablement of each unit file, Units the states of each unit in the manager's memory, both as systemctl lists them.
	Files, Units map[string]string

	root string
}

// Snapshot looks at a node that is up.
func (n *Node) Snapshot(ctx context.Context) (Snapshot, error) {
	s := Snapshot{Disk: map[string]string{}, root: n.snapshot().Root}
	err := filepath.WalkDir(n.Upper(), func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(p, n.Upper())
		is, err := described(p)
		if err != nil {
			return err
		}
		// A folder that was copied up because something in it is new is no difference by itself, nor is a file that is what it was.
		if s.lower(rel) != is {
			s.Disk[cmp.Or(rel, "/")] = is
		} else if n, err := unix.Lgetxattr(p, "trusted.overlay.opaque", nil); err == nil && n > 0 {
			s.Disk[rel] = is + ", made anew" // nothing of the lower one's shows through
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("look at the disk of lab node %q: %w", n.Name(), err)
	}
	if s.Files, err = n.listing(ctx, 1, "list-unit-files"); err != nil {
		return s, err
	}
	s.Units, err = n.listing(ctx, 3, "list-units", "--all")
	return s, err
}

// listing is a table of systemctl's: the first column, and the next few as one text.
func (n *Node) listing(ctx context.Context, columns int, args ...string) (map[string]string, error) {
	out, err := n.Exec(ctx, append([]string{"systemctl", "--no-legend", "--no-pager", "--plain", "--full"}, args...)...)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("systemctl %q in lab node %q: exit status %d: %s", args, n.Name(), out.Code, out.Stderr)
	}
	all := map[string]string{}
	for line := range strings.Lines(out.Stdout) {
		if f := strings.Fields(line); len(f) > columns {
			all[f[0]] = strings.Join(f[1:1+columns], " ")
		}
	}
	return all, err
}

// described says all of one entry of a disk that a comparison looks at.
func described(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return "", err
	}
	owner := fmt.Sprintf("%04o %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "folder " + owner, nil
	case unix.S_IFLNK:
		to, err := os.Readlink(path)
		return fmt.Sprintf("link to %s", to), err
	case unix.S_IFREG:
		data, err := os.ReadFile(path)
		return fmt.Sprintf("file %s, %d bytes, sha256 %x", owner, len(data), sha256.Sum256(data)), err
	case unix.S_IFCHR:
		if st.Rdev == 0 {
			return gone, nil // overlayfs's mark of what was deleted
		}
	}
	return fmt.Sprintf("mode %o %d:%d device %d", st.Mode, st.Uid, st.Gid, st.Rdev), nil
}

// lower says what the root file system holds at path.
func (s Snapshot) lower(path string) string {
	is, err := described(filepath.Join(s.root, path))
	if err != nil {
		return gone
	}
	return is
}

// gone is the description of a path at which there is nothing.
const gone = "not there"

// Diff says everything in which later differs from s, sorted, but for Exclusions; none is nil.
func (s Snapshot) Diff(later Snapshot) []string {
	var out []string
	paths := maps.Clone(s.Disk)
	maps.Copy(paths, later.Disk)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !leftOut(path) {
			out = differing(out, path, cmp.Or(s.Disk[path], s.lower(path)), cmp.Or(later.Disk[path], later.lower(path)))
		}
	}
	for _, list := range []struct {
		what          string
		before, after map[string]string
	}{{"unit file ", s.Files, later.Files}, {"unit ", s.Units, later.Units}} {
		names := maps.Clone(list.before)
		maps.Copy(names, list.after)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			out = differing(out, list.what+name, cmp.Or(list.before[name], gone), cmp.Or(list.after[name], gone))
		}
	}
	return out
}

func differing(out []string, what, was, is string) []string {
	if was == is {
		return out
	}
	return append(out, fmt.Sprintf("%s: it was %s, and is %s", what, was, is))
}

func leftOut(path string) bool {
	return slices.ContainsFunc(Exclusions(), func(e Exclusion) bool { return path == e.Path || strings.HasPrefix(path, e.Path+"/") })
}
