package disk

import (
	"maps"
	"slices"

	"stead/host/plan"
	"stead/host/shape"
	"stead/host/unit"
)

// What a look finds of a unit hangs on a few files and links, which are read
// anew each time, and on what the folders of the search path list. While those
// are as they were, so is the answer: working it out takes longer than reading.

// memo is the last answer for a unit, and all that it hangs on but for the frame.
type memo struct {
	service  *shape.Service
	fragment string
	dropIns  []string
	load     unit.LoadState
	found    map[string]plan.Entry
	wrote    map[string]plan.Entry
	trace    trace
	answer   plan.Disk
}

// trace notes what was looked at for a unit.
type trace struct {
	reads  []read
	dirs   []*dir // drop-in folders that were listed
	opaque bool   // there was more to it than can be noted
}

// read is a path that was looked at, or through, and what was there.
type read struct {
	path    string
	through bool
	entry   plan.Entry
	null    bool
}

func (t *trace) read(p string, through bool, is *thing) {
	if t == nil {
		return
	}
	for i := range t.reads {
		if t.reads[i].path == p && t.reads[i].through == through {
			return
		}
	}
	t.reads = append(t.reads, read{p, through, is.entry, is.null})
}

func (t *trace) listed(d *dir) {
	if t != nil && !slices.ContainsFunc(t.dirs, func(o *dir) bool { return o.path == d.path }) {
		t.dirs = append(t.dirs, d.listing())
	}
}

// more notes that the answer hangs on something that is not noted.
func (t *trace) more() {
	if t != nil {
		t.opaque = true
	}
}

// frame is what all units of a look hang on: what the folders of the search path
// list, and what the links in them mean.
type frame struct {
	live    []*dir
	links   map[string]linked
	aliases map[string][]string
}

func (f frame) same(o frame) bool {
	return slices.EqualFunc(f.live, o.live, (*dir).same) && maps.Equal(f.links, o.links) &&
		maps.EqualFunc(f.aliases, o.aliases, slices.Equal)
}

// same reports whether two listings of a folder are alike.
func (d *dir) same(o *dir) bool {
	return d == o || d.path == o.path && d.real == o.real && d.err == nil && o.err == nil && maps.Equal(d.kinds, o.kinds)
}

// listing is the directory without what was read of it.
func (d *dir) listing() *dir {
	return &dir{path: d.path, real: d.real, fd: -1, kinds: d.kinds, err: d.err}
}

// frame forgets all answers when what they hang on together has changed.
func (l *look) frame() {
	l.now.aliasesOf("") // which reads every link
	now := frame{l.now.live, l.now.links, l.now.aliases}
	if l.memos != nil && l.framed.same(now) {
		return
	}
	l.memos = make(map[unit.Name]*memo)
	l.framed = frame{nil, maps.Clone(now.links), now.aliases}
	for _, d := range now.live {
		l.framed.live = append(l.framed.live, d.listing())
	}
}

// answer looks at one unit, unless all is as it was.
func (l *look) answer(q plan.Query) plan.Disk {
	if l.then != l.now || plan.OfFile(q.Unit) { // it may hang on what is declared for others
		return l.unit(q)
	}
	if m := l.memos[q.Unit]; m != nil && m.asked(q) && l.asWas(m, q) {
		return m.answer
	}
	t := &trace{}
	l.now.trace = t
	k := l.unit(q)
	l.now.trace = nil
	if t.opaque || len(k.Errs) > 0 {
		delete(l.memos, q.Unit)
		return k
	}
	l.memos[q.Unit] = &memo{q.Service, q.Status.Fragment, slices.Clone(q.Status.DropIns), q.Status.Load,
		maps.Clone(q.Memory.Found), maps.Clone(q.Memory.Wrote), *t, k}
	return k
}

// asked reports whether q asks what was asked then.
func (m *memo) asked(q plan.Query) bool {
	return m.service == q.Service && m.fragment == q.Status.Fragment && m.load == q.Status.Load &&
		slices.Equal(m.dropIns, q.Status.DropIns) && maps.Equal(m.found, q.Memory.Found) && maps.Equal(m.wrote, q.Memory.Wrote)
}

// asWas reads all that the answer hangs on and reports whether it is as it was.
func (l *look) asWas(m *memo, q plan.Query) bool {
	if m.service != nil && !maps.Equal(l.triggers(q), m.answer.Triggers) {
		return false
	}
	for _, d := range m.trace.dirs {
		if !l.now.dir(d.path).same(d) {
			return false
		}
	}
	for i := range m.trace.reads {
		r := &m.trace.reads[i]
		var t *thing
		if r.through {
			t = l.now.through(r.path)
		} else {
			t = l.now.at(r.path)
		}
		if t.err != nil || t.null != r.null || t.entry != r.entry {
			return false
		}
		if _, told := m.answer.At[r.path]; told && !r.through {
			l.seen[r.path] = sight{t.entry, t.stamp}
		}
	}
	return true
}
