package folder

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// maxWatches bounds how many folders are watched.
const maxWatches = 1024

// watches are the folders that are watched for a Source. It belongs to the loop.
type watches struct {
	s        *Source
	w        *fsnotify.Watcher
	at       map[string]inode           // what was at each path when its watch began
	narrow   map[string]map[string]bool // folders of which only some names matter
	degraded bool
}

type inode struct{ dev, ino uint64 }

func inodeAt(path string) (inode, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return inode{st.Dev, st.Ino}, err
}

// relevant reports whether e may have to do with the folder.
func (v *watches) relevant(e fsnotify.Event) bool {
	names, narrow := v.narrow[filepath.Dir(e.Name)]
	return !narrow || names[filepath.Base(e.Name)]
}

// sync watches exactly the folders that are there, and the nearest one above
// where the folder is missing. It looks again after adding a watch: a sub-folder
// may have been made before it. It reports whether everything is watched.
func (v *watches) sync(ctx context.Context) bool {
	var err error
	for range 3 {
		var added bool
		added, err = v.adjust(v.wanted(ctx))
		if !added || err != nil {
			break
		}
	}
	switch {
	case err != nil && !v.degraded:
		v.s.o.Logger.Warn("folder cannot be watched as a whole", "folder", v.s.o.Dir, "error", err, "poll", v.s.o.Poll)
	case err == nil && v.degraded:
		v.s.o.Logger.Info("folder is watched again", "folder", v.s.o.Dir)
	}
	v.degraded = err != nil
	return err == nil
}

// wanted returns the folders to watch, whole ones first: of two names for one
// folder the first is the one that events bear.
func (v *watches) wanted(ctx context.Context) []string {
	t := v.s.scan(ctx)
	v.narrow = map[string]map[string]bool{}
	v.above()
	for _, f := range t.files {
		if !f.link {
			continue
		}
		if target, err := filepath.EvalSymlinks(f.path); err == nil {
			v.only(filepath.Dir(target), filepath.Base(target))
		}
	}
	all := t.dirs
	for dir := range v.narrow {
		if slices.Contains(t.dirs, dir) {
			delete(v.narrow, dir)
			continue
		}
		all = append(all, dir)
	}
	return all
}

// above adds the folder that holds the folder, or the nearest one that exists
// above it, and those that hold a link on the way to it.
func (v *watches) above() {
	for p := v.s.dir; p != filepath.Dir(p); p = filepath.Dir(p) {
		if st, err := os.Lstat(p); err == nil && st.Mode()&fs.ModeSymlink != 0 {
			v.only(filepath.Dir(p), filepath.Base(p))
		}
	}
	for child := v.s.dir; child != filepath.Dir(child); child = filepath.Dir(child) {
		parent := filepath.Dir(child)
		v.only(parent, filepath.Base(child))
		if _, err := inodeAt(parent); err == nil {
			return
		}
		delete(v.narrow, parent)
	}
}

func (v *watches) only(dir, name string) {
	if v.narrow[dir] == nil {
		v.narrow[dir] = map[string]bool{}
	}
	v.narrow[dir][name] = true
}

// adjust ends the watches that are not wanted or whose folder was replaced, and
// begins those that are missing. What is not there any more is no error: whoever
// took it away has made an event.
func (v *watches) adjust(want []string) (added bool, err error) {
	if len(want) > maxWatches {
		want, err = want[:maxWatches], errors.New("there are too many sub-folders")
	}
	have := v.w.WatchList()
	for _, path := range have {
		now, gone := inodeAt(path)
		if gone != nil || now != v.at[path] || !slices.Contains(want, path) {
			// It may be gone already, with its folder.
			_ = v.w.Remove(path)
			delete(v.at, path)
		}
	}
	have = v.w.WatchList()
	for _, path := range want {
		if slices.Contains(have, path) {
			continue
		}
		now, gone := inodeAt(path)
		if gone != nil {
			continue
		}
		switch e := v.w.Add(path); {
		case e == nil:
			v.at[path], added = now, true
		case !errors.Is(e, unix.ENOENT):
			err = errors.Join(err, e)
		}
	}
	return added, err
}
