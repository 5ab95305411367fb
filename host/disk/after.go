package disk

import (
	"context"
	"io/fs"
	"path"

	"stead/host/plan"
)

// LookAfter is Look as it would be if changes had been made, with what nobody
// changes read from the disk as it is. It changes nothing, and nothing of what
// it reads counts as seen: a copy is kept of what somebody wrote since the last
// Look or Snapshot, whoever foresaw what in between.
//
// It takes no notice of times, so two paths are one file here only when links
// lead from one to the other.
func (d *Disk) LookAfter(ctx context.Context, qs []plan.Query, changes []plan.Change) ([]plan.Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := newFolders(d)
	defer func() { f.close() }()
	if drawn := f.draw(changes); drawn != nil {
		f.close() // what it has listed is without the changes
		f = newFolders(d)
		f.drawn = drawn
	}
	l := newLook(d, f, qs)
	l.seen = make(map[string]sight)
	all := make([]plan.Disk, len(qs))
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return nil, canceled("look at unit folders", err)
		}
		all[i] = l.unit(q)
	}
	return all, nil
}

// drawing is what is taken to stand in folders, by the folder's path and by the
// name; a thing that is absent is taken away.
type drawing map[string]map[string]*thing

// draw takes changes for made; nil when there are none.
func (f *folders) draw(changes []plan.Change) drawing {
	if len(changes) == 0 {
		return nil
	}
	g := make(drawing)
	for _, c := range changes {
		in, name := split(c.Path)
		t := f.r.thingOf(c)
		g.at(in)[name] = t
		if real := f.place(in); real != in {
			g.at(real)[name] = t
		}
		if c.Entry.Kind == plan.Absent {
			continue
		}
		for !f.dir(in).there() {
			up, name := split(in)
			dir := &thing{entry: plan.Entry{Kind: plan.Dir}}
			g.at(up)[name], g.at(f.place(up))[name] = dir, dir
			in = up
		}
	}
	return g
}

func (g drawing) at(folder string) map[string]*thing {
	if g[folder] == nil {
		g[folder] = make(map[string]*thing)
	}
	return g[folder]
}

// place is where a folder really is, or would be.
func (f *folders) place(p string) string {
	if d := f.dir(p); d.there() || p == "/" {
		return d.real
	}
	up, name := split(p)
	return path.Join(f.place(up), name)
}

// thingOf is what c puts down.
func (r *reader) thingOf(c plan.Change) *thing {
	t := &thing{entry: c.Entry}
	switch c.Entry.Kind {
	case plan.Link:
		t.null = leadsToNull(c.Entry.Target)
	case plan.File:
		t.null = len(c.Content) == 0
		t.text = r.parse(c.Content)
	}
	return t
}

// into takes what is drawn for d to stand in it.
func (g drawing) into(d *dir) {
	for _, p := range []string{d.path, d.real} {
		for name, t := range g[p] {
			if t.entry.Kind == plan.Absent {
				delete(d.kinds, name)
				continue
			}
			if d.kinds == nil {
				d.kinds = make(map[string]fs.FileMode)
			}
			switch t.entry.Kind {
			case plan.Dir:
				if _, there := d.kinds[name]; !there {
					d.kinds[name] = fs.ModeDir
				}
				continue
			case plan.Link:
				d.kinds[name] = fs.ModeSymlink
			default:
				d.kinds[name] = 0
			}
			if d.known == nil {
				d.known = make(map[string]*thing)
			}
			d.known[name] = t
		}
	}
}
