package disk

import (
	"errors"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"stead/host/install"
	"stead/host/plan"
	"stead/host/unit"
)

// lookup is install's view of the search path.
func (s *search) lookup(n unit.Name) (install.Unit, bool, error) {
	var c confs
	for _, d := range s.live {
		s.conf(&c, d, string(n)+".d")
	}
	var u install.Unit
	for _, p := range c.sorted() {
		text, err := textOf(s.read(p))
		u.DropIns = append(u.DropIns, install.DropIn{Path: p, Text: text, Err: err})
	}
	for _, d := range s.live {
		kind, there := d.kinds[string(n)]
		declared := s.declared(d, string(n))
		if !there && !declared {
			continue
		}
		p := d.path + "/" + string(n)
		t := s.read(p)
		u.Path, u.Masked = p, t.null
		if !u.Masked {
			u.Text, u.Err = textOf(t)
		}
		if kind&fs.ModeSymlink != 0 && !declared {
			u.Link = s.step(p)
			u.Target, u.Gone = s.end(p)
		}
		return u, true, nil
	}
	return u, false, nil
}

// textOf returns what a file says, or why it says nothing.
func textOf(t *thing) (unit.File, error) {
	switch {
	case t.err != nil:
		return unit.File{}, t.err
	case t.entry.Kind == plan.Dir:
		return unit.File{}, errors.New("it is a folder")
	case t.entry.Kind == plan.Absent:
		return unit.File{}, errors.New("it leads nowhere")
	case t.entry.Kind == plan.Other && !t.null:
		return unit.File{}, errors.New("it is no file")
	}
	return t.text, nil
}

// step returns where the link p leads in one step, with the links among its
// folders resolved.
func (s *search) step(p string) string {
	to := s.at(p).entry.Target
	if !path.IsAbs(to) {
		to = path.Join(path.Dir(p), to)
	}
	return path.Join(s.place(path.Dir(to)), path.Base(to))
}

// end returns where the chain of links that begins at p ends, and whether
// nothing is there.
func (s *search) end(p string) (target string, gone bool) {
	if s.drawn != nil {
		p = s.walk(p)
		return p, s.at(p).entry.Kind == plan.Absent && !leadsToNull(p)
	}
	if fd, err := s.tree.open(p, unix.O_PATH); err == nil {
		defer unix.Close(fd)
		if real, err := s.tree.real(fd); err == nil {
			return real, false
		}
	}
	p = s.walk(p)
	return p, !leadsToNull(p)
}

// walk follows the chain of links that begins at p to its end.
func (f *folders) walk(p string) string {
	const most = 40 // as many links as the kernel follows
	for range most {
		t := f.at(p)
		if t.entry.Kind != plan.Link {
			break
		}
		p = f.real(f.dir(path.Dir(p)), t.entry.Target)
	}
	return p
}

// same reports whether two paths lead to one file.
func (s *search) same(a, b string) bool {
	if s.drawn != nil && s.walk(a) == s.walk(b) {
		return s.at(s.walk(a)).entry.Kind != plan.Absent
	}
	var sta, stb unix.Stat_t
	return s.stat(a, &sta) && s.stat(b, &stb) && sta.Dev == stb.Dev && sta.Ino == stb.Ino
}

func (s *search) stat(p string, st *unix.Stat_t) bool {
	fd, err := s.tree.open(p, unix.O_PATH)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Fstat(fd, st) == nil
}
