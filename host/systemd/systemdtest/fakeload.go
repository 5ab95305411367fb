package systemdtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stead/host/unit"
)

// loaded is a unit that the fake has in memory.
type loaded struct {
	name   unit.Name
	def    definition
	active unit.ActiveState
	sub    string
	job    *job

	invocation       string
	pid              uint32
	started, changed time.Duration
	since            time.Time // of its active state
	restarts         uint32
	reloaded         time.Duration // when its last reload that succeeded began
	result           string
	last             exit
	unmet            []unit.Condition

	process *time.Timer // the end of its process
	timeout *time.Timer // of its start
	restart *time.Timer // of its automatic restart
}

func (u *loaded) stopTimers() {
	for _, t := range []**time.Timer{&u.process, &u.timeout, &u.restart} {
		if *t != nil {
			(*t).Stop()
			*t = nil
		}
	}
}

// says is an error in systemd's words.
func says(format string, args ...any) error { return fmt.Errorf(format, args...) }

// load returns the unit that n means, from memory or else from disk.
func (f *Fake) load(n unit.Name) *loaded {
	if u := f.units[f.names[n]]; u != nil {
		return u
	}
	id := f.primary(n)
	u := f.units[id]
	if u == nil {
		u = &loaded{name: id, def: f.read(id), active: unit.Inactive, sub: "dead", result: "success"}
		if f.skipped[id] {
			u.unmet = []unit.Condition{{}} // nobody knows any more which it was
		}
		f.units[id] = u
		f.names[id] = id
	}
	f.names[n] = id
	return u
}

// rename has names mean what they mean on disk now: a unit at rest that has
// become another name of one is that unit.
func (f *Fake) rename() {
	for id, u := range f.units {
		if f.primary(id) != id && u.active == unit.Inactive && u.job == nil {
			delete(f.units, id)
		}
	}
	for n, id := range f.names {
		if f.units[id] == nil || n != id && f.primary(n) != id {
			delete(f.names, n)
		}
	}
}

// keeps reports whether u stays loaded although nobody asks for it.
func (f *Fake) keeps(u *loaded) bool {
	return u.active != unit.Inactive || u.job != nil || f.pinned[u.name] || len(f.triggersOf(u.name)) > 0
}

// collect unloads every unit that nothing keeps.
func (f *Fake) collect() {
	for id, u := range f.units {
		if !f.keeps(u) {
			delete(f.units, id)
			delete(f.starts, id)
			if len(u.unmet) > 0 {
				f.skipped[id] = true
			}
		}
	}
	for n, id := range f.names {
		if f.units[id] == nil {
			delete(f.names, n)
		}
	}
}

// pin finds the units that links in .wants and .requires folders refer to, and
// loads them: the units that hold the links are taken to be loaded.
func (f *Fake) pin() {
	clear(f.pinned)
	for _, dir := range f.opts.Dirs {
		links, _ := filepath.Glob(filepath.Join(dir, "*.*s", "*"))
		for _, l := range links {
			kind := filepath.Ext(filepath.Dir(l))
			if n, err := unit.ParseName(filepath.Base(l)); err == nil && (kind == ".wants" || kind == ".requires") && !n.IsTemplate() {
				f.pinned[f.load(n).name] = true
			}
		}
	}
}

// triggersOf lists the loaded units that start n.
func (f *Fake) triggersOf(n unit.Name) []unit.Name {
	out := []unit.Name{}
	for _, u := range f.units {
		if u.def.load == unit.Loaded && u.def.triggers == n {
			out = append(out, u.name)
		}
	}
	slices.Sort(out)
	return out
}

// find returns the path of the file or link that n has on disk, "" for none.
func (f *Fake) find(n unit.Name) string {
	for _, dir := range f.opts.Dirs {
		path := filepath.Join(dir, string(n))
		if _, err := os.Lstat(path); err == nil {
			return path
		}
	}
	return ""
}

// primary follows links that give a unit another name.
func (f *Fake) primary(n unit.Name) unit.Name {
	for range 8 {
		path := f.find(n)
		if path == "" && n.IsInstance() {
			return n
		}
		target, err := os.Readlink(path)
		if err != nil {
			return n
		}
		to, err := unit.ParseName(filepath.Base(target))
		if err != nil || to == n || to.Type() != n.Type() || to.IsTemplate() {
			return n
		}
		n = to
	}
	return n
}

// read reads the definition of n, a primary name or a template, from disk.
func (f *Fake) read(n unit.Name) definition {
	d := f.readFiles(n)
	if d.description == "" {
		d.description = string(n)
	}
	return d
}

func (f *Fake) readFiles(n unit.Name) definition {
	path := f.find(n)
	if path == "" {
		path = f.find(n.Template())
	}
	if path == "" {
		return definition{load: unit.NotFound, words: fmt.Sprintf("Unit %s not found.", n)}
	}
	d := definition{load: unit.Loaded, fragment: path}
	if target, err := filepath.EvalSymlinks(path); err == nil && target == "/dev/null" {
		d.load, d.words = unit.Masked, fmt.Sprintf("Unit %s is masked.", n)
		return d
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return definition{load: unit.NotFound, words: fmt.Sprintf("Unit %s not found.", n)}
	}
	if len(data) == 0 {
		d.load, d.words = unit.Masked, fmt.Sprintf("Unit %s is masked.", n)
		return d
	}
	file := unit.ParseFile(data)
	var extra []unit.File
	d.dropIns = f.dropIns(n)
	for _, p := range d.dropIns {
		data, _ := os.ReadFile(p)
		extra = append(extra, unit.ParseFile(data))
	}
	d.parse(n, file.Merge(extra...), file.Broken)
	return d
}

// aliases are the links that give a unit another name, sorted.
func (f *Fake) aliases(n unit.Name) []string {
	var all []string
	for _, dir := range f.opts.Dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			a, err := unit.ParseName(e.Name())
			if err == nil && e.Type()&fs.ModeSymlink != 0 && a != n && f.primary(a) == n && !slices.Contains(all, e.Name()) {
				all = append(all, e.Name())
			}
		}
	}
	slices.Sort(all)
	return all
}

// dropIns lists the drop-ins of n in the order in which they are read: by file
// name, of two with the same name the one in the folder that wins.
func (f *Fake) dropIns(n unit.Name) []string {
	folders := append([]string{string(n)}, f.aliases(n)...)
	if n.IsInstance() {
		folders = append(folders, string(n.Template()))
	}
	for stem := n.Prefix(); strings.Contains(stem, "-"); {
		stem = stem[:strings.LastIndexByte(stem, '-')]
		folders = append(folders, stem+"-."+n.Type())
	}
	var order []string
	for _, dir := range f.opts.Dirs {
		for _, folder := range folders {
			order = append(order, filepath.Join(dir, folder+".d"))
		}
	}
	for _, dir := range f.opts.Dirs {
		order = append(order, filepath.Join(dir, n.Type()+".d"))
	}
	byName := map[string]string{}
	for _, dir := range order {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if _, have := byName[e.Name()]; !have && strings.HasSuffix(e.Name(), ".conf") && e.Type()&fs.ModeDir == 0 {
				byName[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
	}
	var paths []string
	for _, p := range byName {
		if target, err := filepath.EvalSymlinks(p); err == nil && target != "/dev/null" {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return paths
}
