package lab

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Path is the path, from outside, of a file in the running node, by way of its PID 1: it holds for this boot only, and shows /run and /tmp.
// An absolute symlink below it is followed on this machine and not in the node, which the methods of Node never do.
func (n *Node) Path(inside string) string {
	return fmt.Sprintf("/proc/%d/root%s", n.PID(), path.Clean("/"+inside))
}

// WriteFile writes a file in the running node, root's, with exactly this mode, and makes the folders on its way. It replaces the content of a
// file that is there, in place.
func (n *Node) WriteFile(inside string, data []byte, mode fs.FileMode) error {
	f, err := n.create(inside, mode)
	if err != nil {
		return n.fault("write", inside, err)
	}
	_, err = f.Write(data)
	return n.fault("write", inside, errors.Join(err, f.Close()))
}

// ReadFile reads a file of the running node.
func (n *Node) ReadFile(inside string) ([]byte, error) {
	f, err := n.open(inside, unix.O_RDONLY, 0)
	if err != nil {
		return nil, n.fault("read", inside, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return b, n.fault("read", inside, err)
}

// Remove removes a file, a symlink (and not what it points to) or a folder with all that is in it. It is no error when there is none.
func (n *Node) Remove(inside string) error {
	parent, err := n.open(path.Dir(path.Clean("/"+inside)), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		defer parent.Close()
		err = os.RemoveAll(fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), path.Base(inside)))
	}
	return n.fault("remove", inside, err)
}

// CopyIn copies a file of this machine, or a folder with all that is in it, into the node, with its modes, as root's. inside names the copy
// itself and not the folder that it goes to.
func (n *Node) CopyIn(outside, inside string) error {
	st, err := os.Stat(outside)
	if err != nil {
		return n.fault("copy to", inside, err)
	}
	if !st.IsDir() {
		return n.fault("copy to", inside, n.copyFile(outside, inside))
	}
	// A symlink that is named stands for what it points to; those below stand for themselves.
	if outside, err = filepath.EvalSymlinks(outside); err != nil {
		return n.fault("copy to", inside, err)
	}
	return filepath.WalkDir(outside, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(outside, p)
		to := path.Join(inside, filepath.ToSlash(rel))
		if err == nil {
			err = n.copyEntry(p, to, d)
		}
		return n.fault("copy to", to, err)
	})
}

func (n *Node) copyEntry(from, to string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		st, err := d.Info()
		if err != nil {
			return err
		}
		return n.mkdirAll(to, st.Mode().Perm())
	case d.Type() == fs.ModeSymlink:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		parent, err := n.open(path.Dir(to), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		defer parent.Close()
		return unix.Symlinkat(target, int(parent.Fd()), path.Base(to))
	}
	return n.copyFile(from, to)
}

func (n *Node) copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%q is neither file, folder nor symlink", from)
	}
	out, err := n.create(to, st.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// CopyOut copies a file of the running node, or a folder with all that is in it, to this machine. outside names the copy itself; its folder
// must be there.
func (n *Node) CopyOut(inside, outside string) error {
	f, err := n.open(inside, unix.O_RDONLY, 0)
	if err != nil {
		return n.fault("copy from", inside, err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return n.fault("copy from", inside, err)
	}
	if st.IsDir() {
		return n.fault("copy from", inside, os.CopyFS(outside, os.DirFS(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))))
	}
	out, err := os.OpenFile(outside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, st.Mode().Perm())
	if err != nil {
		return n.fault("copy from", inside, err)
	}
	_, err = io.Copy(out, f)
	return n.fault("copy from", inside, errors.Join(err, out.Close()))
}

// open resolves the path as the node would, symlinks included (openat2(2), RESOLVE_IN_ROOT), and never leaves it.
func (n *Node) open(inside string, flags uint64, mode fs.FileMode) (*os.File, error) {
	if n.PID() == 0 {
		return nil, fmt.Errorf("the node is off")
	}
	root, err := unix.Open(n.Path("/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, inside, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Mode: uint64(mode.Perm()), Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), inside), nil
}

// create opens a file for writing, with exactly this mode and an empty content, and makes the folders on its way.
func (n *Node) create(inside string, mode fs.FileMode) (*os.File, error) {
	if err := n.mkdirAll(path.Dir(path.Clean("/"+inside)), 0o755); err != nil {
		return nil, err
	}
	f, err := n.open(inside, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, mode)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(mode); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// mkdirAll makes a folder and those above it. One that is there stays as it is.
func (n *Node) mkdirAll(inside string, mode fs.FileMode) error {
	d, err := n.open(inside, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		return d.Close()
	}
	if err != unix.ENOENT {
		return err
	}
	if err := n.mkdirAll(path.Dir(inside), 0o755); err != nil {
		return err
	}
	parent, err := n.open(path.Dir(inside), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer parent.Close()
	made := fmt.Sprintf("/proc/self/fd/%d/%s", parent.Fd(), path.Base(inside))
	if err := os.Mkdir(made, mode); err != nil && !os.IsExist(err) {
		return err
	}
	return os.Chmod(made, mode)
}

// fault says of which file of which node err speaks; nil stays nil.
func (n *Node) fault(doing, inside string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q in lab node %q: %w", doing, inside, n.Name(), err)
}
