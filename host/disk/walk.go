package disk

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mostLinks is how many links are followed on the way to one folder.
const mostLinks = 40

// stranger is the error of a way that somebody else than root can lead elsewhere.
type stranger struct{ link, folder string }

func (s stranger) Error() string {
	return fmt.Sprintf("%s is a link, in the folder %s that others than root can write to", s.link, s.folder)
}

// notFolder is the error of a way on which something else than a folder stands.
type notFolder struct{ at string }

func (n notFolder) Error() string { return n.at + " is no folder" }

// walk returns where the folder p is, or would be, without links. With strict it
// follows none that somebody else than root could have put there: behind the first
// folder that others can write to, a link is a stranger.
func (t tree) walk(p string, strict bool) (string, error) {
	w := &walker{tree: t, strict: strict}
	defer w.close()
	if err := w.begin("/"); err != nil {
		return "", err
	}
	todo := parts(p)
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		target, err := w.step(name)
		switch {
		case errors.Is(err, unix.ENOENT):
			return path.Join(append([]string{w.real, name}, todo...)...), nil
		case err != nil:
			return "", err
		case target == "":
			continue
		}
		if w.links++; w.links > mostLinks {
			return "", unix.ELOOP
		}
		if !path.IsAbs(target) {
			target = w.real + "/" + target
		}
		todo = slices.Concat(parts(target), todo)
		if err := w.begin("/"); err != nil {
			return "", err
		}
	}
	return w.real, nil
}

// parts are the names of a path; a name before .. is left out with it only where
// that was walked through, so .. stays.
func parts(p string) []string {
	return slices.DeleteFunc(strings.Split(p, "/"), func(s string) bool { return s == "" || s == "." })
}

// walker is on its way: fd is the folder real.
type walker struct {
	tree
	strict bool
	fd     int
	real   string
	open   bool
	loose  string // the first folder on the way that others than root can write to; "" for none
	links  int
}

func (w *walker) close() {
	if w.open {
		unix.Close(w.fd)
		w.open = false
	}
}

// begin goes to a folder that is known to be without links.
func (w *walker) begin(real string) error {
	w.close()
	fd, err := w.tree.open("/", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	w.fd, w.open, w.real, w.loose = fd, true, "/", ""
	if err := w.judge(); err != nil {
		return err
	}
	for _, name := range parts(real) {
		if _, err := w.step(name); err != nil {
			return err
		}
	}
	return nil
}

// step goes one name on, or returns what the link of that name leads to.
func (w *walker) step(name string) (target string, err error) {
	if name == ".." {
		return "", w.begin(path.Dir(w.real))
	}
	fd, err := again(func() (int, error) { return unix.Openat(w.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", err
	}
	at := path.Join(w.real, name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return "", err
	}
	switch kind := modeOf(st.Mode); {
	case kind&os.ModeSymlink != 0:
		defer unix.Close(fd)
		if w.strict && w.loose != "" {
			return "", stranger{at, w.loose}
		}
		return readlink(fd)
	case !kind.IsDir():
		unix.Close(fd)
		return "", notFolder{at}
	}
	unix.Close(w.fd)
	w.fd, w.real = fd, at
	return "", w.judge()
}

// judge notes whether others than root, or this process, can write to the folder.
func (w *walker) judge() error {
	var st unix.Stat_t
	if err := unix.Fstat(w.fd, &st); err != nil {
		return err
	}
	if w.loose == "" && (st.Uid != 0 && int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0) {
		w.loose = w.real
	}
	return nil
}

func readlink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err == nil && n == 0 {
		err = unix.ENOENT
	}
	return string(buf[:max(n, 0)]), err
}

// plainly opens an absolute path on which no link may stand.
func (t tree) plainly(p string, flags int) (int, error) {
	root, err := unix.Open(t.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	return again(func() (int, error) { return unix.Openat2(root, p, how) })
}
