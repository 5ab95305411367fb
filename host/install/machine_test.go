package install

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"stead/host/unit"
)

const (
	etc = "/etc/systemd/system"
	usr = "/usr/lib/systemd/system"
	lib = "/lib/systemd/system"
	run = "/run/systemd/system"
	loc = "/usr/local/lib/systemd/system"
	gen = "/run/systemd/generator"
)

// debian12 is UnitPath of a system manager of systemd 252 on a merged /usr.
var debian12 = []string{
	"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
	etc, "/etc/systemd/system.attached", run, "/run/systemd/system.attached", gen, loc, lib, usr, "/run/systemd/generator.late",
}

type sort int

const (
	file sort = iota
	link
	folder
)

// thing is what stands at one path.
type thing struct {
	sort sort
	text string // of a file; of a link its target
}

// parseText reads unit files as the manager does that is compared with.
var parseText = unit.ParseFile

// machine is a disk in memory: unit files, drop-ins and links by path. Folders
// above them are understood; /lib is a link to usr/lib.
type machine map[string]thing

// real returns the path with all links resolved, as far as they exist, and
// what stands there.
func (m machine) real(p string) (string, thing, error) {
	todo, done := strings.Split(strings.Trim(p, "/"), "/"), "/"
	for hops := 0; len(todo) > 0; {
		step := todo[0]
		todo = todo[1:]
		next := path.Join(done, step)
		target := m[next].text
		if next == "/lib" {
			target = "usr/lib"
		} else if m[next].sort != link {
			done = next
			continue
		}
		if hops++; hops > 40 {
			return "", thing{}, errors.New("too many links")
		}
		if path.IsAbs(target) {
			done = "/"
		}
		todo = append(strings.Split(strings.Trim(target, "/"), "/"), todo...)
	}
	if t, ok := m[done]; ok {
		return done, t, nil
	}
	if done == "/dev/null" {
		return done, thing{}, nil
	}
	for p := range m {
		if below(p, done) {
			return done, thing{sort: folder}, nil
		}
	}
	return done, thing{}, fs.ErrNotExist
}

// at returns what stands at p itself; its folder may be reached by links.
func (m machine) at(p string) (thing, bool) {
	dir, _, err := m.real(path.Dir(p))
	if err != nil {
		return thing{}, false
	}
	t, ok := m[path.Join(dir, path.Base(p))]
	return t, ok
}

// lookup is a Lookup on m.
func (m machine) lookup(search []string, n unit.Name) (Unit, bool, error) {
	var u Unit
	found := false
	for _, dir := range search {
		p := path.Join(dir, string(n))
		t, ok := m.at(p)
		if !ok {
			continue
		}
		found, u.Path = true, p
		target, end, err := m.real(p)
		if t.sort == link {
			to := t.text
			if !path.IsAbs(to) {
				to = path.Join(dir, to)
			}
			in, _, _ := m.real(path.Dir(to))
			u.Link, u.Target, u.Gone = path.Join(in, path.Base(to)), target, errors.Is(err, fs.ErrNotExist)
		}
		switch {
		case u.Gone:
		case err != nil:
			u.Err = err
		case end.sort == folder:
			u.Err = errors.New("it is a folder")
		case end.text == "":
			u.Masked = true
		}
		u.Text = parseText([]byte(end.text))
		break
	}
	u.DropIns = m.dropIns(search, n)
	return u, found, nil
}

func (m machine) dropIns(search []string, n unit.Name) []DropIn {
	byName := map[string]DropIn{}
	for _, dir := range search {
		at := path.Join(dir, string(n)+".d")
		in, _, err := m.real(at)
		if err != nil {
			continue
		}
		for p := range m {
			base := path.Base(p)
			if _, seen := byName[base]; seen || path.Dir(p) != in || !strings.HasSuffix(base, ".conf") || base[0] == '.' {
				continue
			}
			d := DropIn{Path: path.Join(at, base)}
			_, end, err := m.real(p)
			if d.Err = err; end.sort == folder {
				d.Err = errors.New("it is a folder")
			} else if err == nil {
				d.Text = parseText([]byte(end.text))
			}
			byName[base] = d
		}
	}
	var list []DropIn
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

func (m machine) same(a, b string) bool {
	ra, _, errA := m.real(a)
	rb, _, errB := m.real(b)
	return errA == nil && errB == nil && ra == rb
}

// options are those of a system manager on m.
func (m machine) options() Options {
	o := Options{Search: debian12, Config: etc, Runtime: run, Same: m.same, Version: 252}
	o.Lookup = func(n unit.Name) (Unit, bool, error) { return m.lookup(debian12, n) }
	return o
}

// links returns the links of m below the configuration folder, by path.
func (m machine) links() map[string]string {
	links := map[string]string{}
	for p, t := range m {
		if t.sort == link && below(p, etc) {
			links[p] = t.text
		}
	}
	return links
}

// after returns what links there are when a manager has enabled what r says,
// and whether its call succeeded.
func (m machine) after(r Result, o Options) (map[string]string, bool) {
	now, good := maps.Clone(m), !r.Failed()
	o.Same = now.same
	made := slices.Clone(r.Links)
	slices.SortStableFunc(made, func(a, b Link) int { // the manager's order
		return cmp.Compare(b2i(b.Linked), b2i(a.Linked))
	})
	for _, l := range made {
		there, ok := now.at(l.Path)
		switch {
		case ok && there.sort == link && o.Present(l, there.text):
		case !ok || there.sort == link && (path.Dir(l.Path) != etc || o.is257() && now.broken(l.Path)):
			now[l.Path] = thing{sort: link, text: l.Target}
		default:
			good = false
		}
	}
	return now.links(), good
}

// broken reports whether a link leads nowhere; systemd 257 replaces such ones.
func (m machine) broken(p string) bool {
	_, _, err := m.real(p)
	return errors.Is(err, fs.ErrNotExist)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// write puts m on this machine's disk.
func (m machine) write() error {
	for _, p := range slices.Sorted(maps.Keys(m)) {
		err := os.MkdirAll(filepath.Dir(p), 0o755)
		switch t := m[p]; {
		case err != nil:
		case t.sort == link:
			err = os.Symlink(t.text, p)
		case t.sort == folder:
			err = os.Mkdir(p, 0o755)
		default:
			err = os.WriteFile(p, []byte(t.text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
