package disk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"

	"stead/host/plan"
	"stead/host/unit"
)

// look is one Look.
type look struct {
	*Disk
	now    *search // the disk as it is
	then   *search // with everything that is declared in place
	vendor map[string][]string
	cited  map[string]plan.Cited   // triggers, by path
	owners map[[2]string]ownership // of declared files, by login and group
	seen   map[string]sight
}

// Look says what the disk has of each unit, in the order of qs. It fails as a
// whole only when ctx ends; what cannot be read is in the Errs of its unit. What
// answers hold may be shared with later ones, and is not to be changed.
func (d *Disk) Look(ctx context.Context, qs []plan.Query) ([]plan.Disk, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := newFolders(d)
	defer f.close()
	l := newLook(d, f, qs)
	l.frame()
	all := make([]plan.Disk, len(qs))
	for i, q := range qs {
		if err := ctx.Err(); err != nil {
			return nil, canceled("look at unit folders", err)
		}
		all[i] = l.answer(q)
	}
	return all, nil
}

func newLook(d *Disk, f *folders, qs []plan.Query) *look {
	l := &look{Disk: d, now: newSearch(d, f), seen: d.seen}
	l.then = l.now
	if over := l.differing(qs); len(over) > 0 {
		l.then = l.now.with(over)
	}
	return l
}

// differing returns the declared files that are not on disk as declared, by path.
func (l *look) differing(qs []plan.Query) map[string]*thing {
	over := make(map[string]*thing)
	for _, q := range qs {
		if q.Service == nil || q.Service.File != nil {
			continue
		}
		dec := l.declaredOf(q.Service)
		for i, w := range dec.wants {
			if is := l.now.at(w.Path).entry; is.Kind != plan.File || is.Digest != w.Entry.Digest {
				over[w.Path] = dec.things[i]
			}
		}
	}
	return over
}

// unit looks at one unit.
func (l *look) unit(q plan.Query) plan.Disk {
	if plan.OfFile(q.Unit) {
		return l.declaredFile(q)
	}
	u := &one{look: l, q: q, d: plan.Disk{At: make(map[string]plan.Entry, len(q.Memory.Found)+2)}}
	var gone bool
	u.d.Fragment, gone = l.now.fragment(q.Unit)
	names := l.now.names(q.Unit, u.d.Fragment)
	if hasDropIns(q, u.d.Fragment, gone) {
		u.d.DropIns = l.now.dropins(names)
	}
	u.d.Mask = u.mask()
	u.masks()
	u.d.Loaded = u.loaded()
	text := u.text()
	u.d.Text = text.text
	if q.Service != nil {
		wants := l.declaredOf(q.Service).wants
		u.d.Wants = append(make([]plan.Want, 0, len(wants)+1), wants...)
		u.links(text, names)
		u.d.Triggers = u.triggers(q)
	}
	for _, w := range u.d.Wants {
		u.at(w.Path)
		u.shadow(w)
	}
	for p := range q.Memory.Found {
		u.at(p)
	}
	for p := range q.Memory.Wrote {
		u.at(p)
	}
	u.d.Fragment = l.now.told(u.d.Fragment)
	return u.d
}

// hasDropIns reports whether systemd looks for drop-ins of a unit: most have to
// have a fragment, and some are made of something else.
func hasDropIns(q plan.Query, fragment string, gone bool) bool {
	if gone {
		return false
	}
	switch q.Unit.Type() {
	case "slice", "device", "scope":
		return true
	case "mount", "swap": // it exists, and nobody wrote a unit for it
		return fragment != "" || q.Status.Load == unit.Loaded && q.Status.Fragment == ""
	}
	return fragment != ""
}

// one is one unit of a look.
type one struct {
	*look
	q     plan.Query
	d     plan.Disk
	key   string // of what the manager has loaded, as it is on disk
	files []*thing
}

// at puts down what stands at a path.
func (u *one) at(p string) {
	if _, done := u.d.At[p]; done {
		return
	}
	t := u.now.at(p)
	u.d.At[p] = t.entry
	u.seen[p] = sight{t.entry, t.stamp}
	if t.err != nil {
		u.d.Errs = append(u.d.Errs, failure("read", p, t.err))
	}
}

// shadow notes what wins over a declared drop-in or link: of those of one name,
// systemd takes the first in its search. That is known when it stands there.
func (u *one) shadow(w plan.Want) {
	if w.Why == "content" || u.d.At[w.Path] != w.Entry {
		return
	}
	wins := ""
	switch in, name := split(w.Path); {
	case w.Why == "drop-in":
		real := u.now.dir(in).real + "/" + name
		for _, p := range u.d.DropIns {
			if path.Base(p) == name && p != real && p != w.Path {
				wins = p
			}
		}
	case pulls(in):
		wins = u.refused(path.Base(in), name)
	}
	if wins == "" {
		return
	}
	if u.d.Shadowed == nil {
		u.d.Shadowed = make(map[string]string)
	}
	u.d.Shadowed[w.Path] = wins
}

// refused finds a link to nothing that comes before one in the configuration
// folder and takes it back: a mask of that one dependency.
func (u *one) refused(folder, name string) string {
	for _, d := range u.now.live {
		if d.path == u.o.ConfigDir {
			break
		}
		if _, there := d.kinds[folder]; !there {
			continue
		}
		if p := d.path + "/" + folder + "/" + name; u.now.at(p).null {
			return p
		}
	}
	return ""
}

// mask is the mask that holds the unit. One that the declared unit file will win
// over holds nothing.
func (u *one) mask() string {
	p := u.d.Fragment
	if p == "" || !u.now.through(p).null {
		return ""
	}
	wins, _ := u.then.fragment(u.q.Unit)
	if path.Dir(p) != u.o.ConfigDir && wins != p && u.q.Service != nil && u.q.Service.Content != nil {
		return ""
	}
	return p
}

// masks notes where a mask is put, and those that can be taken away.
func (u *one) masks() {
	declared := u.q.Service != nil && u.q.Service.Masked != nil
	if !declared && u.d.Mask == "" {
		return
	}
	for _, in := range []string{u.o.ConfigDir, u.o.RuntimeDir} {
		p := in + "/" + string(u.q.Unit)
		kind := u.now.at(p).entry.Kind
		if is := (kind == plan.Link || kind == plan.File) && u.now.through(p).null; is {
			u.at(p)
			u.d.Masks = append(u.d.Masks, p)
		}
	}
	if declared {
		u.d.Place = u.o.ConfigDir + "/" + string(u.q.Unit)
		u.at(u.d.Place)
	}
}

// loaded is the digest of what the manager has loaded, as it is on disk now.
func (u *one) loaded() string {
	if u.q.Status.Fragment == "" {
		return ""
	}
	key, files := u.now.definition(u.q.Status.Fragment, u.q.Status.DropIns)
	u.key, u.files = key, files
	for i, t := range files {
		if t.err != nil {
			u.d.Errs = append(u.d.Errs, failure("read", pathOf(i, u.q.Status.Fragment, u.q.Status.DropIns), t.err))
		}
	}
	return u.sums.get(key, func() string {
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:])
	})
}
