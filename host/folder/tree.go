package folder

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stead/host/shape"
)

// tree is what a walk through the folder saw, without opening any file.
type tree struct {
	s        *Source
	missing  bool
	files    []file
	dirs     []string // absolute, the folder itself first
	bytes    int64
	entries  int
	problems shape.Problems
	moving   shape.Problems // what changed under the walk
	warnings []string
	failed   bool // something could not be looked at: the fingerprint does not cover it
	full     bool // a limit is exceeded: the walk has ended
}

// file is one declaration file.
type file struct {
	path  string // absolute
	shown string
	link  bool
	stamp stamp
}

// stamp changes whenever a file's content does, unless twice within one tick of
// the kernel's clock.
type stamp struct {
	dev, ino uint64
	size     int64
	mtime    unix.Timespec
	ctime    unix.Timespec
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim}
}

// scan walks through the folder. It stops at the limits, with a problem.
func (s *Source) scan(ctx context.Context) *tree {
	t := &tree{s: s}
	var st unix.Stat_t
	switch err := unix.Stat(s.dir, &st); {
	case errors.Is(err, unix.ENOENT):
		t.missing = true
	case err != nil:
		t.unreadable(s.o.Dir, "the folder", err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		t.problem(s.shown(""), "it is "+kindOf(st.Mode)+" and not a folder", "name a folder of declaration files")
	default:
		t.walk(ctx, "", 0)
	}
	slices.SortFunc(t.files, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	slices.SortStableFunc(t.problems, byPlace)
	slices.SortStableFunc(t.moving, byPlace)
	slices.Sort(t.warnings)
	return t
}

func byPlace(a, b shape.Problem) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

func (t *tree) problem(shown, rule, cure string) {
	t.problems = append(t.problems, shape.Problem{File: shown, Rule: rule, Cure: cure})
}

func (t *tree) unreadable(shown, what string, err error) {
	t.failed = true
	t.problem(shown, what+" cannot be read: "+err.Error(), "make it readable, or move it away; until then nothing changes")
}

func (t *tree) settled() bool { return len(t.moving) == 0 }

// walk looks at one folder and those below it.
func (t *tree) walk(ctx context.Context, rel string, depth int) {
	path := filepath.Join(t.s.dir, rel)
	d, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.moved(rel)
		return
	case err != nil:
		t.unreadable(t.s.shown(rel), "the folder", errors.Unwrap(err))
		return
	}
	defer d.Close()
	t.dirs = append(t.dirs, path)
	for !t.full && ctx.Err() == nil {
		entries, err := d.ReadDir(256)
		for _, e := range entries {
			t.entry(ctx, rel, e, depth)
		}
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.unreadable(t.s.shown(rel), "the folder", errors.Unwrap(err))
			return
		}
	}
}

func (t *tree) moved(rel string) {
	t.moving = append(t.moving, shape.Problem{File: t.s.shown(rel), Rule: "it went away while the folder was being read", Cure: "it is read again soon"})
}

func (t *tree) entry(ctx context.Context, rel string, e fs.DirEntry, depth int) {
	if t.entries++; t.entries > MaxEntries && !t.full {
		t.full = true
		t.problem(t.s.shown(""), fmt.Sprintf("there are more than %d names in the folder", MaxEntries), "keep declarations in a folder of their own")
	}
	name := e.Name()
	if t.full || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~") {
		return
	}
	rel = filepath.Join(rel, name)
	declares := strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
	if !declares && !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
		return
	}
	var st unix.Stat_t
	err := unix.Stat(filepath.Join(t.s.dir, rel), &st)
	link, folder := e.Type()&fs.ModeSymlink != 0, err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case folder && link:
		t.warnings = append(t.warnings, t.s.shown(rel)+" is a link to a folder, and is not followed")
	case folder && depth == MaxDepth:
		t.problem(t.s.shown(rel), fmt.Sprintf("the folder lies more than %d folders deep", MaxDepth), "move it up")
	case folder:
		t.walk(ctx, rel, depth+1)
	case declares:
		t.file(rel, link, &st, err)
	}
}

// file takes a declaration file in; err is why st could not be had.
func (t *tree) file(rel string, link bool, st *unix.Stat_t, err error) {
	shown := t.s.shown(rel)
	switch {
	case errors.Is(err, unix.ENOENT) && link:
		t.problem(shown, "it is a link to a file that does not exist", "put the file there, or delete the link")
		t.failed = true
	case errors.Is(err, unix.ENOENT):
		t.moved(rel)
	case err != nil:
		t.unreadable(shown, "the file", err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		t.problem(shown, "it is "+kindOf(st.Mode)+", which is not opened", "declarations stand in regular files: give it another name, or delete it")
	default:
		t.files = append(t.files, file{filepath.Join(t.s.dir, rel), shown, link, stampOf(st)})
		t.bytes += min(st.Size, 1<<50) // so that the sum cannot overflow
		if len(t.files) > MaxFiles {
			t.full = true
			t.problem(t.s.shown(""), fmt.Sprintf("there are more than %d declaration files", MaxFiles), "put several declarations into one file, with --- between them")
		}
	}
}

func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "a file"
	case unix.S_IFDIR:
		return "a folder"
	case unix.S_IFIFO:
		return "a FIFO"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}

// fingerprint is equal for two walks that saw the same.
func (t *tree) fingerprint() string {
	h := sha256.New()
	fmt.Fprintf(h, "%t %d %t %q %q\n", t.missing, t.bytes, t.full, t.problems, t.warnings)
	for _, f := range t.files {
		fmt.Fprintf(h, "%q %v\n", f.path, f.stamp)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// trustworthy reports whether a later walk with the same fingerprint proves that
// nothing changed: not when a file changed so shortly before this one that a
// second change could bear the same time.
func (t *tree) trustworthy(started time.Time) bool {
	const margin = 2 * time.Second
	for _, f := range t.files {
		if started.Sub(time.Unix(f.stamp.ctime.Unix())) < margin {
			return false
		}
	}
	return !t.failed && t.settled()
}
