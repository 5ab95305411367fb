package disk

import (
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"stead/host/plan"
)

// folders are the directories that one call looks into, each listed once.
type folders struct {
	tree  tree
	r     *reader
	dirs  map[string]*dir // by the path asked for, and by the real one
	list  []byte          // to list directories with
	none  *thing          // what stands where nothing does
	trace *trace          // of what is looked at; nil when nobody notes it
	drawn drawing         // what is taken to stand there; nil to see the disk as it is
}

func newFolders(d *Disk) *folders {
	return &folders{tree: d.tree, r: &d.reader, dirs: make(map[string]*dir), list: make([]byte, 32<<10),
		none: &thing{entry: plan.Entry{Kind: plan.Absent}}}
}

func (f *folders) close() {
	for _, d := range f.dirs {
		d.close()
	}
}

// dir returns the directory at p. Where the directory above it is listed, that
// listing tells whether it is there.
func (f *folders) dir(p string) *dir {
	if d := f.dirs[p]; d != nil {
		return d
	}
	d := f.find(p)
	f.drawn.into(d)
	f.dirs[p] = d
	if d.there() && f.dirs[d.real] == nil {
		f.dirs[d.real] = d
	}
	// There may be one for every unit, so it is read at once and closed.
	if strings.HasSuffix(p, ".d") {
		for name, kind := range d.kinds {
			if strings.HasSuffix(name, ".conf") {
				f.of(d, name, kind)
			}
		}
		d.close()
	}
	return d
}

func (f *folders) find(p string) *dir {
	in, name := split(p)
	above := f.dirs[in]
	if above == nil || above.fd < 0 {
		return f.tree.openDir(p, f.list)
	}
	kind, ok := above.kinds[name]
	switch {
	case ok && kind.IsDir():
		return above.sub(name, f.list)
	case ok && kind&fs.ModeSymlink != 0:
		return f.tree.openDir(p, f.list)
	}
	return &dir{path: p, real: p, fd: -1}
}

// at returns what stands at p, which is not followed.
func (f *folders) at(p string) *thing {
	t := f.stands(p)
	f.trace.read(p, false, t)
	return t
}

func (f *folders) stands(p string) *thing {
	in, name := split(p)
	d := f.dir(in)
	if d.err != nil {
		t := &thing{}
		t.gone(d.err)
		return t
	}
	kind, ok := d.kinds[name]
	if !ok {
		return f.none
	}
	return f.of(d, name, kind)
}

// split is path.Split for clean absolute paths, quickly.
func split(p string) (dir, name string) {
	i := strings.LastIndexByte(p, '/')
	if i <= 0 {
		return "/", p[i+1:]
	}
	return p[:i], p[i+1:]
}

// of reads an entry of d, once.
func (f *folders) of(d *dir, name string, kind fs.FileMode) *thing {
	if t := d.known[name]; t != nil {
		return t
	}
	fd := d.fd
	if fd < 0 { // closed, and nothing that was thought to matter
		var err error
		if fd, err = f.tree.open(d.path, unix.O_PATH|unix.O_DIRECTORY); err != nil {
			t := &thing{}
			t.gone(err)
			return t
		}
		defer unix.Close(fd)
	}
	t := f.r.at(fd, name, kind)
	if d.known == nil {
		d.known = make(map[string]*thing)
	}
	d.known[name] = t
	return t
}

// through returns what systemd reads at p: links are followed.
func (f *folders) through(p string) *thing {
	t := f.at(p)
	if t.entry.Target == "" || t.null {
		return t
	}
	if f.drawn != nil {
		if t = f.at(f.walk(p)); t.entry.Kind == plan.Link {
			t = &thing{}
			t.gone(unix.ELOOP)
		}
		return t
	}
	t = f.behind(p)
	f.trace.read(p, true, t)
	return t
}

// behind reads what a link leads to.
func (f *folders) behind(p string) *thing {
	behind := &thing{}
	// Nothing is opened before it is known to be a file.
	fd, err := f.tree.open(p, unix.O_PATH)
	if err != nil {
		behind.gone(err)
		return behind
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		behind.gone(err)
		return behind
	}
	kind := modeOf(st.Mode)
	if !kind.IsRegular() {
		return f.r.at(-1, "", kind)
	}
	open, err := again(func() (int, error) { return unix.Open(procPath(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		behind.gone(err)
		return behind
	}
	f.r.file(behind, open)
	unix.Close(open)
	return behind
}

// real returns the path of what the link with that target in the folder of d
// leads to: links on the way are followed, the last part is not, and need not
// be there.
func (f *folders) real(d *dir, target string) string {
	if !path.IsAbs(target) {
		target = d.real + "/" + target
	}
	if up, name := path.Split(path.Clean(target)); up != "/" {
		if fd, err := f.tree.open(up, unix.O_PATH|unix.O_DIRECTORY); err == nil {
			defer unix.Close(fd)
			if r, err := f.tree.real(fd); err == nil {
				return path.Join(r, name)
			}
		}
	}
	return path.Clean(target)
}

// leadsToNull reports whether a link with that target masks a unit.
func leadsToNull(target string) bool { return path.Clean(target) == "/dev/null" }
